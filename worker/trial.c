/*
 *	LOOK	is the image there?	only for who asked by trial_look
 *	CREATE	with the first way's wishes.  The engine knows no such
 *		directory: the other way it is
 *	START	it does not find the agent's program: the other way
 *	INSPECT	which process is it?
 *	COME	its agent has its time (come_ms); who comes is the carrier's
 *		to see
 *	REMOVE	then the answer is given
 *
 * What fails otherwise (no engine, no image) is no answer: those who wait are
 * told, and the next one has it tried again.
 */
#include "worker/trial.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"

#define TENANT "carrier-trial"
#define TEXT_MAX 200 /* of a reason, in one of ours */
#define COME_MAX_MS 60000

enum trial_stage {
	TRIAL_RESTS,
	TRIAL_LOOK,
	TRIAL_CREATE,
	TRIAL_START,
	TRIAL_INSPECT,
	TRIAL_COME,
	TRIAL_REMOVE
};

struct trial {
	struct trial_of of;
	char *name;
	enum trial_stage stage;
	bool wanted;       /* while it looks: somebody waits for the answer */
	uint64_t start_ms; /* when it was asked for */
	uint64_t come_ms;
	bool again; /* a container of that name was removed for this one */
	struct backend_wishes wishes;
	struct backend_spec spec;
	struct backend_handle handle;
	struct link *link;
	struct door *door;
	struct timer *late;
	/* The answer, for after REMOVE; chosen NULL: none, rc and why. */
	const struct way *chosen;
	char text[WAYS_WHY_MAX];
	int rc;
	struct err why;
};

static void trial_create(struct trial *t);

/* ---- the end */

static void
trial_close(struct trial *t)
{
	timer_stop(t->late);
	if (t->door != NULL)
		t->door->ops->close(t->door);
	link_free(t->link);
	t->door = NULL;
	t->link = NULL;
}

static void
trial_answer(struct trial *t)
{
	t->stage = TRIAL_RESTS;
	t->wanted = false;
	ways_forget(t->of.ways, &t->spec.identity.uuid);
	if (t->chosen != NULL)
		ways_choose(t->of.ways, t->chosen, t->text);
	else
		ways_fail(t->of.ways, t->rc, &t->why);
}

static void
removed_cb(int rc, const struct err *why, void *arg)
{
	if (rc != 0)
		log_warn("the trial of the carrier is left to the next sweep: "
			 "%s",
		    why->msg);
	trial_answer(arg);
}

static void
trial_end(struct trial *t)
{
	struct backend *b = t->of.backend;

	trial_close(t);
	t->stage = TRIAL_REMOVE;
	if (backend_handle_is_set(&t->handle))
		b->ops->remove(b, &t->handle, removed_cb, t);
	else
		trial_answer(t);
}

static void
choose(struct trial *t, const struct way *way, const char *text)
{
	t->chosen = way;
	(void)snprintf(t->text, sizeof(t->text), "%s", text);
	trial_end(t);
}

static void
fail(struct trial *t, int rc, const struct err *why)
{
	t->rc = rc;
	t->why = *why;
	trial_end(t);
}

/* ---- who comes */

static void
on_open(void *arg)
{
	struct trial *t = arg;

	choose(t, t->of.first,
	    "tried: the engine sees a directory of this host, and the agent "
	    "came through it");
}

static int
on_frame(struct frame *f, void *arg, struct err *e)
{
	(void)f;
	(void)arg;
	(void)e;
	return 0;
}

static void
on_nothing(void *arg)
{
	(void)arg;
}

static void
on_close(const struct err *why, void *arg)
{
	(void)why;
	(void)arg;
}

static const struct link_user link_user = {.on_open = on_open,
    .on_frame = on_frame,
    .on_turn = on_nothing,
    .on_close = on_close,
    .on_drain = on_nothing};

static void
late_cb(void *arg)
{
	struct trial *t = arg;
	char text[WAYS_WHY_MAX];

	(void)snprintf(text, sizeof(text),
	    "tried: the agent did not come through a directory of this host "
	    "within %llu s",
	    (unsigned long long)t->come_ms / 1000);
	choose(t, t->of.other, text);
}

/* Where the engine is slow, so is what it started: a busy host is no other one.
 */
static uint64_t
come_ms(const struct trial *t)
{
	uint64_t ms = TRIAL_COME_MS + 4 * (clock_mono_ms() - t->start_ms);

	return ms < COME_MAX_MS ? ms : COME_MAX_MS;
}

/* ---- the box */

static void
inspected_cb(
    int rc, const struct backend_container *c, const struct err *why, void *arg)
{
	struct trial *t = arg;
	char text[WAYS_WHY_MAX], ended[BACKEND_WHY_MAX];

	if (rc != 0) {
		fail(t, rc, why);
		return;
	}
	if (!c->running) {
		backend_why_ended(c, ended, sizeof(ended));
		(void)snprintf(text, sizeof(text),
		    "tried: an agent out of a directory of this host ended: "
		    "%.200s",
		    ended);
		choose(t, t->of.other, text);
		return;
	}
	t->stage = TRIAL_COME;
	t->come_ms = come_ms(t);
	timer_set_ms(t->late, t->come_ms);
	t->door->ops->expect(t->door, c);
}

/* Of a directory that is there and empty, say. */
static bool
is_no_program(const struct err *why)
{
	return strstr(why->msg, "no such file or directory") != NULL ||
	    strstr(why->msg, "not found") != NULL;
}

