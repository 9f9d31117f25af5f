/* clang-format off */
/*
 * front.c - the front put together, and what each request passes
 *
 *	its address' rate, its form
 *	  -> Host and Origin, CORS headers, OPTIONS of a page
 *	  -> who calls, and is the route for that role?     gate.c
 *	  -> the requests of its tenant
 *	  -> route, parameters, method, query
 *	  -> the route's handler
 *
 * What is refused on MCP_PATH is told in JSON-RPC's form, elsewhere in ours.
 */
/* clang-format on */
#include "supervisor/front/front.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/core/logs.h"
#include "supervisor/core/quota_use.h"
#include "supervisor/core/tenants.h"
#include "supervisor/front/bodies.h"
#include "supervisor/front/deliveries.h"
#include "supervisor/front/gate.h"
#include "supervisor/front/instructions.h"
#include "supervisor/front/oauth.h"
#include "supervisor/front/postbox.h"
#include "supervisor/front/refusal.h"
#include "supervisor/front/routes.h"
#include "supervisor/front/scope.h"
#include "supervisor/front/server_status.h"
#include "supervisor/front/spans.h"
#include "supervisor/tools/tool_tasks.h"
#include "supervisor/front/sse.h"
#include "supervisor/front/status.h"

#define SESSION_TTL_S (7 * 86400)
#define ANY_METHODS "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
#define CORS_HEADERS                                                           \
	"Accept, Authorization, Content-Type, Mcp-Session-Id, "                \
	"Mcp-Protocol-Version, Last-Event-ID, Mcp-Method, Mcp-Name, "          \
	"If-Match, If-None-Match"

/* ---- a request */

static void
refuse(const struct route *r, struct http_exchange *x, int status,
    const char *code, const char *text)
{
	if (r != NULL && r->place == ROUTE_MCP)
		front_mcp_error(x, status, MCP_SERVER_ERROR, text);
	else
		http_error(x, status, code, "%s", text);
}

/* Before anything else of it is looked at. */
static void
refuse_often(struct front *f, const struct route *r, struct http_exchange *x,
    uint32_t wait_s)
{
	char from[NETADDR_TEXT_MAX], text[200], seconds[16];

	(void)snprintf(text, sizeof(text),
	    "too many requests from %s: %lld a second are permitted "
	    "(REQUESTS_PER_SECOND_PER_ADDRESS); try again in %u s",
	    netaddr_format(http_client(x), from),
	    (long long)conf_int(f->conf, CONF_REQUESTS_PER_SECOND_PER_ADDRESS),
	    wait_s);
	(void)snprintf(seconds, sizeof(seconds), "%u", wait_s);
	http_add_header(x, "Retry-After", seconds);
	refuse(r, x, 429, "rate_limited", text);
}

/* Of its tenant, whoever of it asks. */
static bool
pass_quota(
    const struct front *f, const struct route *r, struct http_exchange *x)
{
	const struct principal *who = http_principal(x);
	struct err why;

	if (who == NULL || who->tenant.n == 0)
		return true;
	if (quota_use_admit_request(
		quota_use_of(core_quota_uses(f->core), who->tenant),
		clock_mono_ms(), &why) == 0)
		return true;
	refusal_send_late(
	    f->refusals, x, r != NULL ? r->place : ROUTE_TOP, &why);
	return false;
}

static int
check_who(struct front *f, struct http_exchange *x, struct check_refusal *why)
{
	struct sockaddr_storage local;
	const char *origin = http_header(x, HTTP_H_ORIGIN);
	const char *host = http_host(x), *seen = http_seen_host(x);
	struct check_way way = {.peer = http_peer(x)};
	uid_t user;

	if (http_peer_user(x, &user)) /* no page gets to the admin socket */
		return 0;
	if (check_request(f->check, host, origin, &way, why) != 0) {
		way.local = http_local_address(x, &local);
		if (check_request(f->check, host, origin, &way, why) != 0)
			return -1;
	}
	/* A page can point its own name at a proxy of ours as well. */
	if (seen == host)
		return 0;
	way = (struct check_way){.peer = http_client(x)};
	return check_request(f->check, seen, origin, &way, why);
}

