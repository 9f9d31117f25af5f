/*
 * http_exchange.c - one request, looked at, and its life until the answer
 *
 *	evhttp's callback      a handler has it          the answer
 *	new, looked at  ---->  (now or later)   ---->  http_exchange_end
 *	                             |                       ^
 *	                             +---- on_gone ----------+
 *	                          the connection closed: conn and req are NULL
 *
 * What is malformed is only noted here (fault): whoever routes the request
 * says so in the words of its path.
 */
#include "supervisor/http/http_int.h"

#include <ctype.h>
#include <strings.h>
#include <sys/socket.h>

#include <event2/http_struct.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"

#define JOINED_MAX 4096

static const char *const header_names[HTTP_H_COUNT] = {
    [HTTP_H_HOST] = "Host",
    [HTTP_H_ORIGIN] = "Origin",
    [HTTP_H_AUTHORIZATION] = "Authorization",
    [HTTP_H_CONTENT_LENGTH] = "Content-Length",
    [HTTP_H_TRANSFER_ENCODING] = "Transfer-Encoding",
    [HTTP_H_CONTENT_TYPE] = "Content-Type",
    [HTTP_H_SESSION] = "Mcp-Session-Id",
    [HTTP_H_PROTOCOL] = "MCP-Protocol-Version",
    [HTTP_H_LAST_EVENT_ID] = "Last-Event-ID",
    [HTTP_H_MCP_METHOD] = "Mcp-Method",
    [HTTP_H_MCP_NAME] = "Mcp-Name",
    [HTTP_H_ACCEPT] = "Accept",
    [HTTP_H_IF_MATCH] = "If-Match",
    [HTTP_H_IF_NONE_MATCH] = "If-None-Match",
    [HTTP_H_RANGE] = "Range",
    [HTTP_H_IF_RANGE] = "If-Range",
    [HTTP_H_IF_MODIFIED_SINCE] = "If-Modified-Since",
    [HTTP_H_TRACEPARENT] = "traceparent",
};

/* ---- looking at a request */

static void
request_is_bad(struct http_exchange *x, int status, const char *text)
{
	if (x->fault_status != 0)
		return;
	x->fault_status = status;
	x->fault_text = text;
	x->close = true; /* where the next request begins is not certain */
}

static bool
is_token(const char *s)
{
	const char *p = s;

	while (isalnum((unsigned char)*p) != 0 ||
	    (*p != '\0' && strchr("!#$%&'*+-.^_`|~", *p) != NULL))
		p++;
	return *p == '\0' && p != s;
}

static void
join_lines(struct http_exchange *x, size_t h, const char *value)
{
	char *both;

	if (strlen(x->header[h]) + strlen(value) > JOINED_MAX) {
		if (h != HTTP_H_ACCEPT)
			request_is_bad(
			    x, 431, "a condition of more than 4096 bytes");
		return;
	}
	both = xasprintf("%s, %s", x->header[h], value);
	free(x->joined[h]);
	x->joined[h] = both;
	x->header[h] = both;
}

/* RFC 9110, section 5.5: blanks around a value are no part of it.  evhttp
 * leaves tabs before it, also where it looks for a body's length: what says
 * that is judged as evhttp reads it. */
static const char *
plain_value(const struct evkeyval *kv)
{
	if (strcasecmp(kv->key, header_names[HTTP_H_TRANSFER_ENCODING]) == 0 ||
	    strcasecmp(kv->key, header_names[HTTP_H_CONTENT_LENGTH]) == 0)
		return kv->value;
	return kv->value + strspn(kv->value, " \t");
}

static void
take_header(struct http_exchange *x, const char *name, const char *value)
{
	for (size_t i = 0; i < HTTP_H_COUNT; i++) {
		if (strcasecmp(name, header_names[i]) != 0)
			continue;
		if (x->header[i] == NULL)
			x->header[i] = value;
		else if (i <= HTTP_H_SINGLE_MAX)
			request_is_bad(
			    x, 400, "a header that may come once came twice");
		else if (i <= HTTP_H_JOINED_MAX)
			join_lines(x, i, value);
		else if (i == HTTP_H_TRACEPARENT)
			x->header[i] = ""; /* of which of the two? of none */
		return;
	}
}

