/*
 * One sandbox on its way: the engine is known, its image is there, a slot is
 * free, create, start, inspect.  Whatever goes wrong behind create takes the
 * container away again before the caller hears of it.
 */
#include "worker/docker/docker_int.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/ceilings.h"
#include "worker/docker/body.h"
#include "worker/later.h"

/* A name may be taken by a container that is not there yet: the engine still
 * makes it, for a worker that died. */
#define NAME_AGAIN_MS 100
#define NAME_TRIES 100
/* Creates without a limit until the engine is asked for one again: it may have
 * failed for another reason. */
#define QUOTA_AGAIN 16

enum open_stage {
	OPEN_ENGINE, /* waits to know whether there is one */
	OPEN_IMAGE,
	OPEN_SLOT,
	OPEN_COUNT, /* from here on it holds a slot */
	OPEN_CREATE,
	OPEN_START,
	OPEN_INSPECT,
	OPEN_UNDO,
	OPEN_END
};

struct backend_open {
	struct docker *d;
	enum open_stage stage;
	uint64_t nmade; /* opens.nmade when it asked what there is */
	bool abandoned;
	bool retried;  /* create was tried a second time */
	bool sent;     /* create was: a container may be there */
	bool quota;    /* with a limit that the engine is to enforce */
	bool no_quota; /* it failed with one */
	struct backend_spec spec;
	char *texts[4];               /* what spec's strings point to */
	struct backend_wishes wishes; /* spec's */
	struct image_wait *wait;
	unsigned int ntries; /* of its name */
	struct timer *again;
	char image_id[ANSWER_IMAGE_ID_MAX];
	struct backend_handle handle; /* not set before it is created */
	struct backend_opened out;
	int rc;
	struct err why;
	backend_opened_cb cb;
	void *arg;
	TAILQ_ENTRY(backend_open) link;
};

static void open_image(struct backend_open *o);
static void open_create(struct backend_open *o);
static void open_next(struct docker *d);

void
open_init(struct docker *d)
{
	TAILQ_INIT(&d->opens.all);
}

/* ---- the end */

static void
open_free(struct backend_open *o)
{
	for (size_t i = 0; i < ARRAY_LEN(o->texts); i++)
		free(o->texts[i]);
	timer_free(o->again);
	free(o);
}

static void
open_end(void *arg)
{
	struct backend_open *o = arg;
	struct docker *d = o->d;

	TAILQ_REMOVE(&d->opens.all, o, link);
	if (o->rc == 0) {
		d->opens.nmade++;
		o->cb(0, &o->out, NULL, o->arg);
	} else {
		o->cb(o->rc, NULL, &o->why, o->arg);
	}
	open_free(o);
}

static void
open_leave(struct backend_open *o)
{
	struct docker *d = o->d;
	bool had_slot = o->stage >= OPEN_COUNT;

	o->stage = OPEN_END;
	if (had_slot)
		d->opens.nbusy--;
	open_end(o);
	if (had_slot && !d->freeing)
		open_next(d);
}

/* ---- undoing */

static void
undone_cb(int rc, const struct err *why, void *arg)
{
	struct backend_open *o = arg;

	if (rc != 0)
		log_warn("container %s is left over for now: %s", o->spec.name,
		    why->msg);
	open_leave(o);
}

/* Nobody knows whether create came through: only what bears our uuid goes. */
static void
undo_found_cb(
    int rc, const struct backend_container *c, const struct err *why, void *arg)
{
	struct backend_open *o = arg;

	(void)why;
	if (rc != 0 || !backend_is_box(c, &o->spec.identity)) {
		open_leave(o);
		return;
	}
	o->handle = c->handle;
	docker_remove(&o->d->b, &o->handle, undone_cb, o);
}

static void
look_by_name(struct backend_open *o, backend_container_cb cb)
{
	struct backend_handle h;

	backend_handle_named(&h, o->spec.name);
	docker_inspect(&o->d->b, &h, cb, o);
}

