/*
 * Boxes that are there: started, inspected, removed, listed.  Each call is an
 * object of its own that ends with its callback.  The engine answers a removal
 * that is under way already with 409: it is asked again until the box is gone.
 */
#include "worker/docker/docker_int.h"

#include <stdio.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/docker/body.h"
#include "worker/docker/isolation.h"
#include "worker/later.h"

#define REMOVE_RETRY_MS 100
#define REMOVE_RETRIES 100
#define STOP_GRACE_S 5
#define CPUSET_TRIES 3

/* ---- inspect */

struct inspect {
	struct docker *d;
	backend_container_cb cb;
	void *arg;
};

static void
inspect_done_cb(const struct api_answer *a, void *arg)
{
	struct inspect *in = arg;
	const struct engine *en = &in->d->engine;
	struct backend_container c = {.is_ours = false};
	struct backend_report report;
	struct err e;
	int rc;

	if (a->rc != 0 || a->status != 200)
		rc = docker_fail(a, "inspect", &e);
	else if (en->users == BACKEND_USERS_UNKNOWN)
		rc = err_set(&e, ERR_BACKEND, "%s", en->detail);
	else
		rc = answer_container(
		    a->body, a->len, in->d->id, &c, &report, &e);
	if (rc == 0 && c.is_ours)
		isolation_write(a->body, a->len,
		    &(struct isolation_host){.policy = in->d->policy,
			.has_seccomp = en->has_seccomp,
			.has_own_users = en->users == BACKEND_USERS_MAPPED,
			.advisories = en->advisories},
		    report.isolation);
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
deletion_done_cb(const struct api_answer *a, void *arg)
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

/* ---- start, stop */

struct asker {
	const char *what;
	backend_done_cb cb;
	void *arg;
};

static struct asker *
asker_new(const char *what, backend_done_cb cb, void *arg)
{
	struct asker *s = xcalloc(1, sizeof(*s));

	*s = (struct asker){what, cb, arg};
	return s;
}

static void
asker_end(struct asker *s, const struct api_answer *a, bool is_good)
{
	struct err e;
	int rc = is_good ? 0 : docker_fail(a, s->what, &e);

	s->cb(rc, rc == 0 ? NULL : &e, s->arg);
	free(s);
}

static void
start_done_cb(const struct api_answer *a, void *arg)
{
	asker_end(arg, a, a->rc == 0 && (a->status == 204 || a->status == 304));
}

void
docker_start(struct backend *b, const struct backend_handle *h,
    backend_done_cb cb, void *arg)
{
	(void)docker_ask((struct docker *)b, "POST", DOCKER_START_MS,
	    start_done_cb, asker_new("start", cb, arg), "/containers/%s/start",
	    backend_handle_text(h));
}

static void
stop_done_cb(const struct api_answer *a, void *arg)
{
	asker_end(arg, a,
	    a->rc == 0 &&
		(a->status == 204 || a->status == 304 || a->status == 404));
}

void
docker_stop(struct backend *b, const struct backend_handle *h,
    backend_done_cb cb, void *arg)
{
	(void)docker_ask((struct docker *)b, "POST", DOCKER_STOP_MS,
	    stop_done_cb, asker_new("stop", cb, arg),
	    "/containers/%s/stop?t=%d", backend_handle_text(h), STOP_GRACE_S);
}

/* ---- bounds */

struct bounding {
	struct docker *d;
	struct backend_handle handle;
	struct backend_bounds bounds;
	bool is_nano;     /* asked in the older form */
	bool is_anywhere; /* asked without processors, as with them it failed */
	char cpuset[PROCESSORS_TEXT_MAX]; /* "": it is not said */
	backend_done_cb cb;
	void *arg;
};

static void bounding_ask(struct bounding *w);

/* A container that was made with NanoCpus takes no quota beside it, and an
 * engine without the cgroup controller no processors: it is asked for less. */
static bool
ask_for_less(struct bounding *w, const struct api_answer *a)
{
	if (a->rc != 0 || a->status < 400)
		return false;
	if (w->bounds.nano_cpus != 0 && !w->is_nano) {
		w->is_nano = true;
		return true;
	}
	if (w->cpuset[0] == '\0' || w->is_anywhere)
		return false;
	w->is_nano = false;
	w->is_anywhere = true;
	return true;
}

/* One box may have been on its way out; an engine that never takes them is
 * not asked for ever. */
static void
learn_cpusets(const struct bounding *w)
{
	unsigned int *refused = &w->d->engine.no_cpuset;

	if (w->cpuset[0] == '\0')
		return;
	if (!w->is_anywhere)
		*refused = 0;
	else if (++*refused == CPUSET_TRIES)
		log_warn("engine: it gives no box processors of its own; "
			 "CROWDED_CPU_PERCENT is a quota alone");
}

static void
choose_cpuset(struct bounding *w)
{
	const struct backend_bounds *b = &w->bounds;
	cpu_set_t own;

	if (w->d->engine.no_cpuset >= CPUSET_TRIES || !processors_own(&own) ||
	    (unsigned int)CPU_COUNT(&own) != w->d->engine.cpus ||
	    !processors_text(&own, b->first_cpu, b->cpus, w->cpuset))
		w->cpuset[0] = '\0';
}

static void
bounding_done_cb(const struct api_answer *a, void *arg)
{
	struct bounding *w = arg;
	struct err e;
	int rc = 0;

	if (a->rc != 0 || (a->status != 200 && a->status != 404)) {
		rc = docker_fail(a, "update", &e);
		if (ask_for_less(w, a)) {
			bounding_ask(w);
			return;
		}
	} else if (a->status == 200) {
		learn_cpusets(w);
	}
	w->cb(rc, rc == 0 ? NULL : &e, w->arg);
	free(w);
}

static void
bounding_ask(struct bounding *w)
{
	char path[API_PATH_MAX], body[BODY_BOUNDS_MAX];

	(void)snprintf(path, sizeof(path), "/containers/%s/update",
	    backend_handle_text(&w->handle));
	body_bounds(body, &w->bounds,
	    w->is_nano ? BODY_CPUS_AS_NANO : BODY_CPUS_AS_QUOTA,
	    w->cpuset[0] == '\0' || w->is_anywhere ? NULL : w->cpuset);
	(void)docker_ask_full(w->d,
	    &(struct api_ask){.method = "POST",
		.path = path,
		.body = body,
		.body_len = strlen(body),
		.timeout_ms = DOCKER_UPDATE_MS,
		.on_done = bounding_done_cb,
		.arg = w});
}

void
docker_set_bounds(struct backend *b, const struct backend_handle *h,
    const struct backend_bounds *bounds, backend_done_cb cb, void *arg)
{
	struct bounding *w = xcalloc(1, sizeof(*w));

	w->d = (struct docker *)b;
	w->handle = *h;
	w->bounds = *bounds;
	w->cb = cb;
	w->arg = arg;
	choose_cpuset(w);
	bounding_ask(w);
}

/* ---- list */

struct listing {
	struct docker *d;
	backend_list_cb cb;
	void *arg;
};

static void
list_done_cb(const struct api_answer *a, void *arg)
{
	struct backend_container *list = NULL;
	struct listing *l = arg;
	size_t n = 0;
	struct err e;
	int rc;

	if (a->rc != 0 || a->status != 200)
		rc = docker_fail(a, "list", &e);
	else
		rc = answer_list(a->body, a->len, l->d->id, &list, &n, &e);
	l->cb(rc, list, n, rc == 0 ? NULL : &e, l->arg);
	free(list);
	free(l);
}

void
docker_list(struct backend *b, backend_list_cb cb, void *arg)
{
	struct docker *d = (struct docker *)b;
	struct listing *l = xcalloc(1, sizeof(*l));
	char path[API_PATH_MAX];
	struct api_ask ask = {.method = "GET",
	    .path = path,
	    .timeout_ms = DOCKER_LIST_MS,
	    .max_body = ANSWER_LIST_MAX,
	    .on_done = list_done_cb,
	    .arg = l};
	struct buf q;

	l->d = d;
	l->cb = cb;
	l->arg = arg;
	buf_init(&q, API_PATH_MAX / 2);
	body_filters_list(&q, d->id);
	(void)snprintf(path, sizeof(path), "/containers/json?all=1&%.*s",
	    (int)buf_len(&q), (const char *)buf_data(&q));
	buf_clear(&q);
	(void)docker_ask_full(d, &ask);
}