/* An Mcp- header may come once, also one that is not read here: a proxy may
 * have decided by the other line. */
static bool
is_second_mcp_header(const struct evkeyvalq *headers, const struct evkeyval *kv)
{
	const struct evkeyval *before;

	if (strncasecmp(kv->key, "mcp-", 4) != 0)
		return false;
	for (before = headers->tqh_first; before != kv;
	     before = before->next.tqe_next)
		if (strcasecmp(before->key, kv->key) == 0)
			return true;
	return false;
}

static void
take_headers(struct http_exchange *x)
{
	const struct evkeyvalq *headers =
	    evhttp_request_get_input_headers(x->req);
	const struct evkeyval *kv;
	unsigned int n = 0;

	for (kv = headers->tqh_first; kv != NULL; kv = kv->next.tqe_next) {
		if (++n > HTTP_HEADERS_MAX) {
			request_is_bad(x, 431, "more than 100 header lines");
			return;
		}
		if (!is_token(kv->key))
			request_is_bad(x, 400, "a header's name is malformed");
		else if (is_second_mcp_header(headers, kv))
			request_is_bad(
			    x, 400, "a header that may come once came twice");
		else
			take_header(x, kv->key, plain_value(kv));
	}
}

/* RFC 9112, section 6: who sends both lengths, or one that others may read
 * differently, wants something smuggled. */
static void
check_framing(struct http_exchange *x)
{
	const char *length = x->header[HTTP_H_CONTENT_LENGTH];
	const char *coding = x->header[HTTP_H_TRANSFER_ENCODING];
	enum evhttp_cmd_type type = evhttp_request_get_command(x->req);

	/* evhttp is lenient about the form of chunks (a bare LF, blanks):
	 * nothing that follows them is taken for another request. */
	if (coding != NULL)
		x->close = true;
	if (length != NULL && coding != NULL)
		request_is_bad(
		    x, 400, "Content-Length and Transfer-Encoding together");
	else if (coding != NULL && strcasecmp(coding, "chunked") != 0)
		request_is_bad(x, 501, "Transfer-Encoding is not chunked");
	else if (length != NULL &&
	    (length[0] == '\0' ||
		strspn(length, "0123456789") != strlen(length)))
		request_is_bad(x, 400, "Content-Length is not a number");
	/* evhttp does not read the body of these two. */
	if ((type == EVHTTP_REQ_HEAD || type == EVHTTP_REQ_TRACE) &&
	    (coding != NULL || (length != NULL && strcmp(length, "0") != 0)))
		request_is_bad(x, 400, "a body with this method");
}

static enum http_method
method_of(struct evhttp_request *req)
{
	switch (evhttp_request_get_command(req)) {
	case EVHTTP_REQ_GET:
		return HTTP_METHOD_GET;
	case EVHTTP_REQ_HEAD:
		return HTTP_METHOD_HEAD;
	case EVHTTP_REQ_POST:
		return HTTP_METHOD_POST;
	case EVHTTP_REQ_DELETE:
		return HTTP_METHOD_DELETE;
	case EVHTTP_REQ_OPTIONS:
		return HTTP_METHOD_OPTIONS;
	case EVHTTP_REQ_PATCH:
		return HTTP_METHOD_PATCH;
	case EVHTTP_REQ_PUT:
		return HTTP_METHOD_PUT;
	case EVHTTP_REQ_TRACE:
	case EVHTTP_REQ_CONNECT:
	default:
		return HTTP_METHOD_OTHER;
	}
}