/* o->rc and o->why are set. */
static void
open_fail(struct backend_open *o)
{
	if (o->abandoned)
		o->rc = err_set(&o->why, ERR_WRONG_STATE,
		    "the sandbox is not wanted any more");
	if (!o->sent || o->d->freeing) {
		open_leave(o);
		return;
	}
	o->stage = OPEN_UNDO;
	if (backend_handle_is_set(&o->handle))
		docker_remove(&o->d->b, &o->handle, undone_cb, o);
	else
		look_by_name(o, undo_found_cb);
}

/* ---- inspect */

static void
inspected_cb(
    int rc, const struct backend_container *c, const struct err *why, void *arg)
{
	struct backend_open *o = arg;

	if (rc != 0) {
		o->why = *why;
		o->rc = rc;
	} else if (!backend_is_box(c, &o->spec.identity)) {
		o->rc = err_set(&o->why, ERR_BACKEND,
		    "the engine shows another container than it made");
	} else if (!c->running) {
		o->rc = err_set(&o->why, ERR_BACKEND,
		    "the sandbox ended while it started: status %d%s",
		    c->exit_code, c->oom_killed ? ", out of memory" : "");
	}
	if (o->rc != 0 || o->abandoned) {
		open_fail(o);
		return;
	}
	o->out.c = *c; /* its report lives until we return, and so does o */
	open_leave(o);
}

static void
open_inspect(struct backend_open *o)
{
	o->stage = OPEN_INSPECT;
	docker_inspect(&o->d->b, &o->handle, inspected_cb, o);
}

/* ---- start */

static void
started_cb(const struct api_answer *a, void *arg)
{
	struct backend_open *o = arg;

	o->out.start_us = (uint32_t)a->took_us;
	if (a->rc != 0 || (a->status != 204 && a->status != 304)) {
		(void)docker_fail(a, "start", &o->why);
		o->rc = o->why.code = ERR_BACKEND;
	}
	if (o->rc != 0 || o->abandoned)
		open_fail(o);
	else
		open_inspect(o);
}

static void
open_start(struct backend_open *o)
{
	o->stage = OPEN_START;
	(void)docker_ask(o->d, "POST", DOCKER_START_MS, started_cb, o,
	    "/containers/%s/start", backend_handle_text(&o->handle));
}

/* ---- create, and a name that is taken */

static void
conflict_removed_cb(int rc, const struct err *why, void *arg)
{
	struct backend_open *o = arg;

	if (rc != 0) {
		o->why = *why;
		o->rc = rc;
		o->sent = false;
	}
	if (o->rc != 0 || o->abandoned)
		open_fail(o);
	else
		open_create(o);
}

static void
again_cb(void *arg)
{
	struct backend_open *o = arg;

	if (o->abandoned)
		open_fail(o);
	else
		open_create(o);
}

static void
conflict_found_cb(
    int rc, const struct backend_container *c, const struct err *why, void *arg)
{
	struct backend_open *o = arg;
	bool same = rc == 0 && backend_is_box(c, &o->spec.identity) &&
	    strcmp(c->identity.fingerprint, o->spec.identity.fingerprint) == 0;

	(void)why;
	if (same && !o->abandoned && (c->running || c->created)) {
		/* Made by a worker that died before it could say so: what
		 * runs in it must not run twice. */
		o->handle = c->handle;
		if (c->running)
			open_inspect(o);
		else
			open_start(o);
		return;
	}
	/* Of its tenant alone: nobody else's gives way to it. */
	if (rc == 0 && c->is_ours && !o->retried &&
	    strcmp(c->identity.tenant, o->spec.identity.tenant) == 0) {
		o->retried = true;
		docker_remove(&o->d->b, &c->handle, conflict_removed_cb, o);
		return;
	}
	if (rc == ERR_NOTFOUND && !o->abandoned && ++o->ntries < NAME_TRIES) {
		if (o->again == NULL)
			o->again = timer_new(o->d->base, again_cb, o);
		timer_set_ms(o->again, NAME_AGAIN_MS);
		return;
	}
	o->sent = false; /* what is there is not ours to take away */
	o->rc = err_set(&o->why, ERR_CONFLICT,
	    "a container named %s exists already: remove it", o->spec.name);
	open_fail(o);
}

