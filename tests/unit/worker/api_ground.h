/* api_ground.h - a client of an engine that can misbehave, and what it says */
#ifndef TESTS_WORKER_API_GROUND_H
#define TESTS_WORKER_API_GROUND_H

struct fixture;
#define TEST_STATE struct fixture *f

#include "tests/unit/worker/fake_engine.h"
#include "worker/docker/docker.h"
#include "worker/http/api.h"
#include "tests/unit/test.h"

struct fixture {
	struct event_base *base;
	struct fake_engine engine;
	struct api *api;
};

struct result {
	bool done;
	int rc;
	long status;
	size_t len;
	char lines[64]; /* of on_line, the first byte of long ones */
	size_t longest;
	char body[256];
	char why[ERR_TEXT_MAX];
};

static inline int
setup(void **state)
{
	static struct fixture f;

	f.base = event_base_new();
	fake_engine_init(&f.engine, f.base);
	f.api = api_new(f.base, &docker_server);
	api_set_socket(f.api, f.engine.path);
	*state = &f;
	return 0;
}

static inline int
teardown(void **state)
{
	struct fixture *f = *state;

	api_free(f->api);
	fake_engine_clear(&f->engine);
	fixture_settle(f->base);
	event_base_free(f->base);
	return 0;
}

static inline void
done_cb(const struct api_answer *a, void *arg)
{
	struct result *r = arg;

	assert_false(r->done);
	r->done = true;
	r->rc = a->rc;
	r->status = a->status;
	r->len = a->len;
	if (a->rc == 0)
		(void)snprintf(r->body, sizeof(r->body), "%.200s", a->body);
	else
		(void)snprintf(r->why, sizeof(r->why), "%s", a->why->msg);
}

/* start - done_cb is told of it */
static inline void
start(struct fixture *f, struct result *r, struct api_ask what)
{
	memset(r, 0, sizeof(*r));
	what.on_done = done_cb;
	what.arg = r;
	(void)api_start(f->api, &what);
	assert_false(r->done);
}

static inline void
get(struct fixture *f, struct result *r, uint32_t timeout_ms, size_t max)
{
	start(f, r,
	    (struct api_ask){.method = "GET",
		.path = "/x",
		.timeout_ms = timeout_ms,
		.max_body = max});
}

/* ask - until it is answered */
static inline void
ask(struct fixture *f, struct result *r, struct api_ask what)
{
	start(f, r, what);
	fixture_loop(f->base, &r->done);
}

static inline void
ask_once(struct fixture *f, struct result *r)
{
	get(f, r, 1000, 100);
	fixture_loop(f->base, &r->done);
}

static inline const char *
answer_hello(struct fake_engine *f, const char *method, const char *path)
{
	(void)f;
	(void)method;
	(void)path;
	return fake_engine_reply(200, "hello");
}

static inline const char *
answer_never(struct fake_engine *f, const char *method, const char *path)
{
	(void)f;
	(void)method;
	(void)path;
	return NULL;
}

static inline const char *
answer_headers(struct fake_engine *f, const char *method, const char *path)
{
	static char all[200000];
	size_t n = (size_t)sprintf(all, "HTTP/1.1 200 X\r\n");

	(void)f;
	(void)method;
	(void)path;
	while (n < 100000)
		n += (size_t)sprintf(
		    all + n, "X-%zu: some text that is of no use\r\n", n);
	(void)sprintf(all + n, "Content-Length: 0\r\n\r\n");
	return all;
}

static inline const char *
answer_interim(struct fake_engine *f, const char *method, const char *path)
{
	static char all[200000];
	size_t n = 0;

	(void)f;
	(void)method;
	(void)path;
	while (n < 150000)
		n +=
		    (size_t)sprintf(all + n, "HTTP/1.1 102 Processing\r\n\r\n");
	return all;
}

static const char *said;

static inline const char *
answer_said(struct fake_engine *f, const char *method, const char *path)
{
	(void)f;
	(void)method;
	(void)path;
	return said;
}

static inline const char *
answer_and_close(struct fake_engine *f, const char *method, const char *path)
{
	f->close_after = true;
	return answer_said(f, method, path);
}

/* engine_says - to whatever it is asked; then closes the connection, or not */
static inline void
engine_says(struct fixture *f, const char *text)
{
	said = text;
	f->engine.answer = answer_said;
}

static inline void
engine_says_and_closes(struct fixture *f, const char *text)
{
	said = text;
	f->engine.answer = answer_and_close;
}

#endif
