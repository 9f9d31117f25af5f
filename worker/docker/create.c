/*
 * A box is made: its image is there, built or pulled; where it must have the
 * agent's program in it, that image is there, too; then one create.  An
 * engine that refuses the limit of a file system is asked again without.
 */
#include "worker/docker/docker_int.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/docker/body.h"
#include "worker/later.h"

/* Creates without a limit until the engine is asked for one again: it may have
 * failed for another reason. */
#define QUOTA_AGAIN 16

struct backend_create {
	struct docker *d;
	const struct backend_spec *spec;
	struct image_wait *wait; /* for its image; NULL: not any more */
	struct prepared_wait
	    *prepare_wait; /* as wait, for what is made of it */
	bool abandoned;
	bool retried;  /* an image went, and was looked for again */
	bool quota;    /* asked for with a limit that the engine enforces */
	bool no_quota; /* that was refused */
	char base_id[ANSWER_IMAGE_ID_MAX];  /* of its image */
	char image_id[ANSWER_IMAGE_ID_MAX]; /* of the one it is made from */
	int rc;
	struct err why;
	backend_created_cb cb;
	void *arg;
	TAILQ_ENTRY(backend_create) link;
};

static void create_image(struct backend_create *cr);
static void create_send(struct backend_create *cr);

/* ---- the end */

static void
create_end(struct backend_create *cr, const struct backend_handle *h)
{
	TAILQ_REMOVE(&cr->d->creates.all, cr, link);
	cr->cb(cr->rc, h, cr->rc == 0 ? NULL : &cr->why, cr->arg);
	free(cr);
}

static void
create_fail_cb(void *arg)
{
	create_end(arg, NULL);
}

static bool
create_waits(const struct backend_create *cr)
{
	return cr->wait != NULL || cr->prepare_wait != NULL;
}

/* Before it was sent. */
static void
create_fail_later(struct backend_create *cr, int code, const char *text)
{
	cr->rc = err_set(&cr->why, code, "%s", text);
	if (cr->wait != NULL)
		image_leave(cr->wait);
	if (cr->prepare_wait != NULL)
		prepared_leave(cr->prepare_wait);
	cr->wait = NULL;
	cr->prepare_wait = NULL;
	later(cr->d->base, create_fail_cb, cr);
}

/* ---- the answer */

static void
created_ok(struct backend_create *cr, const struct api_answer *a)
{
	struct backend_handle h = {.life = ""};
	char warning[ANSWER_TEXT_MAX];
	static struct log_limit limit;

	if (cr->no_quota) {
		log_warn_limited(&limit,
		    "engine: it does not limit a sandbox's file system (%s): "
		    "their agents do",
		    cr->why.msg);
		cr->d->creates.no_quota = QUOTA_AGAIN;
	}
	cr->rc = answer_created(a->body, a->len, &h, warning, &cr->why);
	if (cr->rc != 0)
		cr->rc = ERR_LOST; /* there is one, whatever its name */
	else if (strstr(warning, "Block I/O weight") != NULL)
		cr->d->creates.no_io_weight = true; /* it was left out */
	else if (warning[0] != '\0')
		log_warn_limited(
		    &limit, "create: the engine warns: %s", warning);
	create_end(cr, cr->rc == 0 ? &h : NULL);
}

/* Engines have no other word for it: Docker's, and Podman's. */
static bool
is_no_source(const struct api_answer *a)
{
	char text[ANSWER_TEXT_MAX];

	answer_message(a->body, a->len, text);
	return strstr(text, "bind source path does not exist") != NULL ||
	    strstr(text, "statfs ") != NULL;
}

/* Podman has no status for it. */
static bool
is_conflict(const struct api_answer *a)
{
	char text[ANSWER_TEXT_MAX];

	if (a->rc != 0 || a->status != 500)
		return a->rc == 0 && a->status == 409;
	answer_message(a->body, a->len, text);
	return strstr(text, "already in use") != NULL;
}

static int
code_of(const struct api_answer *a)
{
	if (a->rc != 0)
		return a->rc == ERR_WRONG_STATE ? a->rc : ERR_LOST;
	if (is_conflict(a))
		return ERR_CONFLICT;
	return is_no_source(a) ? ERR_NOTFOUND : ERR_BACKEND;
}

/* An image went since it was looked for. */
static void
create_again(struct backend_create *cr)
{
	cr->retried = true;
	image_forget(cr->d, cr->spec->template.image);
	prepared_forget(cr->d, cr->base_id);
	create_image(cr);
}

static void
created_cb(const struct api_answer *a, void *arg)
{
	struct backend_create *cr = arg;
	bool refused = a->rc == 0 && !is_conflict(a) && !cr->abandoned;

	if (a->rc == 0 && a->status == 201) {
		created_ok(cr, a);
		return;
	}
	(void)docker_fail(a, "create", &cr->why);
	if (refused && a->status == 404 && !cr->retried) {
		create_again(cr);
	} else if (refused && a->status != 404 && cr->quota) {
		cr->no_quota = true;
		create_send(cr);
	} else {
		cr->rc = code_of(a);
		create_end(cr, NULL);
	}
}

/* ---- create */

/* Whether the engine is to limit the file system. */
static bool
take_quota(const struct backend_create *cr, struct body_create *c)
{
	enum answer_quota quota = cr->d->engine.quota;
	uint64_t bytes;

	if (quota == ANSWER_QUOTA_NONE || cr->no_quota ||
	    cr->d->policy->disk_bytes == 0)
		return false;
	if (cr->d->creates.no_quota > 0) {
		cr->d->creates.no_quota--;
		return false;
	}
	c->has_quota = true;
	if (quota == ANSWER_QUOTA_WHOLE) {
		/* On disk it is a little more than its files. */
		bytes = cr->spec->wishes->prepared ?
		    prepared_bytes(cr->d, cr->base_id) :
		    image_bytes(cr->d, cr->spec->template.image);
		c->quota_image_bytes = bytes + bytes / 4;
	}
	return true;
}

