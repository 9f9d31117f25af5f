/*
 *	COUNT	what there is beside it, where a ceiling wants to know
 *	  |
 *	CREATE	the backend makes it	<--+
 *	  |	  |			   |
 *	  |	NAME is taken		---+	removed, when it is its
 *	  |	  |				tenant's; or tried again, when
 *	  |	  | it is its own		it is not to be seen
 *	START <---+
 *	  |
 *	INSPECT	is it what was wanted, and does it run?
 *	  |
 *	END
 *
 * A failure behind CREATE goes through UNDO: the box is removed before the
 * caller hears of it.
 */
#include "worker/opening.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/box.h"
#include "worker/ceilings.h"
#include "worker/later.h"
#include "worker/root_rule.h"

/* A name may be taken by a container that is not to be seen yet: the engine
 * still makes it, for a worker that died. */
#define NAME_AGAIN_MS 100
#define NAME_TRIES 100

enum opening_stage {
	OPENING_COUNT,
	OPENING_CREATE,
	OPENING_NAME,
	OPENING_START,
	OPENING_INSPECT,
	OPENING_UNDO,
	OPENING_END
};

struct box_opening {
	struct openings *in;
	enum opening_stage stage;
	uint64_t nmade; /* openings.nmade when the list was asked for */
	bool abandoned;
	bool replaced; /* a box of the same name was removed for it */
	bool maybe;    /* the engine did not say whether it made one */
	struct backend_spec spec;
	char *texts[4];               /* what spec's strings point to */
	struct backend_wishes wishes; /* spec's */
	struct backend_create *create;
	unsigned int ntries; /* of its name */
	struct timer *again;
	uint64_t since_us;            /* of create or start */
	struct backend_handle handle; /* not set before it is created */
	struct box_opened out;
	int rc;
	struct err why;
	box_opened_cb cb;
	void *arg;
	TAILQ_ENTRY(box_opening) link;
};

static void opening_create(struct box_opening *o);

static struct backend *
backend_of(const struct box_opening *o)
{
	return o->in->host->backend;
}

/* ---- the end */

static void
opening_end(void *arg)
{
	struct box_opening *o = arg;

	TAILQ_REMOVE(&o->in->all, o, link);
	o->in->n--;
	if (o->rc == 0)
		o->in->nmade++;
	o->cb(o->rc, o->rc == 0 ? &o->out : NULL, o->rc == 0 ? NULL : &o->why,
	    o->arg);
	for (size_t i = 0; i < ARRAY_LEN(o->texts); i++)
		free(o->texts[i]);
	timer_free(o->again);
	free(o);
}

static void
undone_cb(int rc, const struct err *why, void *arg)
{
	struct box_opening *o = arg;

	if (rc != 0)
		log_warn("container %s is left over for now: %s", o->spec.name,
		    why->msg);
	opening_end(o);
}

/* Only what bears its UUID is removed. */
static void
undo_found_cb(
    int rc, const struct backend_container *c, const struct err *why, void *arg)
{
	struct box_opening *o = arg;

	(void)why;
	if (rc == 0 && backend_is_box(c, &o->spec.identity))
		backend_of(o)->ops->remove(
		    backend_of(o), &c->handle, undone_cb, o);
	else
		opening_end(o);
}

static void
look_by_name(struct box_opening *o, backend_container_cb cb)
{
	struct backend_handle h;

	backend_handle_named(&h, o->spec.name);
	backend_handle_set_tenant(&h, o->spec.identity.tenant);
	backend_of(o)->ops->inspect(backend_of(o), &h, cb, o);
}

/* o->rc and o->why are set, or it was abandoned.  ERR_WRONG_STATE: the backend
 * is freed, or had not begun. */
static void
opening_fail(struct box_opening *o)
{
	bool is_made = backend_handle_is_set(&o->handle);
	bool is_over = o->rc == ERR_WRONG_STATE || (!is_made && !o->maybe);

	if (o->abandoned)
		o->rc = err_set(&o->why, ERR_WRONG_STATE,
		    "the sandbox is not wanted any more");
	o->stage = OPENING_UNDO;
	if (is_over)
		opening_end(o);
	else if (is_made)
		backend_of(o)->ops->remove(
		    backend_of(o), &o->handle, undone_cb, o);
	else
		look_by_name(o, undo_found_cb);
}

/* True: it failed, or is not wanted any more, and that is seen to. */
static bool
has_failed(struct box_opening *o, int rc, const struct err *why)
{
	if (rc == 0 && !o->abandoned)
		return false;
	o->rc = rc;
	if (rc != 0) {
		o->why = *why;
		o->why.code = rc;
	}
	opening_fail(o);
	return true;
}

/* ---- inspect */