/* The Origin was found good: its page may read the answer. */
static void
add_cors(struct front *f, struct http_exchange *x)
{
	const char *origin = http_header(x, HTTP_H_ORIGIN);

	if (origin != NULL) {
		http_add_header(x, "Access-Control-Allow-Origin", origin);
		http_add_header(x, "Access-Control-Expose-Headers",
		    "Mcp-Session-Id, WWW-Authenticate, ETag");
	} else if (!check_varies(f->check)) {
		return;
	}
	http_add_header(x, "Vary", "Origin");
}

static void
answer_options(struct http_exchange *x, const struct route *r)
{
	char allow[ROUTES_ALLOW_MAX] = ANY_METHODS;

	if (r != NULL)
		routes_allow(r, allow);
	if (http_header(x, HTTP_H_ORIGIN) != NULL) {
		http_add_header(x, "Access-Control-Allow-Methods", allow);
		http_add_header(
		    x, "Access-Control-Allow-Headers", CORS_HEADERS);
		http_add_header(x, "Access-Control-Max-Age", "300");
	}
	http_add_header(x, "Allow", allow);
	http_reply(x, 204, NULL, NULL, 0);
}

/* Authenticate, count for the quotas, read the query, call the handler. */
static void
serve(struct front *f, struct http_exchange *x, gate_again again)
{
	const void *found = NULL;
	enum http_fit fit = http_route(x, f->router, &found);
	const struct route *r = found;
	struct request request = {.front = f, .x = x};
	char allow[ROUTES_ALLOW_MAX];

	if (!gate_pass(f, x, r, again) || !pass_quota(f, r, x))
		return;
	if (http_method(x) == HTTP_METHOD_OPTIONS) {
		answer_options(x, r);
	} else if (r == NULL) {
		http_error(x, 404, "not_found", "there is nothing here");
	} else if (fit == HTTP_FIT_HEAD) {
		refuse(r, x, 404, "not_found", r->missing);
	} else if ((r->methods & (unsigned int)http_method(x)) == 0) {
		routes_allow(r, allow);
		http_add_header(x, "Allow", allow);
		refuse(r, x, 405, "method_not_allowed",
		    "this method is not for this path: see Allow");
	} else if (scope_open(&request, r)) {
		r->on_request(&request);
		scope_close(&request);
	}
}

/* The request waited in the gate; it does not wait a second time. */
static void
serve_again(struct front *f, struct http_exchange *x)
{
	serve(f, x, NULL);
}

/* Probes are answered also when all connections are taken. */
static bool
is_for_probes(const struct route *r)
{
	return r != NULL &&
	    (r->roles == ROUTE_NOBODY || (r->roles & ROUTE_WHILE_OPEN) != 0);
}

static void
front_on_request(struct http_exchange *x, void *arg)
{
	struct front *f = arg;
	const void *found = NULL;
	struct check_refusal why;
	const struct route *r;
	const char *text;
	int fault = http_fault(x, &text);
	uint32_t wait_s = http_admit(x);

	(void)http_route(x, f->router, &found);
	r = found;
	if (wait_s != 0) {
		refuse_often(f, r, x, wait_s);
		return;
	}
	if (fault != 0) {
		refuse(r, x, fault, "bad_request", text);
		return;
	}
	if (http_is_guest(x) && !is_for_probes(r)) {
		http_busy(x);
		return;
	}
	if (check_who(f, x, &why) != 0) {
		if (why.status == 403)
			gate_tell(f, x, "auth.forbidden", why.code);
		refuse(r, x, why.status, why.code, why.text);
		return;
	}
	add_cors(f, x);
	/* A browser asks without its token whether it may send it. */
	if (http_method(x) == HTTP_METHOD_OPTIONS &&
	    http_header(x, HTTP_H_ORIGIN) != NULL) {
		answer_options(x, r);
		return;
	}
	serve(f, x, serve_again);
}

