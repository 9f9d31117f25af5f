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
#define STOP_GRACE_S "5"
#define CPUSET_TRIES 3

struct container_request {
	struct docker *d;
	const char *what;
	struct backend_handle handle;
	unsigned int tries; /* of a removal */
	union {
		backend_done_cb done;
		backend_container_cb container;
		backend_list_cb list;
	} cb;
	void *arg;
};

/* h NULL: of no box. */
static struct container_request *
request_new(struct backend *b, const char *what, const struct backend_handle *h,
    backend_done_cb cb, void *arg)
{
	struct container_request *r = xcalloc(1, sizeof(*r));

	r->d = (struct docker *)b;
	r->what = what;
	if (h != NULL)
		r->handle = *h;
	r->cb.done = cb;
	r->arg = arg;
	return r;
}

/* To what is behind the box's place. */
static void
request_send(struct container_request *r, const char *method,
    uint32_t timeout_ms, void (*on_done)(const struct api_answer *, void *),
    const char *behind)
{
	(void)docker_ask(r->d,
	    &(struct api_ask){.method = method,
		.timeout_ms = timeout_ms,
		.on_done = on_done,
		.arg = r},
	    "/containers/%s%s", backend_handle_text(&r->handle), behind);
}

/* ---- inspect */

static void
inspect_done_cb(const struct api_answer *a, void *arg)
{
	struct container_request *r = arg;
	const struct engine *en = &r->d->engine;
	struct backend_container c = {.is_ours = false};
	struct backend_report report;
	struct err e;
	int rc = docker_check(a, r->what, &e);

	if (rc == 0 && en->users == BACKEND_USERS_UNKNOWN)
		rc = err_set(&e, ERR_BACKEND, "%s", en->detail);
	if (rc == 0)
		rc = answer_container(
		    a->body, a->len, r->d->id, &c, &report, &e);
	if (rc == 0 && c.is_ours)
		isolation_write(a->body, a->len,
		    &(struct isolation_host){.policy = r->d->policy,
			.has_seccomp = en->has_seccomp,
			.has_own_users = en->users == BACKEND_USERS_MAPPED,
			.advisories = en->advisories},
		    report.isolation);
	r->cb.container(rc, rc == 0 ? &c : NULL, rc == 0 ? NULL : &e, r->arg);
	free(r);
}

void
docker_inspect(struct backend *b, const struct backend_handle *h,
    backend_container_cb cb, void *arg)
{
	struct container_request *r = request_new(b, "inspect", h, NULL, arg);

	r->cb.container = cb;
	request_send(r, "GET", DOCKER_INSPECT_MS, inspect_done_cb, "/json");
}

/* ---- start, stop, remove */

static void
request_end(
    struct container_request *r, const struct api_answer *a, bool is_good)
{
	struct err e;
	int rc = is_good ? 0 : docker_fail(a, r->what, &e);

	r->cb.done(rc, rc == 0 ? NULL : &e, r->arg);
	free(r);
}

static void
start_done_cb(const struct api_answer *a, void *arg)
{
	request_end(
	    arg, a, a->rc == 0 && (a->status == 204 || a->status == 304));
}

void
docker_start(struct backend *b, const struct backend_handle *h,
    backend_done_cb cb, void *arg)
{
	request_send(request_new(b, "start", h, cb, arg), "POST",
	    DOCKER_START_MS, start_done_cb, "/start");
}

static void
stop_done_cb(const struct api_answer *a, void *arg)
{
	request_end(arg, a,
	    a->rc == 0 &&
		(a->status == 204 || a->status == 304 || a->status == 404));
}

void
docker_stop(struct backend *b, const struct backend_handle *h,
    backend_done_cb cb, void *arg)
{
	request_send(request_new(b, "stop", h, cb, arg), "POST", DOCKER_STOP_MS,
	    stop_done_cb, "/stop?t=" STOP_GRACE_S);
}

static void remove_send(void *arg);

