/* fixture.h - a whole front over a real core and store, and a client. */
#ifndef TESTS_FRONT_FIXTURE_H
#define TESTS_FRONT_FIXTURE_H

#include "tests/unit/front/worker.h"

#include "common/metric.h"
#include "common/js.h"
#include "common/log.h"
#include "supervisor/front/front.h"
#include "tests/unit/test.h"

struct fixture {
	char dir[64];
	struct event_base *base;
	struct conf *conf;
	struct store *store;
	struct core *core;
	struct principal *who;
	struct front *front;
	struct worker worker;
	struct raw c;
	uint16_t port;
	bool head;         /* the last request was one */
	char session[256]; /* of fixture_initialize */
};

static struct fixture fx;
static uint32_t fixture_heartbeat_ms = FRONT_HEARTBEAT_MS;

/* settings: pairs of key and value, then NULL */
static inline void
fixture_open(const char *const *settings)
{
	const uint8_t key[FRONT_KEY_BYTES] = {7};
	struct core_parts of_core;
	struct front_parts parts;
	struct err e;

	metric_clear();
	fx = (struct fixture){.base = event_base_new()};
	(void)snprintf(fx.dir, sizeof(fx.dir), "/tmp/test-front-XXXXXX");
	assert_non_null(mkdtemp(fx.dir));
	fx.conf = conf_new();
	assert_int_equal(conf_set(fx.conf, "WORKERS", "1", &e), 0);
	for (; settings != NULL && *settings != NULL; settings += 2)
		assert_int_equal(
		    conf_set(fx.conf, settings[0], settings[1], &e), 0);
	log_set_level(LOG_ERROR);
	assert_int_equal(store_open(fx.base, fx.dir, NULL, &fx.store, &e), 0);
	fx.who = principal_new((struct tenant_id){STORE_TENANT_DEFAULT},
	    "default", "test", PRINCIPAL_USER);
	of_core = (struct core_parts){.base = fx.base,
	    .conf = fx.conf,
	    .store = fx.store,
	    .instance = "i"};
	assert_int_equal(core_new(&of_core, &fx.core, &e), 0);
	assert_int_equal(core_recover(fx.core, &e), 0);
	parts = (struct front_parts){.base = fx.base,
	    .conf = fx.conf,
	    .core = fx.core,
	    .tools = embed_tools,
	    .dir = fx.dir,
	    .session_key = key,
	    .heartbeat_ms = fixture_heartbeat_ms};
	if (front_new(&parts, &fx.front, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(front_listen(fx.front, raw_listen(&fx.port), &e), 0);
	worker_open(&fx.worker, fx.base, fx.core);
	raw_open(&fx.c, fx.port, 0);
}

static inline void
fixture_close(void)
{
	raw_close(&fx.c);
	front_free(fx.front);
	worker_close(&fx.worker);
	core_free(fx.core);
	principal_unref(fx.who);
	store_close(fx.store);
	conf_free(fx.conf);
	for (unsigned int i = 0; i < 3; i++) /* libevent frees a turn later */
		(void)event_base_loop(fx.base, EVLOOP_NONBLOCK);
	event_base_free(fx.base);
	world_remove_dir(fx.dir);
}

static inline void
fixture_idle_cb(void *arg)
{
	(void)arg;
}

static inline int
fixture_setup(void **state)
{
	(void)state;
	fixture_open(NULL);
	return 0;
}

static inline int
fixture_teardown(void **state)
{
	(void)state;
	fixture_close();
	return 0;
}

/* ---- requests */

/* The first line and headers, then the body; %s in more: header lines. */
static inline void
fixture_send(
    const char *method, const char *path, const char *more, const char *body)
{
	char *text = xasprintf("%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
			       "Content-Length: %zu\r\n%s\r\n%s",
	    method, path, fx.port, strlen(body), more, body);

	fx.head = strcmp(method, "HEAD") == 0;
	raw_send(&fx.c, fx.base, text);
	free(text);
}

/* One whole answer with a Content-Length (or none); then it is in fx.c. */
static inline bool
fixture_is_whole(void)
{
	const char *text, *end, *length;
	size_t n = 0;

	raw_receive(&fx.c);
	text = raw_text(&fx.c);
	end = strstr(text, "\r\n\r\n");
	if (end == NULL)
		return fx.c.ended;
	length = strcasestr(text, "\r\nContent-Length: ");
	if (length != NULL && length < end && !fx.head)
		n = strtoul(length + 18, NULL, 10);
	return fx.c.ended || buf_len(&fx.c.in) >= (size_t)(end + 4 - text) + n;
}

static inline const char *
fixture_answer(void)
{
	raw_wait_until(fx.base, fixture_is_whole());
	return raw_text(&fx.c);
}

static inline const char *
fixture_ask(
    const char *method, const char *path, const char *more, const char *body)
{
	buf_consume(&fx.c.in, buf_len(&fx.c.in));
	fixture_send(method, path, more, body);
	return fixture_answer();
}

static inline int
fixture_status(const char *answer)
{
	int status = 0;

	(void)sscanf(answer, "HTTP/1.%*d %d", &status);
	return status;
}

static inline void
fixture_expect(
    const char *method, const char *path, const char *more, int status)
{
	const char *text = fixture_ask(method, path, more, "");

	if (fixture_status(text) != status)
		fail_msg("%s %s %s: wanted %d, got %.500s", method, path, more,
		    status, text);
}

/* What came of the last answer has this text. */
static inline void
fixture_has(const char *text)
{
	if (!raw_has(&fx.c, text))
		fail_msg("%s is not in %.1000s", text, raw_text(&fx.c));
}

static inline json_t *
fixture_body(const char *answer)
{
	const char *end = strstr(answer, "\r\n\r\n");
	json_t *o;

	assert_non_null(end);
	o = json_loads(end + 4, 0, NULL);
	if (o == NULL)
		fail_msg("no JSON: %.1000s", answer);
	return o;
}

/* ---- MCP */

#define FIXTURE_JSON "Content-Type: application/json\r\n"
#define FIXTURE_BOTH "Accept: application/json, text/event-stream\r\n"

static inline void
fixture_initialize_as(const char *authorization)
{
	AUTO(auto_free)
	char *more = xasprintf("%s" FIXTURE_JSON FIXTURE_BOTH, authorization);
	const char *p;
	size_t n;

	p = fixture_ask("POST", "/mcp", more,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
	    "\"params\":{\"protocolVersion\":\"2025-11-25\","
	    "\"capabilities\":{},\"clientInfo\":{\"name\":\"t\","
	    "\"version\":\"1\"}}}");
	p = strstr(p, "\r\nMcp-Session-Id: ");
	assert_non_null(p);
	n = strcspn(p + 18, "\r");
	assert_true(n < sizeof(fx.session));
	memcpy(fx.session, p + 18, n);
	fx.session[n] = '\0';
	p = strstr(raw_text(&fx.c), "\"protocolVersion\":\"2025-11-25\"");
	assert_non_null(p);
}

static inline void
fixture_initialize(void)
{
	fixture_initialize_as("");
}

static inline void
fixture_call(const char *accept, const char *tool, const char *arguments)
{
	char *more = xasprintf("%s%sMcp-Session-Id: %s\r\n"
			       "MCP-Protocol-Version: 2025-11-25\r\n",
	    FIXTURE_JSON, accept, fx.session);
	char *body = xasprintf("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":"
			       "\"tools/call\",\"params\":{\"name\":\"%s\","
			       "\"arguments\":%s}}",
	    tool, arguments);

	buf_consume(&fx.c.in, buf_len(&fx.c.in));
	fixture_send("POST", "/mcp", more, body);
	free(more);
	free(body);
}

/* The same, as a program asks. */
static inline void
fixture_call_structured(
    const char *accept, const char *tool, const char *arguments)
{
	AUTO(auto_free)
	char *both = xasprintf(
	    "%s,\"_meta\":{\"mcp-sandboxd/structured\":true}", arguments);

	fixture_call(accept, tool, both);
}

/* The member at a path such as "error.code" or "list.0"; NULL: none. */
static inline json_t *
fixture_at(const json_t *o, const char *path)
{
	AUTO(auto_free) char *copy = xstrdup(path);
	char *rest = copy, *part;
	const json_t *at = o;

	while ((part = strsep(&rest, ".")) != NULL)
		at = json_is_array(at) ?
		    json_array_get(at, strtoul(part, NULL, 10)) :
		    json_object_get(at, part);
	return (json_t *)(uintptr_t)at;
}

static inline const char *
fixture_text_at(const json_t *o, const char *path)
{
	return json_string_value(fixture_at(o, path));
}

/* Headers of a message of the session; the caller's. */
static inline char *
fixture_session(void)
{
	return xasprintf(
	    FIXTURE_JSON FIXTURE_BOTH "Mcp-Session-Id: %s\r\n", fx.session);
}

static inline void
fixture_reconnect(void)
{
	raw_close(&fx.c);
	raw_open(&fx.c, fx.port, 0);
}

/* result of the answer to fixture_call; the caller's */
static inline json_t *
fixture_result(void)
{
	json_t *o = fixture_body(fixture_answer());
	json_t *result = json_incref(json_object_get(o, "result"));

	if (result == NULL)
		fail_msg("no result: %.1000s", raw_text(&fx.c));
	json_decref(o);
	return result;
}

/* fixture_call and its result, in a session of its own if there is none. */
static inline json_t *
fixture_use(const char *tool, const char *arguments)
{
	if (fx.session[0] == '\0')
		fixture_initialize();
	fixture_call_structured(FIXTURE_BOTH, tool, arguments);
	return fixture_result();
}

/* Start a run without waiting for it; its id is the caller's to free. */
static inline char *
fixture_start_run(void)
{
	unsigned int before = fx.worker.runs;
	json_t *result;
	char *id;

	result = fixture_use("run_sandbox",
	    "{\"identifier\":\"box\",\"commands\":[{\"shell\":\"true\"}],"
	    "\"options\":{\"await_completion\":false}}");
	id = xstrdup(fixture_text_at(result, "structuredContent.run_id"));
	json_decref(result);
	raw_wait_until(fx.base, fx.worker.runs > before);
	return id;
}

static inline void
fixture_wait_run_state(const char *id, const char *state)
{
	char *path = xasprintf("/mcp/runs/%s", id);
	char *want = xasprintf("\"state\":\"%s\"", state);

	raw_wait_until(
	    fx.base, strstr(fixture_ask("GET", path, "", ""), want) != NULL);
	free(path);
	free(want);
}

#endif