static void
log_request(const struct http_log_line *line)
{
	char status[16], us[24], address[NETADDR_TEXT_MAX];
	const struct log_field fields[] = {
	    {"request", line->id},
	    {"method", routes_method_name(line->method)},
	    {"path", line->path},
	    {"status", status},
	    {"duration_us", us},
	    {"address", netaddr_format(line->client, address)},
	    {"client", line->gone ? "gone" : NULL},
	};

	(void)snprintf(status, sizeof(status), "%d", line->status);
	(void)snprintf(us, sizeof(us), "%llu", (unsigned long long)line->us);
	log_event(LOG_INFO, "http", fields, ARRAY_LEN(fields));
}

static void
front_log_cb(const struct http_log_line *line, void *arg)
{
	const struct front *f = arg;

	metrics_on_request(routes_number(line->route), line->us);
	if (f->logs_requests)
		log_request(line);
}

/* ---- life */

static void
tick_cb(evutil_socket_t fd, short what, void *arg)
{
	struct front *f = arg;

	(void)fd;
	(void)what;
	mcp_tick(f->mcp, clock_mono_ms());
	http_server_tick(f->http);
	if (f->oauth != NULL)
		oauth_tick(f->oauth);
	metrics_note(f);
	if (f->on_tick != NULL)
		f->on_tick(f->on_tick_arg);
}

/* A key of its own, from that of sessions: ids stay good over a restart. */
static void
set_event_key(struct front *f, const uint8_t *key)
{
	static const char *const words[2] = {"event ids, 1", "event ids, 2"};
	uint64_t part;

	for (size_t i = 0; i < 2; i++) {
		part = siphash(
		    key + i * SIPHASH_KEY_BYTES, words[i], strlen(words[i]));
		memcpy(f->event_key + i * sizeof(part), &part, sizeof(part));
	}
}

/* Its open streams and waiting calls end, too. */
static void
on_ended(const struct principal *who, void *arg)
{
	struct front *f = arg;

	http_server_end_of(f->http, who);
}

static struct mcp *
new_mcp(const struct front_parts *parts)
{
	const struct mcp_config config = {
	    .name = "mcp-sandboxd",
	    .title = "MCP sandbox server",
	    .version = PACKAGE_VERSION,
	    .session_key = parts->session_key,
	    .session_key_len = FRONT_KEY_BYTES,
	    .session_ttl_s = SESSION_TTL_S,
	    .body_max = (size_t)conf_int(parts->conf, CONF_MAX_BODY_BYTES),
	    .heartbeat_ms = parts->heartbeat_ms,
	    .is_legacy_only =
		strcmp(conf_str(parts->conf, CONF_MCP_NEWEST_REVISION),
		    "2025-11-25") == 0,
	};

	return mcp_new(&config);
}

static struct http_server *
new_http(struct front *f, const struct front_parts *parts)
{
	const struct http_limits limits = {
	    .head_max = FRONT_HEAD_MAX,
	    .body_max = (size_t)conf_int(f->conf, CONF_MAX_BODY_BYTES),
	    .request_ms = (uint32_t)conf_int(f->conf, CONF_REQUEST_TIMEOUT_MS),
	    .idle_ms = (uint32_t)conf_int(f->conf, CONF_IDLE_TIMEOUT_MS),
	    .connections_max =
		(uint32_t)conf_int(f->conf, CONF_MAX_CONNECTIONS),
	    .waiting_memory = FRONT_WAITING_MEMORY,
	    .waiting_files = FRONT_WAITING_FILES,
	    .large_dir = parts->dir,
	};

	return http_server_new(f->base, &limits, front_on_request, f);
}