static void
created_ok(struct backend_open *o, const struct api_answer *a)
{
	char warning[ANSWER_TEXT_MAX];
	static struct log_limit limit;

	o->rc = answer_created(a->body, a->len, &o->handle, warning, &o->why);
	if (o->rc == 0 && o->no_quota) {
		log_warn_limited(&limit,
		    "engine: it does not limit a sandbox's file system (%s): "
		    "their agents do",
		    o->why.msg);
		o->d->opens.no_quota = QUOTA_AGAIN;
	}
	if (o->rc == 0 && strstr(warning, "Block I/O weight") != NULL)
		o->d->opens.no_io_weight = true; /* it was left out */
	else if (o->rc == 0 && warning[0] != '\0')
		log_warn_limited(
		    &limit, "create: the engine warns: %s", warning);
	if (o->rc != 0 || o->abandoned)
		open_fail(o);
	else
		open_start(o);
}

static void
created_cb(const struct api_answer *a, void *arg)
{
	struct backend_open *o = arg;

	o->out.create_us = (uint32_t)a->took_us;
	if (a->rc == 0 && a->status == 201) {
		created_ok(o, a);
		return;
	}
	if (a->rc == 0 && a->status == 409 && !o->d->freeing) {
		look_by_name(o, conflict_found_cb);
		return;
	}
	if (a->rc == 0)
		o->sent = false; /* a plain no */
	if (a->rc == 0 && a->status != 404 && o->quota && !o->abandoned) {
		(void)docker_fail(a, "create", &o->why);
		o->no_quota = true;
		open_create(o);
		return;
	}
	if (a->rc == 0 && a->status == 404 && !o->retried && !o->abandoned) {
		/* The image went since we looked. */
		o->retried = true;
		o->d->opens.nbusy--;
		image_forget(o->d, o->spec.template.image);
		open_image(o);
		return;
	}
	(void)docker_fail(a, "create", &o->why);
	o->rc = o->why.code = ERR_BACKEND;
	open_fail(o);
}

/* Whether the engine is to limit the file system. */
static bool
take_quota(const struct backend_open *o, struct body_create *c)
{
	enum answer_quota quota = o->d->engine.quota;
	uint64_t bytes;

	if (quota == ANSWER_QUOTA_NONE || o->no_quota ||
	    o->d->policy->disk_bytes == 0)
		return false;
	if (o->d->opens.no_quota > 0) {
		o->d->opens.no_quota--;
		return false;
	}
	c->has_quota = true;
	if (quota == ANSWER_QUOTA_WHOLE) {
		/* On disk it is a little more than its files. */
		bytes = image_bytes(o->d, o->spec.template.image);
		c->quota_image_bytes = bytes + bytes / 4;
	}
	return true;
}

static void
open_create(struct backend_open *o)
{
	struct body_create c = {.policy = o->d->policy,
	    .instance = o->d->instance,
	    .id = o->d->id,
	    .image_id = o->image_id,
	    .spec = &o->spec,
	    .created_ms = clock_wall_ms(),
	    .has_io_weight = !o->d->opens.no_io_weight,
	    .is_podman = o->d->engine.is_podman};
	char path[API_PATH_MAX];
	struct api_ask ask = {.method = "POST",
	    .path = path,
	    .timeout_ms = DOCKER_CREATE_MS,
	    .max_body = ANSWER_SMALL_MAX,
	    .on_done = created_cb,
	    .arg = o};
	char *body;

	o->quota = take_quota(o, &c);
	body = body_create(&c);
	o->stage = OPEN_CREATE;
	o->sent = true;
	ask.body = body;
	ask.body_len = strlen(body);
	(void)snprintf(
	    path, sizeof(path), "/containers/create?name=%s", o->spec.name);
	(void)docker_ask_full(o->d, &ask);
	free(body);
}