static int
check_opened(const struct box_opening *o, const struct backend_container *c,
    struct err *e)
{
	if (!backend_is_box(c, &o->spec.identity))
		return err_set(e, ERR_BACKEND,
		    "the engine shows another container than it made");
	if (!c->running)
		return err_set(e, ERR_BACKEND,
		    "the sandbox ended while it started: status %d%s",
		    c->exit_code, c->oom_killed ? ", out of memory" : "");
	if (root_rule_is_broken(o->in->host->policy, backend_of(o), c))
		return err_set(e, ERR_POLICY, ROOT_RULE_BROKEN);
	return 0;
}

static void
inspected_cb(
    int rc, const struct backend_container *c, const struct err *why, void *arg)
{
	struct box_opening *o = arg;
	struct err e;

	if (rc == 0) {
		rc = check_opened(o, c, &e);
		why = &e;
	}
	if (has_failed(o, rc, why))
		return;
	o->out.c = *c; /* its report lives until this returns, and so does o */
	o->stage = OPENING_END;
	opening_end(o);
}

static void
opening_inspect(struct box_opening *o)
{
	o->stage = OPENING_INSPECT;
	backend_of(o)->ops->inspect(backend_of(o), &o->handle, inspected_cb, o);
}

/* ---- start */

static void
started_cb(int rc, const struct err *why, void *arg)
{
	struct box_opening *o = arg;

	o->out.start_us = (uint32_t)(clock_mono_us() - o->since_us);
	if (!has_failed(o, rc, why))
		opening_inspect(o);
}

static void
opening_begin(struct box_opening *o)
{
	o->stage = OPENING_START;
	o->since_us = clock_mono_us();
	backend_of(o)->ops->start(backend_of(o), &o->handle, started_cb, o);
}

/* ---- create, and a name that is taken */

static void
replaced_cb(int rc, const struct err *why, void *arg)
{
	struct box_opening *o = arg;

	if (!has_failed(o, rc, why))
		opening_create(o);
}

static void
again_cb(void *arg)
{
	struct box_opening *o = arg;

	if (!has_failed(o, 0, NULL))
		opening_create(o);
}

static void
name_again(struct box_opening *o)
{
	if (o->again == NULL)
		o->again = timer_new(o->in->host->base, again_cb, o);
	timer_set_ms(o->again, NAME_AGAIN_MS);
}

static void
name_found_cb(
    int rc, const struct backend_container *c, const struct err *why, void *arg)
{
	struct box_opening *o = arg;
	const struct box_identity *id = &o->spec.identity;
	bool same = rc == 0 && backend_is_box(c, id) &&
	    strcmp(c->identity.fingerprint, id->fingerprint) == 0;
	struct err e;

	if (rc == ERR_WRONG_STATE) {
		(void)has_failed(o, rc, why);
	} else if (same && !o->abandoned && (c->running || c->created)) {
		/* Made by a worker that died before it could say so: what
		 * runs in it must not run twice. */
		o->handle = c->handle;
		if (c->running)
			opening_inspect(o);
		else
			opening_begin(o);
	} else if (rc == 0 && c->is_ours && !o->replaced &&
	    strcmp(c->identity.tenant, id->tenant) == 0) {
		/* Only a box of the same tenant gives way to it. */
		o->replaced = true;
		backend_of(o)->ops->remove(
		    backend_of(o), &c->handle, replaced_cb, o);
	} else if (rc == ERR_NOTFOUND && ++o->ntries < NAME_TRIES) {
		name_again(o);
	} else {
		rc = err_set(&e, ERR_CONFLICT,
		    "a container named %s exists already: remove it",
		    o->spec.name);
		(void)has_failed(o, rc, &e);
	}
}

static void
created_cb(
    int rc, const struct backend_handle *h, const struct err *why, void *arg)
{
	struct box_opening *o = arg;

	o->create = NULL;
	o->out.create_us = (uint32_t)(clock_mono_us() - o->since_us);
	if (rc == 0)
		o->handle = *h;
	if (rc == ERR_CONFLICT) {
		o->stage = OPENING_NAME;
		look_by_name(o, name_found_cb);
		return;
	}
	o->maybe = rc == ERR_LOST;
	if (!has_failed(o, rc == ERR_LOST ? ERR_BACKEND : rc, why))
		opening_begin(o);
}

static void
opening_create(struct box_opening *o)
{
	struct backend *b = backend_of(o);

	o->stage = OPENING_CREATE;
	o->since_us = clock_mono_us();
	o->create = b->ops->create(b, &o->spec, created_cb, o);
}

/* ---- what there is beside it, when a ceiling wants to know */

static void opening_count(struct box_opening *o);

/* By its name, which one alone has: a front can say one UUID for many. */
static bool
is_named(const struct backend_container *c, const struct box_opening *o)
{
	return strcmp(c->name, o->spec.name) == 0;
}