static void
started_cb(int rc, const struct err *why, void *arg)
{
	struct trial *t = arg;
	struct backend *b = t->of.backend;

	if (rc == 0) {
		t->stage = TRIAL_INSPECT;
		b->ops->inspect(b, &t->handle, inspected_cb, t);
	} else if (rc == ERR_BACKEND && is_no_program(why)) {
		choose(t, t->of.other,
		    "tried: the engine sees another directory than this host "
		    "at the same path");
	} else {
		fail(t, rc, why);
	}
}

static void
replaced_cb(int rc, const struct err *why, void *arg)
{
	struct trial *t = arg;

	if (rc != 0)
		fail(t, rc, why);
	else
		trial_create(t);
}

/* One of an earlier start, that was killed. */
static void
found_cb(
    int rc, const struct backend_container *c, const struct err *why, void *arg)
{
	struct trial *t = arg;
	struct backend *b = t->of.backend;
	struct err e;

	if (rc == 0 && !c->is_trial) {
		rc = err_set(&e, ERR_CONFLICT,
		    "a container named %s exists already: remove it", t->name);
		why = &e;
	}
	if (rc == 0)
		b->ops->remove(b, &c->handle, replaced_cb, t);
	else
		fail(t, rc, why);
}

static void
created_cb(
    int rc, const struct backend_handle *h, const struct err *why, void *arg)
{
	struct trial *t = arg;
	struct backend *b = t->of.backend;
	struct backend_handle named;

	if (rc == 0) {
		t->handle = *h;
		t->stage = TRIAL_START;
		t->start_ms = clock_mono_ms();
		b->ops->start(b, &t->handle, started_cb, t);
	} else if (rc == ERR_NOTFOUND) {
		choose(t, t->of.other,
		    "tried: the engine does not see directories of this host");
	} else if (rc == ERR_CONFLICT && !t->again) {
		t->again = true;
		backend_handle_named(&named, t->name);
		b->ops->inspect(b, &named, found_cb, t);
	} else {
		fail(t, rc, why);
	}
}

static int
prepare(struct trial *t, struct err *e)
{
	const struct way *way = t->of.first;
	const struct uuid *box = &t->spec.identity.uuid;
	int rc = policy_check(t->of.policy, &t->spec.template, e);

	if (rc == 0)
		rc = way->delivery->ops->prepare(
		    way->delivery, box, &t->wishes, e);
	if (rc == 0)
		rc = way->carrier->ops->prepare(
		    way->carrier, box, &t->wishes, e);
	if (rc != 0)
		return rc;
	t->link = link_new(t->of.base, 0);
	link_set_user(t->link, &link_user, t);
	return way->carrier->ops->listen(
	    way->carrier, box, t->link, &t->door, e);
}

static void
trial_create(struct trial *t)
{
	struct backend *b = t->of.backend;

	t->stage = TRIAL_CREATE;
	(void)b->ops->create(b, &t->spec, created_cb, t);
}

static void
trial_begin(struct trial *t)
{
	struct err e;
	int rc;

	t->chosen = NULL;
	t->again = false;
	t->wishes = (struct backend_wishes){.nmounts = 0};
	t->handle = (struct backend_handle){.id = ""};
	t->spec = (struct backend_spec){.name = t->name,
	    .template = {.image = "", .runtime = ""},
	    .claim = {.identifier = TENANT, .generation = 1},
	    .wishes = &t->wishes,
	    .is_trial = true};
	uuid_random(&t->spec.identity.uuid);
	(void)snprintf(t->spec.identity.tenant, sizeof(t->spec.identity.tenant),
	    "%s", TENANT);
	(void)snprintf(t->spec.identity.fingerprint,
	    sizeof(t->spec.identity.fingerprint), "%s",
	    t->of.policy->fingerprint);
	rc = prepare(t, &e);
	if (rc != 0) {
		t->rc = rc;
		t->why = e;
		trial_close(t);
		trial_answer(t);
		return;
	}
	trial_create(t);
}

/* ---- public */

struct trial *
trial_new(const struct trial_of *of)
{
	struct trial *t = xcalloc(1, sizeof(*t));

	t->of = *of;
	t->name = xstrdup(of->name);
	t->late = timer_new(of->base, late_cb, t);
	return t;
}

void
trial_free(struct trial *t)
{
	if (t->stage != TRIAL_RESTS)
		trial_close(t);
	timer_free(t->late);
	free(t->name);
	free(t);
}

void
trial_start(struct trial *t)
{
	t->wanted = true;
	if (t->stage == TRIAL_RESTS)
		trial_begin(t);
}

static void
looked_cb(int rc, const struct err *why, void *arg)
{
	struct trial *t = arg;

	(void)why;
	t->stage = TRIAL_RESTS;
	if (t->of.ways->chosen == NULL && (rc == 0 || t->wanted))
		trial_begin(t);
}

void
trial_look(struct trial *t)
{
	struct backend *b = t->of.backend;

	if (t->stage != TRIAL_RESTS || t->of.ways->chosen != NULL ||
	    !backend_can(b, BACKEND_CAN_LOOK_IMAGE))
		return;
	t->stage = TRIAL_LOOK;
	b->ops->look_image(b, t->of.policy->image, looked_cb, t);
}

bool
trial_is_busy(const struct trial *t)
{
	return t->stage >= TRIAL_CREATE;
}