static void
remove_done_cb(const struct api_answer *a, void *arg)
{
	struct container_request *r = arg;

	/* "removal of container X is already in progress": see it through. */
	if (a->rc == 0 && a->status == 409 && ++r->tries < REMOVE_RETRIES)
		later_ms(r->d->base, REMOVE_RETRY_MS, remove_send, r);
	else
		request_end(
		    r, a, a->rc == 0 && (a->status == 204 || a->status == 404));
}

static void
remove_send(void *arg)
{
	request_send(
	    arg, "DELETE", DOCKER_REMOVE_MS, remove_done_cb, "?force=1&v=1");
}

void
docker_remove(struct backend *b, const struct backend_handle *h,
    backend_done_cb cb, void *arg)
{
	remove_send(request_new(b, "remove", h, cb, arg));
}

/* ---- bounds */

struct bounding {
	struct docker *d;
	struct backend_handle handle;
	struct backend_bounds bounds;
	bool is_nano;     /* asked in the older form */
	bool is_anywhere; /* asked without processors, as with them it failed */
	char cpuset[BODY_CPUSET_MAX]; /* "": it is not said */
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

	if (w->d->engine.no_cpuset >= CPUSET_TRIES ||
	    sched_getaffinity(0, sizeof(own), &own) != 0 ||
	    (unsigned int)CPU_COUNT(&own) != w->d->engine.cpus ||
	    !body_cpuset(&own, b->first_cpu, b->cpus, w->cpuset))
		w->cpuset[0] = '\0';
}

/* Podman has no such request until 4.6. */
static void
learn_no_update(const struct bounding *w, const struct api_answer *a)
{
	bool *said = &w->d->engine.has_no_update;

	if (a->body[0] == '{' || *said)
		return;
	*said = true;
	log_warn("engine: it changes no box that runs; CROWDED_CPU_PERCENT "
		 "does nothing");
}

static void
bounding_done_cb(const struct api_answer *a, void *arg)
{
	struct bounding *w = arg;
	struct err e;
	int rc = 0;

	if (a->rc == 0 && a->status == 200) {
		learn_cpusets(w);
	} else if (a->rc == 0 && a->status == 404) {
		learn_no_update(w, a);
	} else {
		rc = docker_fail(a, "update", &e);
		if (ask_for_less(w, a)) {
			bounding_ask(w);
			return;
		}
	}
	w->cb(rc, rc == 0 ? NULL : &e, w->arg);
	free(w);
}

static void
bounding_ask(struct bounding *w)
{
	char body[BODY_BOUNDS_MAX];

	body_bounds(body, &w->bounds,
	    w->is_nano ? BODY_CPUS_AS_NANO : BODY_CPUS_AS_QUOTA,
	    w->cpuset[0] == '\0' || w->is_anywhere ? NULL : w->cpuset);
	(void)docker_ask(w->d,
	    &(struct api_ask){.method = "POST",
		.body = body,
		.body_len = strlen(body),
		.timeout_ms = DOCKER_UPDATE_MS,
		.on_done = bounding_done_cb,
		.arg = w},
	    "/containers/%s/update", backend_handle_text(&w->handle));
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

static void
list_done_cb(const struct api_answer *a, void *arg)
{
	AUTO(auto_free) struct backend_container *list = NULL;
	struct container_request *r = arg;
	size_t n = 0;
	struct err e;
	int rc = docker_check(a, r->what, &e);

	if (rc == 0)
		rc = answer_list(a->body, a->len, r->d->id, &list, &n, &e);
	r->cb.list(rc, list, n, rc == 0 ? NULL : &e, r->arg);
	free(r);
}

void
docker_list(struct backend *b, backend_list_cb cb, void *arg)
{
	struct container_request *r = request_new(b, "list", NULL, NULL, arg);
	AUTO(auto_free) char *filters = body_filters_list(r->d->id);

	r->cb.list = cb;
	(void)docker_ask(r->d,
	    &(struct api_ask){.method = "GET",
		.timeout_ms = DOCKER_LIST_MS,
		.max_body = ANSWER_LIST_MAX,
		.on_done = list_done_cb,
		.arg = r},
	    "/containers/json?all=1&filters=%s", filters);
}
