/*
 * fake.h - a transport that writes down what it is told, and tools that end
 * their calls when the test wants
 */
#ifndef TESTS_MCP_FAKE_H
#define TESTS_MCP_FAKE_H

#include <stdio.h>
#include <strings.h>
#include <sys/uio.h>

#include <jansson.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/mcp.h"
#include "tests/unit/test.h"

#define FAKE_EVENTS 16
#define FAKE_HEARTBEAT_MS 15000
#define FAKE_BODY_MAX (1u << 20)

struct fake_line { /* a header of the request */
	const char *name, *value;
};

struct fake_answer {      /* one exchange, as the client saw it */
	int replies;      /* calls of reply */
	int starts, ends; /* of the stream */
	int status;
	char *session;
	char *body; /* NULL: none */
	char *event[FAKE_EVENTS];
	char *event_id[FAKE_EVENTS]; /* NULL: it had none */
	int nevents;
	char *endpoint; /* of HTTP+SSE; NULL: none */
	char *primed;   /* the id of the event without a message; NULL: none */
	int primes;
	unsigned int retry_ms;
	int beats;                     /* comments that show life */
	size_t pending;                /* what fake_pending_cb says */
	bool leaves;                   /* as the next operation finds */
	bool is_full;                  /* there may be no stream more */
	int takes;                     /* calls of stream_take */
	int watches;                   /* calls of watch */
	struct mcp_exchange *exchange; /* as mcp_handle returned */
	const struct fake_line *lines; /* of its request */
};

static inline void
fake_reply_cb(void *handle, int status, const char *session_id,
    const char *body, size_t len)
{
	struct fake_answer *a = handle;

	a->replies++;
	a->status = status;
	a->session = session_id == NULL ? NULL : xstrdup(session_id);
	a->body = body == NULL ? NULL : xstrndup(body, len);
}

/* The client is gone, and it is said from inside an operation. */
static inline bool
fake_has_left(struct fake_answer *a)
{
	bool left = a->leaves;

	a->leaves = false;
	if (left)
		mcp_client_gone(a->exchange);
	return left;
}

static inline int
fake_take_cb(void *handle, struct err *e)
{
	struct fake_answer *a = handle;

	a->takes++;
	return a->is_full ? err_set(e, ERR_QUOTA, "no stream more") : 0;
}

static inline void
fake_start_cb(void *handle, const char *session_id)
{
	struct fake_answer *a = handle;

	assert_int_equal(a->takes, 1);
	a->starts++;
	a->session = session_id == NULL ? NULL : xstrdup(session_id);
	(void)fake_has_left(a);
}

/* The value of a field of the event; NULL: it has none.  The caller frees. */
static inline char *
fake_field(const char *event, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = event; *p != '\n';) {
		size_t len = strcspn(p, "\n");

		if (strncmp(p, name, n) == 0 && strncmp(p + n, ": ", 2) == 0)
			return xstrndup(p + n + 2, len - n - 2);
		p += len + 1;
	}
	return NULL;
}

static inline void
fake_take_event(struct fake_answer *a, const char *event)
{
	char *data = fake_field(event, "data");
	char *kind = fake_field(event, "event");
	char *retry = fake_field(event, "retry");
	char *id = fake_field(event, "id");

	assert_non_null(data);
	if (*data == '\0') {
		assert_null(kind);
		assert_non_null(id);
		assert_non_null(retry);
		a->primes++;
		a->retry_ms = (unsigned int)atoi(retry);
		free(a->primed);
		a->primed = id;
		free(data);
	} else if (kind != NULL && strcmp(kind, "endpoint") == 0) {
		assert_int_equal(a->nevents, 0);
		assert_null(a->endpoint);
		a->endpoint = data;
	} else {
		assert_string_equal(kind, "message");
		assert_true(a->nevents < FAKE_EVENTS);
		a->event_id[a->nevents] = id;
		a->event[a->nevents++] = data;
	}
	free(kind);
	free(retry);
}

/* Keeps messages with their ids, and counts comments. */
static inline void
fake_write_cb(void *handle, const struct iovec *pieces, int n)
{
	struct fake_answer *a = handle;
	char *all;
	size_t len;

	assert_true(a->starts == 1 && a->ends == 0);
	if (fake_has_left(a))
		return;
	all = xcalloc(1, 1);
	for (int i = 0; i < n; i++) {
		char *more = xasprintf("%s%.*s", all, (int)pieces[i].iov_len,
		    (const char *)pieces[i].iov_base);

		free(all);
		all = more;
	}
	len = strlen(all);
	assert_true(len >= 2 && strcmp(all + len - 2, "\n\n") == 0);
	if (all[0] == ':')
		a->beats++;
	else
		fake_take_event(a, all);
	free(all);
}

static inline size_t
fake_pending_cb(void *handle)
{
	const struct fake_answer *a = handle;

	return a->pending;
}

