/*
 * server.c - the MCP library served over HTTP, for the official conformance
 * suite
 *
 * It has what the suite asks for (fixtures.h), the Host and Origin checks of
 * the product, and no authentication.  It listens on a port of 127.0.0.1 that
 * is free, says which on standard output, and serves until SIGTERM, or until
 * who started it is gone.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "common/clock.h"
#include "common/conf.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/random.h"
#include "common/xmalloc.h"
#include "supervisor/front/check.h"
#include "supervisor/front/mcp_adapter.h"
#include "supervisor/http/http.h"
#include "tests/conformance/fixtures.h"

#define KEY_BYTES 32
#define BODY_MAX (1u << 20)

struct server {
	struct fixtures fixtures;
	struct conf *conf;
	struct check *check;
	struct http_server *http;
	struct mcp_adapter adapter;
	struct principal *who;
};

/* ---- requests */

#define METHODS (HTTP_METHOD_POST | HTTP_METHOD_GET | HTTP_METHOD_DELETE)

static void
refuse(struct http_exchange *x, int status, const char *why)
{
	http_reply_json(x, status,
	    json_pack("{s:s, s:{s:i, s:s}}", "jsonrpc", "2.0", "error", "code",
		MCP_SERVER_ERROR, "message", why));
}

static void
on_request(struct http_exchange *x, void *arg)
{
	struct server *s = arg;
	const struct check_way way = {.peer = http_peer(x)};
	struct check_refusal why;
	const char *text;
	int fault = http_fault(x, &text);

	if (fault != 0) {
		refuse(x, fault, text);
		return;
	}
	if (http_is_guest(x)) {
		http_busy(x);
		return;
	}
	if (check_request(s->check, http_host(x), http_header(x, HTTP_H_ORIGIN),
		&way, &why) != 0) {
		refuse(x, why.status, why.text);
		return;
	}
	http_set_principal(x, s->who);
	if (strcmp(http_path(x), "/mcp") != 0)
		refuse(x, 404, "there is nothing here");
	else if ((METHODS & (unsigned int)http_method(x)) == 0)
		refuse(x, 405, "this method is not for this path");
	else
		mcp_adapter_take(&s->adapter, x, MCP_ROUTE_MAIN, NULL, 0);
}

/* ---- life */

static int
listen_somewhere(struct sockaddr_in *a)
{
	socklen_t len = sizeof(*a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	memset(a, 0, sizeof(*a));
	a->sin_family = AF_INET;
	a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd == -1 || bind(fd, (struct sockaddr *)a, len) != 0 ||
	    listen(fd, 128) != 0 ||
	    getsockname(fd, (struct sockaddr *)a, &len) != 0)
		fatal(EXIT_BUG, "no socket listens on 127.0.0.1");
	return fd;
}

static void
server_listen(struct server *s)
{
	struct sockaddr_in a;
	struct err e;
	int fd = listen_somewhere(&a);

	check_add_listener(s->check, (struct sockaddr *)&a);
	if (http_server_listen(s->http, fd, &e) != 0)
		fatal(EXIT_BUG, "%s", e.msg);
	(void)printf("http://127.0.0.1:%u/mcp\n", ntohs(a.sin_port));
	(void)fflush(stdout);
}

static struct mcp *
new_mcp(void)
{
	uint8_t key[KEY_BYTES];
	const struct mcp_config config = {.name = "conformance-fixtures",
	    .title = "Fixtures of the conformance suite",
	    .version = "1.0.0",
	    .session_key = key,
	    .session_key_len = sizeof(key),
	    .session_ttl_s = 3600,
	    .body_max = BODY_MAX,
	    .heartbeat_ms = 15000,
	    .list_changes = true};

	random_fill(key, sizeof(key));
	return mcp_new(&config);
}

static void
server_open(struct server *s, struct event_base *base)
{
	const struct http_limits limits = {.head_max = 16384,
	    .body_max = BODY_MAX,
	    .request_ms = 30000,
	    .idle_ms = 60000,
	    .connections_max = 1024,
	    .waiting_memory = 16u << 20,
	    .waiting_files = 0};

	s->fixtures.base = base;
	LIST_INIT(&s->fixtures.waits);
	s->fixtures.mcp = new_mcp();
	s->adapter = (struct mcp_adapter){.mcp = s->fixtures.mcp};
	s->who = principal_new(
	    FIXTURE_TENANT, "fixtures", PRINCIPAL_LOCAL, PRINCIPAL_USER);
	s->conf = conf_new();
	s->check = check_new(s->conf);
	s->http = http_server_new(base, &limits, on_request, s);
	content_fixtures(&s->fixtures);
	telling_fixtures(&s->fixtures);
	question_fixtures(&s->fixtures);
	resource_fixtures(&s->fixtures);
	prompt_fixtures(&s->fixtures);
	job_fixtures(&s->fixtures);
}

static void
server_close(struct server *s)
{
	http_server_free(s->http); /* nobody waits for an answer any more */
	fixture_end_waits(&s->fixtures);
	jobs_end(s->fixtures.jobs);
	mcp_free(s->fixtures.mcp);
	check_free(s->check);
	conf_free(s->conf);
	principal_unref(s->who);
}

static void
tick_cb(evutil_socket_t fd, short what, void *arg)
{
	struct server *s = arg;

	(void)fd;
	(void)what;
	mcp_tick(s->fixtures.mcp, clock_mono_ms());
	http_server_tick(s->http);
}

static void
end_cb(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)event_base_loopbreak(arg);
}

int
main(void)
{
	static const struct timeval second = {1, 0};
	struct server s = {.conf = NULL};
	struct event *end, *tick;
	struct event_base *base;

	log_init("conformance");
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	(void)signal(SIGPIPE, SIG_IGN);
	base = event_base_new();
	if (base == NULL)
		fatal(EXIT_MEMORY, "out of memory");
	server_open(&s, base);
	end = evsignal_new(base, SIGTERM, end_cb, base);
	tick = event_new(base, -1, EV_PERSIST, tick_cb, &s);
	if (event_add(end, NULL) != 0 || event_add(tick, &second) != 0)
		fatal(EXIT_BUG, "an event was not added");
	server_listen(&s);
	(void)event_base_dispatch(base);
	event_free(end);
	event_free(tick);
	server_close(&s);
	event_base_free(base);
	return 0;
}
