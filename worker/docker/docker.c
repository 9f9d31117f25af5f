#include "worker/docker/internal.h"

#include <stdio.h>

#include <event2/event.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/docker/body.h"
#include "worker/later.h"

#define REMOVE_RETRY_MS 100
#define REMOVE_RETRIES 100

/* ---- asking */

struct http_call *
docker_ask_full(struct docker *d, const struct http_ask *ask)
{
	struct http_ask full = *ask;
	char path[HTTP_PATH_MAX];

	(void)snprintf(path, sizeof(path), "/%s%s", d->api, ask->path);
	full.path = path;
	return http_start(d->http, &full);
}

struct http_call *
docker_ask(struct docker *d, const char *method, uint32_t timeout_ms,
    void (*on_done)(const struct http_answer *, void *), void *arg,
    const char *path, ...)
{
	char text[HTTP_PATH_MAX];
	struct http_ask ask = {.method = method,
	    .path = text,
	    .timeout_ms = timeout_ms,
	    .max_body = ANSWER_SMALL_MAX,
	    .on_done = on_done,
	    .arg = arg};
	va_list ap;

	va_start(ap, path);
	(void)vsnprintf(text, sizeof(text), path, ap);
	va_end(ap);
	return docker_ask_full(d, &ask);
}

int
docker_fail(const struct http_answer *a, const char *what, struct err *e)
{
	char text[ANSWER_TEXT_MAX];

	if (a->rc != 0)
		return err_set(e, ERR_BACKEND, "%s: %s", what, a->why->msg);
	answer_message(a->body, a->len, text);
	return err_set(e, a->status == 404 ? ERR_NOTFOUND : ERR_BACKEND,
	    "%s: the engine answers %ld: %s", what, a->status, text);
}

/* ---- inspect */

struct inspect {
	struct docker *d;
	backend_container_cb cb;
	void *arg;
};

static void
inspect_done_cb(const struct http_answer *a, void *arg)
{
	struct inspect *in = arg;
	struct backend_container c;
	struct err e;
	int rc;

	if (a->rc != 0 || a->status != 200)
		rc = docker_fail(a, "inspect", &e);
	else
		rc = answer_container(a->body, a->len, in->d->instance, &c, &e);
	in->cb(rc, rc == 0 ? &c : NULL, rc == 0 ? NULL : &e, in->arg);
	free(in);
}

void
docker_inspect(struct backend *b, const struct backend_handle *h,
    backend_container_cb cb, void *arg)
{
	struct docker *d = (struct docker *)b;
	struct inspect *in = xcalloc(1, sizeof(*in));

	in->d = d;
	in->cb = cb;
	in->arg = arg;
	(void)docker_ask(d, "GET", DOCKER_INSPECT_MS, inspect_done_cb, in,
	    "/containers/%s/json", backend_handle_text(h));
}

/* ---- remove */

struct deletion {
	struct docker *d;
	struct backend_handle handle;
	unsigned int tries;
	backend_done_cb cb;
	void *arg;
};

static void deletion_send(void *arg);

static void
deletion_end(struct deletion *r, int rc, const struct err *why)
{
	r->cb(rc, why, r->arg);
	free(r);
}

static void
deletion_done_cb(const struct http_answer *a, void *arg)
{
	struct deletion *r = arg;
	struct err e;
	int rc;

	if (a->rc == 0 && (a->status == 204 || a->status == 404)) {
		deletion_end(r, 0, NULL);
		return;
	}
	/* "removal of container X is already in progress": see it through. */
	if (a->rc == 0 && a->status == 409 && ++r->tries < REMOVE_RETRIES) {
		later_ms(r->d->base, REMOVE_RETRY_MS, deletion_send, r);
		return;
	}
	rc = docker_fail(a, "remove", &e);
	deletion_end(r, rc, &e);
}

static void
deletion_send(void *arg)
{
	struct deletion *r = arg;

	(void)docker_ask(r->d, "DELETE", DOCKER_REMOVE_MS, deletion_done_cb, r,
	    "/containers/%s?force=1&v=1", backend_handle_text(&r->handle));
}

void
docker_remove(struct backend *b, const struct backend_handle *h,
    backend_done_cb cb, void *arg)
{
	struct deletion *r = xcalloc(1, sizeof(*r));

	r->d = (struct docker *)b;
	r->handle = *h;
	r->cb = cb;
	r->arg = arg;
	deletion_send(r);
}

/* ---- list */

struct listing {
	struct docker *d;
	backend_list_cb cb;
	void *arg;
};

static void
list_done_cb(const struct http_answer *a, void *arg)
{
	struct backend_container *list = NULL;
	struct listing *l = arg;
	size_t n = 0;
	struct err e;
	int rc;

	if (a->rc != 0 || a->status != 200)
		rc = docker_fail(a, "list", &e);
	else
		rc =
		    answer_list(a->body, a->len, l->d->instance, &list, &n, &e);
	l->cb(rc, list, n, rc == 0 ? NULL : &e, l->arg);
	free(list);
	free(l);
}

static void
docker_list(struct backend *b, backend_list_cb cb, void *arg)
{
	struct docker *d = (struct docker *)b;
	struct listing *l = xcalloc(1, sizeof(*l));
	char path[HTTP_PATH_MAX];
	struct http_ask ask = {.method = "GET",
	    .path = path,
	    .timeout_ms = DOCKER_LIST_MS,
	    .max_body = ANSWER_LIST_MAX,
	    .on_done = list_done_cb,
	    .arg = l};
	struct buf q;

	l->d = d;
	l->cb = cb;
	l->arg = arg;
	buf_init(&q, HTTP_PATH_MAX / 2);
	body_filters_list(&q, d->instance);
	(void)snprintf(path, sizeof(path), "/containers/json?all=1&%.*s",
	    (int)buf_len(&q), (const char *)buf_data(&q));
	buf_clear(&q);
	(void)docker_ask_full(d, &ask);
}

/* ---- life */

static void
docker_free(struct backend *b)
{
	struct docker *d = (struct docker *)b;

	d->freeing = true;
	events_stop(d);
	engine_clear(d);
	http_free(d->http);
	open_clear(d);
	image_clear(d);
	answer_lines_clear(&d->lines);
	free(d->instance);
	free(d->dockerfile);
	free(d);
}

static const struct backend_ops docker_ops = {
    .can = BACKEND_HAS_PID | BACKEND_HAS_MOUNTS,
    .free = docker_free,
    .open = open_new,
    .abandon = open_abandon,
    .inspect = docker_inspect,
    .remove = docker_remove,
    .list = docker_list};

int
docker_new(struct event_base *base, const struct docker_settings *s,
    const struct backend_watch *watch, void *arg, struct backend **out,
    struct err *e)
{
	struct docker *d = xcalloc(1, sizeof(*d));

	d->b.ops = &docker_ops;
	d->base = base;
	d->policy = s->policy;
	d->instance = xstrdup(s->instance);
	d->dockerfile = xstrdup(s->dockerfile != NULL ? s->dockerfile : "");
	d->auto_build = s->auto_build;
	d->watch = watch;
	d->watch_arg = arg;
	d->http = http_new(base);
	STAILQ_INIT(&d->images);
	TAILQ_INIT(&d->opens);
	answer_lines_init(&d->lines);
	if (engine_init(d, s->host, e) != 0) {
		docker_free(&d->b);
		return ERR_INVAL;
	}
	*out = &d->b;
	return 0;
}