static void
on_postbox_room(void *arg)
{
	const struct front *f = arg;

	if (f->spans != NULL)
		spans_pump(f->spans);
	if (f->deliveries != NULL)
		deliveries_pump(f->deliveries);
}

static void
open_outgoing(struct front *f)
{
	bool has_spans = conf_str(f->conf, CONF_OTLP_ENDPOINT)[0] != '\0';
	bool has_webhooks = conf_bool(f->conf, CONF_WEBHOOKS);

	if (!has_webhooks && !has_spans)
		return;
	f->postbox = postbox_new(f->base, on_postbox_room, f);
	if (has_webhooks)
		f->deliveries =
		    deliveries_new(&(struct deliveries_parts){.base = f->base,
			.conf = f->conf,
			.webhooks = f->webhooks,
			.feeds = core_event_feeds(f->core),
			.postbox = f->postbox});
	if (has_spans)
		f->spans = spans_new(&(struct spans_parts){.base = f->base,
		    .bus = core_bus(f->core),
		    .tenants = core_tenants(f->core),
		    .postbox = f->postbox,
		    .version = PACKAGE_VERSION,
		    .instance = conf_str(f->conf, CONF_INSTANCE)});
}

/* As the settings are now. */
static void
set_instructions(struct front *f)
{
	free(f->instructions);
	f->instructions = instructions_make(f->conf, tools_languages(f->tools));
	mcp_set_instructions(f->mcp, f->instructions);
}

int
front_new(const struct front_parts *parts, struct front **out, struct err *e)
{
	const struct timeval second = {1, 0};
	struct front *f = xcalloc(1, sizeof(*f));
	size_t n;

	f->base = parts->base;
	f->conf = parts->conf;
	f->core = parts->core;
	f->webhooks = parts->webhooks;
	f->heartbeat_ms = parts->heartbeat_ms;
	f->on_tick = parts->on_tick;
	f->on_tick_arg = parts->on_tick_arg;
	f->sse = sse_streams_new(f);
	LIST_INIT(&f->exports);
	set_event_key(f, parts->session_key);
	f->mcp_path = xstrdup(conf_str(f->conf, CONF_MCP_PATH));
	for (n = strlen(f->mcp_path); n > 0 && f->mcp_path[n - 1] == '/'; n--)
		f->mcp_path[n - 1] = '\0';
	f->mcp = new_mcp(parts);
	front_open_mcp(f);
	f->operator=
	    principal_new((struct tenant_id){0}, "", "socket", PRINCIPAL_ADMIN);
	tenants_on_ended(core_tenants(f->core), on_ended, f);
	open_outgoing(f);
	f->oauth = oauth_new(&(struct oauth_parts){.base = f->base,
	    .conf = f->conf,
	    .tenants = core_tenants(f->core),
	    .acts = core_acts(f->core),
	    .on_ended = on_ended,
	    .arg = f});
	f->check = check_new(f->conf);
	f->router = routes_new(f->mcp_path);
	f->http = new_http(f, parts);
	f->crew_members = crew_members_new();
	f->refusals = late_refusals_new(f->base);
	f->statuses = statuses_new(f->base, f->http);
	f->bodies = bodies_new(logs_threads(core_logs(f->core)));
	front_reload(f);
	f->route_name = routes_name;
	metrics_begin();
	f->tick = event_new(f->base, -1, EV_PERSIST, tick_cb, f);
	if (f->tick == NULL)
		fatal(EXIT_MEMORY, "out of memory");
	(void)event_add(f->tick, &second);
	if (tools_new(f->core, f->mcp, parts->tools, f->event_key, &f->tools,
		e) != 0 ||
	    tool_tasks_new(f->tools, f->core, f->mcp, &f->tasks, e) != 0) {
		front_free(f);
		return e->code;
	}
	set_instructions(f);
	*out = f;
	return 0;
}