static void
create_send(struct backend_create *cr)
{
	struct body_create c = {.policy = cr->d->policy,
	    .instance = cr->d->instance,
	    .id = cr->d->id,
	    .image_id = cr->image_id,
	    .spec = cr->spec,
	    .created_ms = clock_wall_ms(),
	    .has_io_weight = !cr->d->creates.no_io_weight,
	    .is_podman = cr->d->engine.is.is_podman,
	    .podman = cr->d->podman};
	AUTO(auto_free) char *body = NULL;

	cr->quota = take_quota(cr, &c);
	body = body_create(&c);
	(void)docker_ask(cr->d,
	    &(struct api_ask){.method = "POST",
		.body = body,
		.body_len = strlen(body),
		.timeout_ms = DOCKER_CREATE_MS,
		.on_done = created_cb,
		.arg = cr},
	    "/containers/create?name=%s", cr->spec->name);
}

/* ---- its image */

static void
create_from(struct backend_create *cr, const char *id)
{
	(void)snprintf(cr->image_id, sizeof(cr->image_id), "%s", id);
	create_send(cr);
}

static void
prepare_done_cb(int rc, const char *id, const struct err *why, void *arg)
{
	struct backend_create *cr = arg;

	cr->prepare_wait = NULL;
	if (rc == 0) {
		create_from(cr, id);
	} else if (rc == ERR_NOTFOUND && !cr->retried) {
		create_again(cr);
	} else {
		cr->rc = err_set(&cr->why,
		    rc == ERR_WRONG_STATE ? rc : ERR_BACKEND, "%s", why->msg);
		create_end(cr, NULL);
	}
}

static void
create_prepare(struct backend_create *cr)
{
	const char *id = prepared_known(cr->d, cr->base_id);
	const struct err *why = prepared_failed(cr->d, cr->base_id);

	if (id != NULL)
		create_from(cr, id);
	else if (why != NULL && !cr->retried)
		create_fail_later(cr, ERR_BACKEND, why->msg);
	else
		cr->prepare_wait = prepared_get(cr->d, cr->base_id,
		    cr->spec->template.image, prepare_done_cb, cr);
}

static void
image_done_cb(int rc, const char *id, const struct err *why, void *arg)
{
	struct backend_create *cr = arg;

	cr->wait = NULL;
	if (rc == 0) {
		(void)snprintf(cr->base_id, sizeof(cr->base_id), "%s", id);
		if (cr->spec->wishes->prepared)
			create_prepare(cr);
		else
			create_from(cr, id);
		return;
	}
	cr->why = *why;
	cr->rc = rc;
	create_end(cr, NULL);
}

static void
create_image(struct backend_create *cr)
{
	const char *id = image_known(cr->d, cr->spec->template.image);

	if (id != NULL)
		image_done_cb(0, id, NULL, cr);
	else
		cr->wait = image_get(
		    cr->d, cr->spec->template.image, image_done_cb, cr);
}

/* ---- public */

/* Before its image is built: it would be built for nothing. */
static int
check_engine(
    const struct docker *d, const struct policy_template *t, struct err *e)
{
	const char *runtime =
	    t->runtime[0] != '\0' ? t->runtime : d->policy->runtime;

	if (d->policy->own_users && !d->engine.is.is_podman)
		return err_set(e, ERR_POLICY, "%s", ENGINE_HAS_NO_OWN_USERS);
	return runtimes_check(d->engine.is.about.runtimes, runtime, e);
}

struct backend_create *
create_new(struct backend *b, const struct backend_spec *spec,
    backend_created_cb cb, void *arg)
{
	struct backend_create *cr = xcalloc(1, sizeof(*cr));
	struct docker *d = (struct docker *)b;
	struct err e;

	cr->d = d;
	cr->spec = spec;
	cr->cb = cb;
	cr->arg = arg;
	TAILQ_INSERT_TAIL(&d->creates.all, cr, link);
	if (d->engine.up && check_engine(d, &spec->template, &e) != 0) {
		create_fail_later(cr, e.code, e.msg);
	} else if (d->engine.up) {
		create_image(cr);
	} else {
		create_fail_later(cr, ERR_BACKEND,
		    d->engine.known ? d->engine.detail :
				      "the engine has not answered yet");
	}
	return cr;
}

void
create_abandon(struct backend *b, struct backend_create *cr)
{
	(void)b;
	cr->abandoned = true;
	if (create_waits(cr)) /* else the engine's answer comes */
		create_fail_later(
		    cr, ERR_WRONG_STATE, "the sandbox is not wanted any more");
}

void
create_engine_gone(struct docker *d)
{
	struct backend_create *cr;

	TAILQ_FOREACH (cr, &d->creates.all, link)
		if (create_waits(cr))
			create_fail_later(cr, ERR_BACKEND, d->engine.detail);
}

/* Those that wait for no answer; the others were told by api_free. */
void
create_clear(struct docker *d)
{
	struct backend_create *cr;

	while ((cr = TAILQ_FIRST(&d->creates.all)) != NULL) {
		cr->rc =
		    err_set(&cr->why, ERR_WRONG_STATE, "the worker is ending");
		create_end(cr, NULL);
	}
}