/* ---- what there is beside it, when a ceiling wants to know */

static void open_count(struct backend_open *o);

/* By its name, which one alone has: a front can say one UUID for many. */
static bool
is_named(const struct backend_container *c, const struct backend_open *o)
{
	return strcmp(c->name, o->spec.name) == 0;
}

static bool
is_at(const struct backend_container *list, size_t n,
    const struct backend_open *o)
{
	for (size_t i = 0; i < n; i++)
		if (backend_is_at_work(&list[i]) && is_named(&list[i], o))
			return true;
	return false;
}

/* All that is or will be there but o, of its tenant and of all: what the engine
 * shows and what was counted before it and is not there yet. */
static void
sum_up(const struct backend_open *o, const struct backend_container *list,
    size_t n, struct ceilings_sum sums[2])
{
	const struct box_identity *id = &o->spec.identity;
	const struct policy *p = o->d->policy;
	const struct backend_open *other;

	for (size_t i = 0; i < n; i++) {
		const struct backend_container *c = &list[i];
		uint64_t cpus = c->nano_cpus ? c->nano_cpus : p->nano_cpus;
		uint64_t memory =
		    c->memory_bytes ? c->memory_bytes : p->memory_bytes;

		if (!backend_is_at_work(c) ||
		    (backend_is_box(c, id) && is_named(c, o)))
			continue;
		ceilings_add(&sums[1], cpus, memory);
		if (strcmp(c->identity.tenant, id->tenant) == 0)
			ceilings_add(&sums[0], cpus, memory);
	}
	TAILQ_FOREACH (other, &o->d->opens.all, link) {
		const struct policy_template *t = &other->spec.template;

		if (other == o || other->stage < OPEN_CREATE ||
		    other->stage > OPEN_INSPECT || is_at(list, n, other))
			continue;
		ceilings_add(&sums[1], t->nano_cpus, t->memory_bytes);
		if (strcmp(other->spec.identity.tenant, id->tenant) == 0)
			ceilings_add(&sums[0], t->nano_cpus, t->memory_bytes);
	}
}

static void
counted_cb(int rc, const struct backend_container *list, size_t n,
    const struct err *why, void *arg)
{
	struct backend_open *o = arg;
	const struct backend_spec *s = &o->spec;
	struct ceilings_sum sums[2] = {{.sandboxes = 0}};
	char whose[POLICY_WORD_MAX + 8];

	if (rc == 0 && !o->abandoned && o->nmade != o->d->opens.nmade) {
		open_count(o); /* one of them may be in neither */
		return;
	}
	(void)snprintf(whose, sizeof(whose), "tenant %s", s->identity.tenant);
	if (rc != 0) {
		o->rc = rc;
		o->why = *why;
	} else {
		sum_up(o, list, n, sums);
		o->rc = ceilings_check_sum(
		    s->ceiling, &sums[0], &s->template, whose, &o->why);
		if (o->rc == 0)
			o->rc = ceilings_check_sum(s->total, &sums[1],
			    &s->template, "this server", &o->why);
	}
	if (o->rc != 0 || o->abandoned)
		open_fail(o);
	else
		open_create(o);
}

static void
open_count(struct backend_open *o)
{
	o->stage = OPEN_COUNT;
	o->nmade = o->d->opens.nmade;
	if (ceilings_counts(o->spec.ceiling) || ceilings_counts(o->spec.total))
		docker_list(&o->d->b, counted_cb, o);
	else
		open_create(o);
}

/* ---- before create */

/* Further ones as far as there are slots, in order. */
static void
open_next(struct docker *d)
{
	struct backend_open *o, *next;

	for (o = TAILQ_FIRST(&d->opens.all);
	     o != NULL && d->opens.nbusy < DOCKER_OPENS_MAX; o = next) {
		next = TAILQ_NEXT(o, link);
		if (o->stage != OPEN_SLOT)
			continue;
		d->opens.nbusy++;
		open_count(o);
	}
}