static inline void
fake_end_cb(void *handle)
{
	struct fake_answer *a = handle;

	assert_int_equal(a->starts, 1);
	a->ends++;
}

static inline void
fake_watch_cb(void *handle)
{
	struct fake_answer *a = handle;

	a->watches++;
}

static const struct mcp_transport_ops fake_ops = {.reply = fake_reply_cb,
    .stream_take = fake_take_cb,
    .stream_start = fake_start_cb,
    .stream_write = fake_write_cb,
    .stream_pending = fake_pending_cb,
    .stream_end = fake_end_cb,
    .watch = fake_watch_cb};

static struct principal fake_alice = {
    .refs = 1, .tenant = {1}, .tenant_name = "one", .subject = "alice"};

static inline struct principal *
fake_bob(void)
{
	static struct principal bob = {
	    .refs = 1, .tenant = {2}, .tenant_name = "two", .subject = "bob"};

	return &bob;
}

static inline void
fake_clear(struct fake_answer *a)
{
	free(a->session);
	free(a->body);
	for (int i = 0; i < a->nevents; i++) {
		free(a->event[i]);
		free(a->event_id[i]);
	}
	free(a->endpoint);
	free(a->primed);
	memset(a, 0, sizeof(*a));
}

static inline bool
fake_is_over(const struct fake_answer *a)
{
	return a->replies + a->ends == 1;
}

static const uint8_t fake_key[32] = "0123456789abcdef0123456789abcde";

static inline struct mcp *
fake_server(void)
{
	const struct mcp_config config = {.name = "test",
	    .title = "A test",
	    .version = "1",
	    .instructions = "Be kind",
	    .session_key = fake_key,
	    .session_key_len = sizeof(fake_key),
	    .session_ttl_s = 3600,
	    .body_max = FAKE_BODY_MAX,
	    .heartbeat_ms = FAKE_HEARTBEAT_MS};

	return mcp_new(&config);
}

/* A tool that keeps its call until the test ends it. */
static struct mcp_call *fake_held[2048];
static int fake_nheld;
static json_t *fake_arguments; /* of the last call */
static int fake_called;

static inline void
fake_note(json_t *arguments)
{
	fake_called++;
	json_decref(fake_arguments);
	fake_arguments = json_incref(arguments);
}

/* A tool's good end: text, and structured content unless NULL. */
static inline void
fake_done(struct mcp_call *c, const char *text, json_t *structured)
{
	struct mcp_content *content = mcp_content_new();

	mcp_content_text(content, text, strlen(text));
	if (structured != NULL)
		mcp_content_structured(content, structured);
	mcp_call_result(c, content, MCP_TOOL_DONE);
}

static inline void
fake_fail(struct mcp_call *c, const char *text)
{
	struct mcp_content *content = mcp_content_new();

	mcp_content_text(content, text, strlen(text));
	mcp_call_result(c, content, MCP_TOOL_FAILED);
}

static inline void
fake_progress(struct mcp_call *c, uint64_t done, const char *text)
{
	call_progress(mcp_call_base(c), &(struct call_progress){done, text});
}

static inline void
fake_slow_cb(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arg;
	fake_note(arguments);
	fake_held[fake_nheld++] = c;
}

static inline void
fake_echo_cb(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arg;
	fake_note(arguments);
	fake_done(c, "echoed", json_deep_copy(arguments));
}

static inline void
fake_add(struct mcp *m, const char *text, mcp_tool_cb cb)
{
	json_t *definition = json_loads(text, 0, NULL);
	struct err e;

	assert_non_null(definition);
	assert_int_equal(mcp_add_tool(m, definition, cb, NULL, &e), 0);
	json_decref(definition);
}

static inline void
fake_add_tools(struct mcp *m)
{
	fake_add(m,
	    "{\"name\":\"echo\",\"title\":\"Echo\",\"description\":\"d\","
	    "\"inputSchema\":{\"type\":\"object\",\"properties\":"
	    "{\"n\":{\"type\":\"integer\"},\"s\":{\"type\":\"string\"}},"
	    "\"additionalProperties\":false},"
	    "\"outputSchema\":{\"type\":\"object\"},"
	    "\"icons\":[{\"src\":\"data:,\"}],"
	    "\"annotations\":{\"readOnlyHint\":true}}",
	    fake_echo_cb);
	fake_add(m,
	    "{\"name\":\"slow\",\"description\":\"d\","
	    "\"inputSchema\":{\"type\":\"object\"}}",
	    fake_slow_cb);
}

/* Whoever asks: what a test does not set is what a good client sends. */
struct fake_client {
	const char *accept, *content_type, *session, *version;
	const char *last_event_id;
	enum mcp_route route; /* of HTTP+SSE, as the rest */
	const char *messages, *stream;
	const char *method, *name;     /* Mcp-Method, Mcp-Name */
	const struct fake_line *lines; /* up to one without a name; or NULL */
	struct principal *who;
};