void
front_free(struct front *f)
{
	if (f == NULL)
		return;
	event_free(f->tick);
	statuses_free(f->statuses);
	http_server_free(
	    f->http); /* every holder hears that its client is gone */
	late_refusals_free(f->refusals);
	sse_streams_free(f->sse);
	bodies_free(f->bodies);
	crew_members_free(f->crew_members);
	tools_free(f->tools);
	tool_tasks_free(f->tasks);
	mcp_free(f->mcp);
	free(f->instructions);
	tenants_on_ended(core_tenants(f->core), NULL, NULL);
	oauth_free(f->oauth);
	deliveries_free(f->deliveries);
	spans_free(f->spans);
	postbox_free(f->postbox);
	principal_unref(f->operator);
	check_free(f->check);
	http_router_free(f->router);
	free(f->mcp_path);
	free(f);
}

union socket_address {
	struct sockaddr any;
	struct sockaddr_storage room;
};

static int
check_socket(
    const struct front *f, int fd, union socket_address *a, struct err *e)
{
	socklen_t len = sizeof(*a);
	struct netaddr address;

	memset(a, 0, sizeof(*a));
	if (getsockname(fd, &a->any, &len) != 0)
		return err_set(e, ERR_SYS, "getsockname: %s", strerror(errno));
	address = netaddr_from_sockaddr(&a->any);
	return gate_is_closed(f) ? 0 : check_may_listen(&address, e);
}

int
front_may_listen(const struct front *f, int fd, struct err *e)
{
	union socket_address a;

	return check_socket(f, fd, &a, e);
}

int
front_listen(struct front *f, int fd, struct err *e)
{
	union socket_address a;

	if (check_socket(f, fd, &a, e) != 0) {
		(void)close(fd);
		return e->code;
	}
	check_add_listener(f->check, &a.any);
	return http_server_listen(f->http, fd, e);
}

static void
set_limits_per_address(struct front *f)
{
	const struct limiter_rates rates = {
	    .connections =
		(uint32_t)conf_int(f->conf, CONF_CONNECTIONS_PER_ADDRESS),
	    .requests_per_s = (uint32_t)conf_int(
		f->conf, CONF_REQUESTS_PER_SECOND_PER_ADDRESS),
	    .requests_burst =
		(uint32_t)conf_int(f->conf, CONF_REQUEST_BURST_PER_ADDRESS),
	    .failed_logins_per_min = (uint32_t)conf_int(
		f->conf, CONF_FAILED_LOGINS_PER_MINUTE_PER_ADDRESS),
	    .loopback = conf_bool(f->conf, CONF_LIMIT_LOOPBACK),
	};
	struct forwarded_proxies proxies;
	struct err e;

	http_server_set_rates(f->http, &rates);
	if (forwarded_parse_proxies(
		conf_list(f->conf, CONF_TRUSTED_PROXIES), &proxies, &e) != 0)
		log_error("%s; they stay as they were", e.msg);
	else
		http_server_set_proxies(f->http, &proxies);
}

void
front_reload(struct front *f)
{
	set_limits_per_address(f);
	if (f->tools != NULL) {
		tools_reload(f->tools);
		set_instructions(f);
	}
	f->logs_requests = conf_bool(f->conf, CONF_LOG_HTTP_REQUESTS);
	http_server_set_log(f->http, front_log_cb);
}

void
front_set_tls(struct front *f, struct tls *tls)
{
	check_set_tls(f->check);
	http_server_set_tls(f->http, tls);
}

void
front_drain(struct front *f, void (*on_idle)(void *arg), void *arg)
{
	f->draining = true;
	http_server_drain(f->http);
	sse_streams_drain(f->sse);
	mcp_drain(f->mcp);
	tools_drain(f->tools, on_idle, arg);
}

bool
front_is_quiet(const struct front *f)
{
	struct http_stats st;

	http_server_stats(f->http, &st);
	return st.connections == 0;
}

uint64_t
front_requests(const struct front *f)
{
	struct http_stats st;

	http_server_stats(f->http, &st);
	return st.requests;
}