static void
open_image_done(struct backend_open *o, const char *id)
{
	(void)snprintf(o->image_id, sizeof(o->image_id), "%s", id);
	o->stage = OPEN_SLOT;
	open_next(o->d);
}

static void
image_done_cb(int rc, const char *id, const struct err *why, void *arg)
{
	struct backend_open *o = arg;

	o->wait = NULL;
	if (rc == 0) {
		open_image_done(o, id);
		return;
	}
	o->why = *why;
	o->rc = rc;
	open_leave(o);
}

static void
open_image(struct backend_open *o)
{
	const char *id = image_known(o->d, o->spec.template.image);

	o->stage = OPEN_IMAGE;
	if (id != NULL)
		open_image_done(o, id);
	else
		o->wait =
		    image_get(o->d, o->spec.template.image, image_done_cb, o);
}

void
open_engine_changed(struct docker *d)
{
	struct backend_open *o, *next;

	for (o = TAILQ_FIRST(&d->opens.all); o != NULL; o = next) {
		next = TAILQ_NEXT(o, link);
		if (d->engine.up && o->stage == OPEN_ENGINE)
			open_image(o);
		if (d->engine.up || o->stage > OPEN_SLOT)
			continue;
		if (o->wait != NULL)
			image_leave(o->wait);
		o->rc = err_set(&o->why, ERR_BACKEND, "%s", d->engine.detail);
		o->stage = OPEN_END;
		later(d->base, open_end, o);
	}
}

static void
spec_copy(struct backend_open *o, const struct backend_spec *from)
{
	struct backend_spec *to = &o->spec;

	*to = *from;
	to->name = o->texts[0] = xstrdup(from->name);
	to->claim.identifier = o->texts[1] = xstrdup(from->claim.identifier);
	to->template.image = o->texts[2] = xstrdup(from->template.image);
	to->template.runtime = o->texts[3] = xstrdup(from->template.runtime);
	o->wishes = *from->wishes;
	to->wishes = &o->wishes;
}

struct backend_open *
open_new(struct backend *b, const struct backend_spec *spec,
    backend_opened_cb cb, void *arg)
{
	struct backend_open *o = xcalloc(1, sizeof(*o));
	struct docker *d = (struct docker *)b;

	o->d = d;
	o->cb = cb;
	o->arg = arg;
	spec_copy(o, spec);
	TAILQ_INSERT_TAIL(&d->opens.all, o, link);
	if (!d->engine.known) {
		o->stage = OPEN_ENGINE;
	} else if (!d->engine.up) {
		o->stage = OPEN_END;
		o->rc = err_set(&o->why, ERR_BACKEND, "%s", d->engine.detail);
		later(d->base, open_end, o);
	} else {
		open_image(o);
	}
	return o;
}

void
open_abandon(struct backend *b, struct backend_open *o)
{
	struct docker *d = (struct docker *)b;

	if (o->abandoned || o->stage == OPEN_END)
		return;
	o->abandoned = true;
	if (o->stage > OPEN_SLOT)
		return; /* seen when the engine answers */
	if (o->wait != NULL)
		image_leave(o->wait);
	o->rc = err_set(
	    &o->why, ERR_WRONG_STATE, "the sandbox is not wanted any more");
	o->stage = OPEN_END;
	later(d->base, open_end, o);
}

/* Those that wait for no answer; the others were told by api_free. */
void
open_clear(struct docker *d)
{
	struct backend_open *o, *next;

	for (o = TAILQ_FIRST(&d->opens.all); o != NULL; o = next) {
		next = TAILQ_NEXT(o, link);
		o->rc =
		    err_set(&o->why, ERR_WRONG_STATE, "the worker is ending");
		o->cb(o->rc, NULL, &o->why, o->arg);
		TAILQ_REMOVE(&d->opens.all, o, link);
		open_free(o);
	}
}