/* Split x->target in place: [http://authority] path [? query]. */
static void
take_target(struct http_exchange *x)
{
	const char *scheme = x->conn->ssl != NULL ? "https://" : "http://";
	size_t scheme_len = strlen(scheme);
	char *p = x->target;
	char *q;

	x->path = "";
	if (strncasecmp(p, scheme, scheme_len) == 0) {
		x->authority = p + scheme_len;
		q = p + scheme_len + strcspn(p + scheme_len, "/?");
		if (*q == '/') {
			/* One byte forward for the NUL between the two. */
			memmove(p, x->authority, (size_t)(q - x->authority));
			p[q - x->authority] = '\0';
			x->authority = p;
		}
		p = q;
	}
	q = strpbrk(p, "?#");
	if (q != NULL && *q == '?') {
		x->query = q + 1;
		q[1 + strcspn(q + 1, "#")] = '\0';
	}
	if (q != NULL)
		*q = '\0';
	if (*p == '/' || (strcmp(p, "*") == 0 && x->query == NULL))
		x->path = p;
	else
		request_is_bad(x, 400, "the request's target is no path");
}

/* The answer bears the request's version, so it must be one we speak. */
static void
check_version(struct http_exchange *x)
{
	struct evhttp_request *req = x->req;

	if (req->major != 1 || req->minor < 0) {
		request_is_bad(x, 505, "only HTTP/1.0 and 1.1 are spoken");
		req->major = 1;
		req->minor = 1;
	} else if (req->minor > 1) {
		req->minor = 1;
	}
}

/*
 * Who asks, and what of a proxy's word about that is believed.  The lines of
 * X-Forwarded-For are one list in the order in which they came (RFC 9110,
 * section 5.3), which forwarded.h reads from its end.  Of X-Forwarded-Proto and
 * X-Forwarded-Host the last element counts: the nearest proxy wrote it.  Of
 * others all three are ignored.
 */

static void
take_host(struct http_exchange *x, const char *line)
{
	size_t n;
	const char *p = forwarded_last(line, &n);

	if (x->seen_host != NULL || p == NULL)
		return;
	x->seen_host = xcalloc(1, n + 1);
	memcpy(x->seen_host, p, n);
}

static bool
is_https(const char *line)
{
	size_t n;
	const char *p = forwarded_last(line, &n);

	return p != NULL && n == strlen("https") &&
	    strncasecmp(p, "https", n) == 0;
}

static void
find_client(struct http_exchange *x)
{
	struct http_server *s = x->server;
	struct forwarded_walk walk = {
	    .proxies = &s->proxies, .client = &x->client};
	struct evkeyvalq *headers = evhttp_request_get_input_headers(x->req);
	const struct evkeyval *kv;
	bool has_proto = false;

	x->client = x->conn->peer;
	x->seen_https = x->conn->ssl != NULL;
	if (!forwarded_is_proxy(&s->proxies, &x->client))
		return;
	TAILQ_FOREACH_REVERSE (kv, headers, evkeyvalq, next) {
		if (strcasecmp(kv->key, "X-Forwarded-For") == 0) {
			forwarded_step(&walk, kv->value);
		} else if (strcasecmp(kv->key, "X-Forwarded-Host") == 0) {
			take_host(x, kv->value);
		} else if (!has_proto &&
		    strcasecmp(kv->key, "X-Forwarded-Proto") == 0) {
			has_proto = true;
			x->seen_https = is_https(kv->value);
		}
	}
}

static struct http_exchange *
exchange_new(
    struct http_server *s, struct http_conn *c, struct evhttp_request *req)
{
	const char *uri = evhttp_request_get_uri(req);
	size_t n = strlen(uri);
	struct http_exchange *x = xcalloc(1, sizeof(*x) + n + 1);

	x->server = s;
	x->conn = c;
	x->req = req;
	x->began_us = clock_mono_us();
	/* evhttp takes "GET http://..." for a proxy's and ends the connection
	 * by that header's rules. */
	req->flags &= ~EVHTTP_PROXY_REQUEST;
	x->method = method_of(req);
	x->close = s->draining || c->guest;
	http_stat_next_id(s, x->id);
	memcpy(x->target, uri, n + 1);
	check_version(x);
	take_target(x);
	take_headers(x);
	check_framing(x);
	if (c->head.fault != NULL)
		request_is_bad(x, 400, c->head.fault);
	if (x->header[HTTP_H_HOST] == NULL)
		request_is_bad(x, 400, "no Host header");
	find_client(x);
	return x;
}