#define FAKE_BOTH "application/json, text/event-stream"

static inline struct fake_client
fake_client(const char *session)
{
	return (struct fake_client){.accept = FAKE_BOTH,
	    .content_type = "application/json",
	    .session = session,
	    .who = &fake_alice};
}

/* A client of MCP 2026-07-28, for one request; name: of the object, or NULL. */
static inline struct fake_client
fake_modern(const char *method, const char *name)
{
	struct fake_client c = fake_client(NULL);

	c.version = "2026-07-28";
	c.method = method;
	c.name = name;
	return c;
}

static inline const char *
fake_header_cb(void *handle, const char *name, unsigned int *lines)
{
	const struct fake_answer *a = handle;
	const struct fake_line *l = a->lines;
	const char *first = NULL;

	*lines = 0;
	for (; l != NULL && l->name != NULL; l++)
		if (strcasecmp(l->name, name) == 0 && (*lines)++ == 0)
			first = l->value;
	return first;
}

static inline void
fake_http(struct mcp *m, const char *method, const struct fake_client *c,
    const void *body, size_t len, struct fake_answer *a)
{
	struct mcp_http http = {.method = method,
	    .content_type = c->content_type,
	    .accept = c->accept,
	    .session_id = c->session,
	    .protocol_version = c->version,
	    .last_event_id = c->last_event_id,
	    .route = c->route,
	    .messages = c->messages,
	    .stream_id = c->stream,
	    .mcp_method = c->method,
	    .mcp_name = c->name,
	    .header = fake_header_cb,
	    .who = c->who,
	    .request_id = "http-1"};
	/* An exact copy on the heap: reading past it is found. */
	char *copy = xmemdup(body == NULL ? "" : body, len);

	memset(a, 0, sizeof(*a));
	a->lines = c->lines;
	http.body = copy;
	http.body_len = len;
	a->exchange = mcp_handle(m, &http, &fake_ops, a);
	assert_true((a->exchange == NULL) == fake_is_over(a));
	free(copy);
}

static inline void
fake_post(struct mcp *m, const struct fake_client *c, const char *body,
    struct fake_answer *a)
{
	fake_http(m, "POST", c, body, strlen(body), a);
}

#define FAKE_INITIALIZE(version)                                               \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","             \
	"\"params\":{\"protocolVersion\":\"" version "\",\"capabilities\":{}," \
	"\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}"

/* A session id of who; the caller frees. */
static inline char *
fake_session_of(struct mcp *m, struct principal *who, const char *init)
{
	struct fake_client c = fake_client(NULL);
	struct fake_answer a;
	char *session;

	c.who = who;
	fake_post(m, &c, init, &a);
	assert_int_equal(a.status, 200);
	assert_non_null(a.session);
	session = xstrdup(a.session);
	fake_clear(&a);
	return session;
}

static inline char *
fake_session(struct mcp *m)
{
	return fake_session_of(m, &fake_alice, FAKE_INITIALIZE("2025-11-25"));
}

/* ---- looking at answers */

/* Borrowed from the parsed text, which goes with the next look. */
static json_t *fake_seen;

static inline json_t *
fake_parse(const char *text)
{
	json_decref(fake_seen);
	fake_seen =
	    text == NULL ? NULL : json_loads(text, JSON_ALLOW_NUL, NULL);
	assert_non_null(fake_seen);
	return fake_seen;
}

/* Status and code of an error; the code 0: a result. */
static inline void
fake_expect(const struct fake_answer *a, int status, int code)
{
	json_t *j, *error;

	assert_int_equal(a->replies, 1);
	assert_int_equal(a->status, status);
	j = fake_parse(a->body);
	error = json_object_get(j, "error");
	assert_int_equal(
	    json_integer_value(json_object_get(error, "code")), code);
	assert_true((json_object_get(j, "result") == NULL) == (code != 0));
	assert_string_equal(
	    json_string_value(json_object_get(j, "jsonrpc")), "2.0");
}

static inline void
fake_expect_has(const char *text, const char *part)
{
	if (text == NULL || strstr(text, part) == NULL)
		fail_msg("%s is not in %s", part, text);
}

/* Post, compare status and code, forget. */
static inline void
fake_ask(struct mcp *m, const struct fake_client *c, const char *body,
    int status, int code)
{
	struct fake_answer a;

	fake_post(m, c, body, &a);
	fake_expect(&a, status, code);
	fake_clear(&a);
}

static inline int
fake_teardown(void **state)
{
	(void)state;
	json_decref(fake_seen);
	fake_seen = NULL;
	json_decref(fake_arguments);
	fake_arguments = NULL;
	fake_called = 0;
	fake_nheld = 0;
	return 0;
}

#endif