static bool
is_listed(
    const struct backend_container *list, size_t n, const struct box_opening *o)
{
	for (size_t i = 0; i < n; i++)
		if (backend_is_at_work(&list[i]) && is_named(&list[i], o))
			return true;
	return false;
}

static void
add_up(struct ceilings_sum sums[2], const struct box_opening *o,
    const char *tenant, uint64_t nano_cpus, uint64_t memory_bytes)
{
	ceilings_add(&sums[1], nano_cpus, memory_bytes);
	if (strcmp(tenant, o->spec.identity.tenant) == 0)
		ceilings_add(&sums[0], nano_cpus, memory_bytes);
}

/* Sums of its tenant and of all, without o: boxes that the engine shows, and
 * boxes on their way that were counted and are not to be seen yet. */
static void
sum_up(const struct box_opening *o, const struct backend_container *list,
    size_t n, struct ceilings_sum sums[2])
{
	const struct policy *p = o->in->host->policy;
	const struct box_opening *other;

	for (size_t i = 0; i < n; i++) {
		const struct backend_container *c = &list[i];

		if (backend_is_at_work(c) &&
		    !(backend_is_box(c, &o->spec.identity) && is_named(c, o)))
			add_up(sums, o, c->identity.tenant,
			    c->nano_cpus ? c->nano_cpus : p->nano_cpus,
			    c->memory_bytes ? c->memory_bytes :
					      p->memory_bytes);
	}
	TAILQ_FOREACH (other, &o->in->all, link) {
		const struct policy_template *t = &other->spec.template;

		if (other != o && other->stage >= OPENING_CREATE &&
		    other->stage <= OPENING_INSPECT &&
		    !is_listed(list, n, other))
			add_up(sums, o, other->spec.identity.tenant,
			    t->nano_cpus, t->memory_bytes);
	}
}

static int
check_ceilings(const struct box_opening *o,
    const struct backend_container *list, size_t n, struct err *e)
{
	const struct ceilings *cs = o->in->host->ceilings;
	const char *tenant = o->spec.identity.tenant;
	struct ceilings_sum sums[2] = {{.sandboxes = 0}};
	char whose[POLICY_WORD_MAX + 8];
	int rc;

	sum_up(o, list, n, sums);
	(void)snprintf(whose, sizeof(whose), "tenant %s", tenant);
	rc = ceilings_check_sum(
	    ceilings_of(cs, tenant), &sums[0], &o->spec.template, whose, e);
	if (rc == 0)
		rc = ceilings_check_sum(ceilings_total(cs), &sums[1],
		    &o->spec.template, "this server", e);
	return rc;
}

static void
counted_cb(int rc, const struct backend_container *list, size_t n,
    const struct err *why, void *arg)
{
	struct box_opening *o = arg;
	struct err e;

	if (rc == 0 && !o->abandoned && o->nmade != o->in->nmade) {
		opening_count(o); /* one of those may be in neither */
		return;
	}
	if (rc == 0) {
		rc = check_ceilings(o, list, n, &e);
		why = &e;
	}
	if (!has_failed(o, rc, why))
		opening_create(o);
}

static void
opening_count(struct box_opening *o)
{
	struct backend *b = backend_of(o);

	o->stage = OPENING_COUNT;
	o->nmade = o->in->nmade;
	b->ops->list(b, counted_cb, o);
}

/* ---- public */

void
openings_init(struct openings *all, const struct box_host *host)
{
	all->host = host;
	TAILQ_INIT(&all->all);
}

static void
spec_copy(struct box_opening *o, const struct backend_spec *from)
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

struct box_opening *
opening_start(struct openings *all, const struct backend_spec *spec,
    box_opened_cb cb, void *arg)
{
	const struct ceilings *cs = all->host->ceilings;
	struct box_opening *o = xcalloc(1, sizeof(*o));

	o->in = all;
	o->cb = cb;
	o->arg = arg;
	spec_copy(o, spec);
	TAILQ_INSERT_TAIL(&all->all, o, link);
	if (++all->n > all->host->openings_max) {
		o->stage = OPENING_END;
		o->rc = err_set(&o->why, ERR_LIMIT,
		    "%u sandboxes are being made already: try again",
		    all->host->openings_max);
		later(all->host->base, opening_end, o);
	} else if (ceilings_counts(ceilings_of(cs, spec->identity.tenant)) ||
	    ceilings_counts(ceilings_total(cs))) {
		opening_count(o);
	} else {
		opening_create(o);
	}
	return o;
}

void
opening_abandon(struct box_opening *o)
{
	struct backend *b = backend_of(o);

	if (o->abandoned || o->stage == OPENING_END)
		return;
	o->abandoned = true; /* seen when the backend answers */
	if (o->create != NULL)
		b->ops->abandon(b, o->create);
	else if (o->stage == OPENING_START && b->ops->start_abandon != NULL)
		b->ops->start_abandon(b, &o->handle);
}