static void
exchange_free(struct http_exchange *x)
{
	if (x->query_parsed)
		evhttp_clear_headers(&x->parsed_query);
	http_params_clear(&x->params);
	principal_unref(x->who);
	for (size_t i = 0; i < HTTP_H_COUNT; i++)
		free(x->joined[i]);
	free(x->seen_host);
	free(x);
}

/* The connection is being closed.  evhttp lets go of a request it had handed
 * out, unless it is we who close: then it frees it itself. */
static void
exchange_on_close(struct http_exchange *x)
{
	struct evhttp_request *req = x->req;

	x->conn = NULL;
	x->req = NULL;
	memset(x->header, 0, sizeof(x->header));
	if (x->streaming)
		x->server->stats.streams--;
	if (evhttp_request_get_connection(req) == NULL)
		evhttp_request_free(req);
	if (x->on_gone != NULL)
		x->on_gone(x->arg);
}

void
http_request_cb_from_evhttp(struct evhttp_request *req, void *arg)
{
	struct http_server *s = arg;
	struct http_conn *c = http_conn_of(s, req);
	struct http_exchange *x;

	if (c == NULL)
		fatal(EXIT_BUG, "a request without a connection");
	http_conn_set_state(c, HTTP_CONN_BUSY);
	x = exchange_new(s, c, req);
	c->x = x;
	c->on_close = exchange_on_close;
	s->on_request(x, s->arg);
}

const void *
http_body(struct http_exchange *x, size_t *len)
{
	struct evbuffer *in;

	*len = 0;
	if (x->req == NULL)
		return "";
	in = evhttp_request_get_input_buffer(x->req);
	*len = evbuffer_get_length(in);
	return *len == 0 ? (const void *)"" : evbuffer_pullup(in, -1);
}

size_t
http_body_bytes(const struct http_exchange *x)
{
	return x->req == NULL ?
	    0 :
	    evbuffer_get_length(evhttp_request_get_input_buffer(x->req));
}

struct evbuffer *
http_buffer_new(void)
{
	struct evbuffer *b = evbuffer_new();

	if (b == NULL)
		fatal(EXIT_MEMORY, "out of memory");
	return b;
}

struct evbuffer *
http_take_body(struct http_exchange *x)
{
	struct evbuffer *body = http_buffer_new();

	if (x->req != NULL &&
	    evbuffer_add_buffer(
		body, evhttp_request_get_input_buffer(x->req)) != 0)
		fatal(EXIT_MEMORY, "out of memory");
	return body;
}

void
http_hold(struct http_exchange *x, void (*on_gone)(void *), void *arg)
{
	x->on_gone = on_gone;
	x->arg = arg;
}

void
http_watch(const struct http_exchange *x)
{
	if (x->conn != NULL && !x->streaming)
		http_conn_watch(x->conn);
}

void
http_add_header(struct http_exchange *x, const char *name, const char *value)
{
	if (x->req == NULL)
		return;
	(void)evhttp_add_header(
	    evhttp_request_get_output_headers(x->req), name, value);
}

static void
exchange_log(const struct http_exchange *x)
{
	const struct http_log_line line = {.id = x->id,
	    .path = x->path,
	    .client = &x->client,
	    .route = x->route,
	    .method = x->method,
	    .status = x->status,
	    .us = clock_mono_us() - x->began_us,
	    .gone = x->conn == NULL};

	if (x->server->on_log != NULL)
		x->server->on_log(&line, x->server->arg);
}

struct evhttp_request *
http_exchange_end(struct http_exchange *x)
{
	struct evhttp_request *req = x->req;
	struct http_server *s = x->server;

	if (req != NULL) {
		if (!x->streaming)
			http_stat_count(s, x->status);
		evhttp_request_set_on_complete_cb(
		    req, http_conn_request_done_cb, x->conn);
		http_conn_set_state(x->conn, HTTP_CONN_WRITING);
		x->conn->x = NULL;
	}
	exchange_log(x);
	exchange_free(x);
	return req;
}

void
http_drop(struct http_exchange *x)
{
	if (!x->streaming)
		x->status = 499; /* for the log */
	(void)http_exchange_end(x);
}

/* ---- what a handler may see */

enum http_method
http_method(const struct http_exchange *x)
{
	return x->method;
}

const char *
http_id(const struct http_exchange *x)
{
	return x->id;
}

const char *
http_header(const struct http_exchange *x, enum http_header h)
{
	return x->header[h];
}

const char *
http_header_named(
    const struct http_exchange *x, const char *name, unsigned int *lines)
{
	const struct evkeyval *kv;
	const char *first = NULL;

	*lines = 0;
	if (x->req == NULL)
		return NULL;
	TAILQ_FOREACH (kv, evhttp_request_get_input_headers(x->req), next) {
		if (strcasecmp(kv->key, name) != 0)
			continue;
		if ((*lines)++ == 0)
			first = plain_value(kv);
	}
	return first;
}

const char *
http_host(const struct http_exchange *x)
{
	return x->authority != NULL ? x->authority : x->header[HTTP_H_HOST];
}

const char *
http_seen_host(const struct http_exchange *x)
{
	return x->seen_host != NULL ? x->seen_host : http_host(x);
}

const char *
http_path(const struct http_exchange *x)
{
	return x->path;
}

int
http_fault(const struct http_exchange *x, const char **text)
{
	*text = x->fault_text;
	return x->fault_status;
}

bool
http_is_gone(const struct http_exchange *x)
{
	return x->req == NULL;
}

bool
http_is_guest(const struct http_exchange *x)
{
	const struct http_server *s = x->server;

	return x->conn != NULL && x->conn->guest &&
	    s->stats.connections > s->limits.connections_max;
}

enum http_fit
http_route(struct http_exchange *x, const struct http_router *router,
    const void **route)
{
	enum http_fit fit;

	http_params_clear(&x->params);
	fit = http_router_match(router, x->path, &x->params, route);
	x->route = *route;
	return fit;
}

const char *
http_param(const struct http_exchange *x, const char *name)
{
	return http_params_find(&x->params, name);
}

const char *
http_query(struct http_exchange *x, const char *name)
{
	if (!x->query_parsed) {
		if (x->query == NULL ||
		    evhttp_parse_query_str(x->query, &x->parsed_query) != 0)
			return NULL;
		x->query_parsed = true;
	}
	return evhttp_find_header(&x->parsed_query, name);
}

const char *
http_query_text(const struct http_exchange *x)
{
	return x->query;
}

static void
keep_principal(struct principal **at, struct principal *who)
{
	struct principal *before = *at;

	*at = principal_ref(who);
	principal_unref(before);
}

void
http_set_principal(struct http_exchange *x, struct principal *who)
{
	keep_principal(&x->who, who);
	if (x->conn != NULL)
		keep_principal(&x->conn->who, who);
}

struct principal *
http_principal(const struct http_exchange *x)
{
	return x->who;
}

bool
http_peer_user(const struct http_exchange *x, uid_t *user)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (x->conn == NULL || x->conn->peer.kind != NETADDR_UNIX ||
	    getsockopt(x->conn->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		return false;
	*user = peer.uid;
	return true;
}

const struct sockaddr *
http_local_address(const struct http_exchange *x, struct sockaddr_storage *out)
{
	union {
		struct sockaddr_storage *ss;
		struct sockaddr *sa;
	} p = {.ss = out};
	socklen_t len = sizeof(*out);

	memset(out, 0, sizeof(*out));
	if (x->conn == NULL || getsockname(x->conn->fd, p.sa, &len) != 0)
		return NULL;
	return p.sa;
}

const struct netaddr *
http_peer(const struct http_exchange *x)
{
	return x->conn != NULL ? &x->conn->peer : NULL;
}

const struct netaddr *
http_client(const struct http_exchange *x)
{
	return &x->client;
}

const char *
http_seen_scheme(const struct http_exchange *x)
{
	return x->seen_https ? "https" : "http";
}

uint32_t
http_admit(const struct http_exchange *x)
{
	return limiter_admit(x->server->limiter, &x->client);
}
