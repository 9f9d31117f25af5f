/*
 * A box's life; what comes from the front with a number, from the engine with
 * a handle, or about no box in particular, is brought to it (boxes_).
 *
 *	create			adopt
 *	  |			  |
 *	CREATING	LOOKING ----+	LOOKING: it should be there, the
 *	  |		  |	^   |	engine is asked until it has said
 *	  | opened	  |	|   |	whether it is
 *	  |		  | it runs |
 *	  +------> GREETING <---+   |	its agent has BOX_HELLO_MS to come
 *	  |		|	    |
 *	  |		| hello	    |
 *	  |		v	    |
 *	  |	       UP <--> AWAY |	UP: the agent is asked again and again
 *	  |		|	|   |	AWAY: the link was lost: does it still
 *	  |		|	|   |	run?  After BOX_AWAY_MS it is given up
 *	  +-------------+-------+---+
 *			|		failed, lost, or to be removed
 *			v
 *		     CLOSING		its container is being taken away
 *			|
 *			v
 *		      DEAD		freed when no answer is awaited
 *
 * Every change goes through set_state, which knows these arrows.
 *
 * Answers of the backend may come at any time after the box has gone on to
 * another state; each is counted (awaited) and the box outlives them all.
 * What an opening still brings after it was abandoned is taken away.
 *
 * The front hears of it exactly once: READY or FAILED or LOST, after READY
 * perhaps LOST, after a SANDBOX_REMOVE always REMOVED.  An engine that is away
 * loses nothing: a box whose agent is there goes on, and none is given up
 * before the engine has said that it is gone.
 *
 * A box that is lost before the front heard READY may be made anew by the
 * front under the same UUID: it is told LOST only when nothing of the old one
 * is left (farewell).  In all other cases it is told at once.
 */
#include "worker/boxes.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/hashmap.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/box_bounds.h"
#include "worker/ceilings.h"
#include "worker/later.h"
#include "worker/opening.h"
#include "worker/root_rule.h"
#include "worker/said.h"

#define LOOK_AGAIN_MS 1000
/* The engine learns of a death a moment after the link does. */
#define AWAY_FIRST_MS 50

enum box_state {
	BOX_CREATING = 1,
	BOX_LOOKING = 2,
	BOX_GREETING = 4,
	BOX_UP = 8,
	BOX_AWAY = 16,
	BOX_CLOSING = 32,
	BOX_DEAD = 64
};
#define BOX_RUNNING (BOX_GREETING | BOX_UP | BOX_AWAY)
#define BOX_LIVING (BOX_CREATING | BOX_LOOKING | BOX_RUNNING)

/* What the front is told when the container is gone. */
enum box_farewell {
	BOX_SAY_NOTHING, /* it was told before */
	BOX_SAY_LOST,
	BOX_SAY_REMOVED
};

struct boxes {
	const struct box_host *host;
	struct tasks_host tasks_host;
	struct box_asks_host asks_host;
	struct box_bounds_line bounds;
	struct hashmap by_sandbox;
	struct hashmap by_uuid;
	struct hashmap by_handle; /* while they run */
	struct hashmap tasks;     /* of all boxes, by the front's number */
	struct openings openings;
	unsigned int removals; /* of boxes, under way */
	unsigned int unknown;  /* of these, boxes that are not here */
};

/* Its own owner: after any call but those that only ask, and after any turn of
 * the loop, it may be gone. */
struct box {
	struct boxes *in;
	uint64_t sandbox; /* that uses it, the front's number; its tenant's */
	uint64_t tenant;
	struct box_identity id;
	struct backend_handle handle; /* a name until the backend showed it */
	bool entered;                 /* found by sandbox and by UUID */
	bool seen;                    /* found by handle */
	struct hash_entry by_sandbox;
	struct hash_entry by_uuid;
	struct hash_entry by_handle;
	enum msg_open_mode mode;
	uint32_t ttl_s;
	enum box_state state;
	char *name;

	struct box_opening *opening;
	unsigned int awaited; /* answers of the backend */
	bool inspecting;
	struct timer *timer;
	uint64_t running_us; /* when the backend said that it runs */
	struct {
		uint32_t create_us, start_us, hello_us;
	} times;
	uint64_t away_since_ms;
	unsigned int silences; /* questions without an answer, in a row */
	bool unread;           /* nothing is read from the agent for now */

	struct door *door;
	struct link *link; /* the peer's */
	struct peer *peer;
	bool has_boot;
	struct uuid boot;
	struct tasks *tasks;
	struct said said;
	struct box_bounds *bounds;

	bool told_ready;
	char *isolation; /* to be told; NULL: nothing */
	enum box_farewell farewell;
	char why[ERR_TEXT_MAX]; /* of a loss that is told later */
};

/* ---- the states */

static void
set_state(struct box *b, enum box_state to)
{
	static const struct {
		enum box_state to;
		unsigned int from;
	} arrows[] = {
	    {BOX_GREETING, BOX_CREATING | BOX_LOOKING},
	    {BOX_UP, BOX_GREETING | BOX_AWAY},
	    {BOX_AWAY, BOX_UP},
	    {BOX_CLOSING, BOX_LIVING},
	    {BOX_DEAD, BOX_LIVING | BOX_CLOSING},
	};

	for (size_t i = 0; i < ARRAY_LEN(arrows); i++)
		if (arrows[i].to == to &&
		    (arrows[i].from & (unsigned int)b->state) != 0) {
			b->state = to;
			return;
		}
	fatal(EXIT_BUG, "box %s: from state %d to %d", b->name, (int)b->state,
	    (int)to);
}

static bool
is_in(const struct box *b, unsigned int states)
{
	return ((unsigned int)b->state & states) != 0;
}

/* ---- where it is found */

static bool
is_uuid(const struct hash_entry *en, const void *key)
{
	const struct box *b = HASH_OF(en, const struct box, by_uuid);

	return uuid_is_equal(&b->id.uuid, key);
}

static bool
is_handle(const struct hash_entry *en, const void *key)
{
	const struct box *b = HASH_OF(en, const struct box, by_handle);

	return strcmp(backend_handle_text(&b->handle), key) == 0;
}

static struct box *
box_by_sandbox(const struct boxes *bs, uint64_t sandbox)
{
	return HASH_OBJECT(
	    hashmap_get_u64(&bs->by_sandbox, sandbox), struct box, by_sandbox);
}

static struct box *
box_by_uuid(const struct boxes *bs, const struct uuid *uuid)
{
	return HASH_OBJECT(
	    hashmap_get(&bs->by_uuid, hashmap_key_uuid(uuid), is_uuid, uuid),
	    struct box, by_uuid);
}

static struct box *
box_by_handle(const struct boxes *bs, const struct backend_handle *h)
{
	const char *text = backend_handle_text(h);

	return HASH_OBJECT(hashmap_get(&bs->by_handle, hashmap_key_text(text),
			       is_handle, text),
	    struct box, by_handle);
}

static void
box_enter(struct box *b)
{
	hashmap_put(
	    &b->in->by_sandbox, &b->by_sandbox, hashmap_key_u64(b->sandbox));
	hashmap_put(
	    &b->in->by_uuid, &b->by_uuid, hashmap_key_uuid(&b->id.uuid));
	b->entered = true;
}

/* Its number and its UUID may be used anew. */
static void
box_leave(struct box *b)
{
	if (!b->entered)
		return;
	hashmap_del(&b->in->by_sandbox, &b->by_sandbox);
	hashmap_del(&b->in->by_uuid, &b->by_uuid);
	b->entered = false;
}

/* Changes under its handle are its no more; the handle stays. */
static void
box_unsee(struct box *b)
{
	if (b->seen)
		hashmap_del(&b->in->by_handle, &b->by_handle);
	b->seen = false;
}

/* The backend showed it: this is its handle from now on. */
static void
box_see(struct box *b, const struct backend_handle *h)
{
	box_unsee(b);
	b->handle = *h;
	b->seen = true;
	hashmap_put(&b->in->by_handle, &b->by_handle,
	    hashmap_key_text(backend_handle_text(h)));
}

/* ---- the end of the object */

static void
free_cb(void *arg)
{
	struct box *b = arg;

	timer_free(b->timer);
	free(b->isolation);
	free(b->name);
	free(b);
}

static void
close_link(struct box *b)
{
	if (b->peer == NULL)
		return;
	tasks_detach(b->tasks);
	b->in->host->carrier->ops->close(b->door);
	b->door = NULL;
	peer_free(b->peer);
	b->peer = NULL;
	b->link = NULL;
}

static void
die(struct box *b)
{
	set_state(b, BOX_DEAD);
	box_leave(b);
	box_unsee(b);
	close_link(b);
	tasks_free(b->tasks);
	b->tasks = NULL;
	box_bounds_free(b->bounds);
	b->bounds = NULL;
	timer_stop(b->timer);
	if (b->awaited == 0) /* callers up the stack may still look at it */
		later(b->in->host->base, free_cb, b);
}

/* One of the awaited answers has come.  May free b. */
static void
answered(struct box *b)
{
	if (--b->awaited == 0 && b->state == BOX_DEAD)
		later(b->in->host->base, free_cb, b);
}

/* ---- taking the container away */

static void
tell_removed(struct boxes *bs, uint64_t sandbox, int rc, const char *text)
{
	msg_send_sandbox_removed(*bs->host->front,
	    &(struct msg_sandbox_removed){
		.id = sandbox, .code = rc, .text = text});
}

/* The container is gone (rc 0), or could not be removed. */
static void
gone(struct box *b, int rc, const char *text)
{
	if (rc != 0 && b->farewell != BOX_SAY_REMOVED)
		log_warn("box %s: left to the next sweep: %s", b->name, text);
	if (b->farewell == BOX_SAY_LOST)
		msg_send_sandbox_lost(*b->in->host->front,
		    &(struct msg_sandbox_lost){
			.id = b->sandbox, .why = b->why});
	else if (b->farewell == BOX_SAY_REMOVED)
		tell_removed(b->in, b->sandbox, rc, text);
	die(b);
}

/* A container, and what the carrier keeps of its box. */
struct removal {
	struct boxes *in;
	struct box_identity id;
	struct box *box;  /* NULL: it is not here */
	uint64_t sandbox; /* whose it was then */
};

static void
removal_end(int rc, const struct err *why, void *arg)
{
	struct removal *r = arg;
	struct carrier *c = r->in->host->carrier;
	const char *text = rc == 0 ? "" : why->msg;

	r->in->removals--;
	if (rc == 0)
		c->ops->forget(c, &r->id.uuid);
	if (r->box != NULL) {
		gone(r->box, rc, text);
		answered(r->box);
	} else {
		r->in->unknown--;
		tell_removed(r->in, r->sandbox, rc, text);
	}
	free(r);
}

static void
removal_seen_cb(
    int rc, const struct backend_container *c, const struct err *why, void *arg)
{
	struct removal *r = arg;
	struct backend *backend = r->in->host->backend;

	if (rc == 0 && backend_is_box(c, &r->id))
		backend->ops->remove(backend, &c->handle, removal_end, r);
	else if (rc == 0 || rc == ERR_NOTFOUND)
		removal_end(0, NULL, r);
	else
		removal_end(rc, why, r);
}

/* Without a handle (NULL) it is looked for by its name, which may be
 * another's: that is left alone.  What is gone already is removed well. */
static void
removal_start(const struct removal *start, const char *name,
    const struct backend_handle *h)
{
	struct removal *r = xmemdup(start, sizeof(*start));
	struct backend *backend = r->in->host->backend;
	struct backend_handle named;

	r->in->removals++;
	if (h != NULL) {
		backend->ops->remove(backend, h, removal_end, r);
		return;
	}
	backend_handle_named(&named, name);
	backend->ops->inspect(backend, &named, removal_seen_cb, r);
}

static void
take_away(struct box *b, const struct backend_handle *h)
{
	b->awaited++;
	removal_start(
	    &(struct removal){.in = b->in, .id = b->id, .box = b}, b->name, h);
}

/* No container was made; what the carrier prepared goes. */
static void
was_never(struct box *b)
{
	struct carrier *c = b->in->host->carrier;

	c->ops->forget(c, &b->id.uuid);
	gone(b, 0, "");
}

/* Its tasks have ended, and the front was told or will be by gone. */
static void
box_close(struct box *b)
{
	enum box_state was = b->state;

	set_state(b, BOX_CLOSING);
	box_unsee(b);
	timer_stop(b->timer);
	close_link(b);
	box_bounds_free(b->bounds);
	b->bounds = NULL;
	if (was == BOX_CREATING && b->opening != NULL)
		opening_abandon(b->opening); /* then opened_late */
	else if (was == BOX_CREATING)
		was_never(b);
	else
		take_away(b, was == BOX_LOOKING ? NULL : &b->handle);
}

/* ---- failed, lost */

/* It never was: FAILED. */
static void
fail(struct box *b, int code, const char *text)
{
	log_warn("box %s: %s", b->name, text);
	msg_send_sandbox_failed(*b->in->host->front,
	    &(struct msg_sandbox_failed){
		.id = b->sandbox, .code = code, .text = text});
	tasks_end(b->tasks, RUNLOG_START_FAILED, text);
	box_leave(b);
	b->farewell = BOX_SAY_NOTHING;
	b->opening = NULL; /* it came to its end, or never began */
	box_close(b);
}

/* It is no more: LOST, now or when nothing of it is left. */
static void
lose(struct box *b, const char *why)
{
	char text[ERR_TEXT_MAX + 32];

	(void)snprintf(b->why, sizeof(b->why), "%s", why);
	(void)snprintf(text, sizeof(text), "the sandbox was lost: %s", why);
	log_info("box %s is lost: %s", b->name, why);
	tasks_end(b->tasks, RUNLOG_LOST, text);
	if (b->told_ready) {
		msg_send_sandbox_lost(*b->in->host->front,
		    &(struct msg_sandbox_lost){.id = b->sandbox, .why = why});
		box_leave(b);
		b->farewell = BOX_SAY_NOTHING;
	} else {
		b->farewell = BOX_SAY_LOST;
	}
	box_close(b);
}

static void
lose_container(struct box *b, const struct backend_container *c)
{
	char why[128];

	backend_why_ended(c, why, sizeof(why));
	lose(b, why);
}

/* ---- the agent */

static void
tell_ready(struct box *b)
{
	const struct box_host *h = b->in->host;

	b->times.hello_us = (uint32_t)(clock_mono_us() - b->running_us);
	b->told_ready = true;
	log_info("box %s is up: create %u us, start %u us, agent %u us",
	    b->name, b->times.create_us, b->times.start_us, b->times.hello_us);
	msg_send_sandbox_ready(*h->front,
	    &(struct msg_sandbox_ready){.id = b->sandbox,
		.container_id = backend_handle_text(&b->handle),
		.isolation = b->isolation});
	free(b->isolation);
	b->isolation = NULL;
	h->on_ready(h->arg);
}

static void
tell_lease(struct box *b)
{
	uint64_t s = (uint64_t)b->ttl_s + b->in->host->grace_s;

	if (b->ttl_s != 0 && b->peer != NULL)
		peer_lease(b->peer, s * 1000);
}

static int
on_hello(const struct peer_hello *h, void *arg, struct err *e)
{
	struct box *b = arg;

	(void)e;
	if (b->has_boot && !uuid_is_equal(&b->boot, &h->boot)) {
		lose(b, "its agent was restarted");
		return 0;
	}
	b->has_boot = true;
	b->boot = h->boot;
	set_state(b, BOX_UP);
	b->silences = 0;
	timer_set_ms(b->timer, b->in->host->ping_ms);
	tell_lease(b);
	if (!b->told_ready)
		tell_ready(b);
	tasks_attach(b->tasks, b->peer, h);
	return 0;
}

static void
on_overdue(void *arg)
{
	struct box *b = arg;

	if (is_in(b, BOX_RUNNING))
		lose(b, "its agent did not end a run in time");
}

static void box_inspect(struct box *b);

static void
on_down(const struct err *why, void *arg)
{
	static struct log_limit limit;
	struct box *b = arg;
	char text[ERR_TEXT_MAX];

	if (why->code == ERR_PROTO) {
		(void)snprintf(text, sizeof(text),
		    "its agent was not understood: %.300s", why->msg);
		log_warn_limited(&limit, "box %s: %s", b->name, text);
		if (b->mode == MSG_OPEN_MODE_CREATE && !b->told_ready)
			fail(b, ERR_BACKEND, text);
		else
			lose(b, text);
		return;
	}
	if (b->state != BOX_UP)
		return; /* it comes again, or the timer ends the wait */
	log_debug("box %s: link lost: %s", b->name, why->msg);
	set_state(b, BOX_AWAY);
	b->away_since_ms = clock_mono_ms();
	tasks_detach(b->tasks);
	timer_set_ms(b->timer, AWAY_FIRST_MS);
	box_inspect(b);
}

static bool
is_front_full(const struct boxes *bs)
{
	struct ipc_chan *front = *bs->host->front;

	return front != NULL && ipc_chan_is_full(front);
}

static void
on_turn(void *arg)
{
	struct box *b = arg;

	tasks_on_turn(b->tasks);
	/* What agents say becomes messages to the front: no more of it than
	 * the front takes. */
	if (is_front_full(b->in))
		b->in->host->on_full(b->in->host->arg);
}

static void
on_drain(void *arg)
{
	struct box *b = arg;

	tasks_on_drain(b->tasks);
}

static void
on_said(const struct frame_said *m, void *arg)
{
	struct box *b = arg;

	said_take(&b->said, m, tasks_find_run(b->tasks, &m->run));
}

static const struct peer_ops peer_ops = {.on_hello = on_hello,
    .on_turn = on_turn,
    .on_drain = on_drain,
    .on_down = on_down,
    .on_said = on_said};

static void
box_pause(struct box *b)
{
	b->unread = true;
	if (b->link != NULL)
		link_pause(b->link);
}

static int
box_listen(struct box *b, struct err *e)
{
	const struct box_host *h = b->in->host;
	struct link *l = link_new(h->base, h->output_bytes_s);
	int rc =
	    h->carrier->ops->listen(h->carrier, &b->id.uuid, l, &b->door, e);

	if (rc != 0) {
		link_free(l);
		return rc;
	}
	b->link = l;
	b->peer = peer_new(b->link, &peer_ops, b);
	if (is_front_full(b->in))
		box_pause(b);
	return 0;
}

/* ---- the container, asked for */

static void
await_agent(struct box *b, const struct backend_container *c)
{
	box_see(b, &c->handle);
	box_bounds_own(b->bounds, c->nano_cpus);
	b->running_us = clock_mono_us();
	if (c->report != NULL)
		b->isolation = xstrdup(c->report->isolation);
	set_state(b, BOX_GREETING);
	timer_set_ms(b->timer, BOX_HELLO_MS);
	b->in->host->carrier->ops->expect(b->door, c);
}

/* The one that should be there: is it, and is it what we would make? */
static void
looked(struct box *b, const struct backend_container *c)
{
	struct err e;

	if (!backend_is_box(c, &b->id)) {
		lose(b, BACKEND_IS_NO_BOX);
		return;
	}
	box_see(b, &c->handle);
	if (!c->running) {
		lose_container(b, c);
	} else if (strcmp(c->identity.fingerprint, b->id.fingerprint) != 0) {
		lose(b,
		    "it was made under another policy of network, "
		    "capabilities, system calls or paths");
	} else if (root_rule_is_unknown(
		       b->in->host->policy, b->in->host->backend)) {
		timer_set_ms(b->timer, LOOK_AGAIN_MS);
	} else if (box_listen(b, &e) != 0) {
		log_warn("box %s: %s", b->name, e.msg);
		timer_set_ms(b->timer, LOOK_AGAIN_MS);
	} else {
		await_agent(b, c);
	}
}

/* The agent is or was there, and now this is what the engine shows. */
static void
checked(struct box *b, const struct backend_container *c)
{
	if (!c->running)
		lose_container(b, c);
	else if (!backend_handle_is_same_life(&c->handle, &b->handle))
		lose(b, "it was restarted from outside");
	else if (b->state == BOX_AWAY &&
	    clock_mono_ms() - b->away_since_ms >= BOX_AWAY_MS)
		lose(b, "its agent does not answer any more");
}

static void
inspected_cb(
    int rc, const struct backend_container *c, const struct err *why, void *arg)
{
	struct box *b = arg;

	b->inspecting = false;
	if (!is_in(b, BOX_LIVING)) {
		answered(b);
		return;
	}
	if (rc == ERR_NOTFOUND)
		lose(b, "its container was removed from outside");
	else if (rc != 0 && b->state == BOX_LOOKING)
		timer_set_ms(b->timer, LOOK_AGAIN_MS); /* nothing is known */
	else if (rc != 0)
		log_debug("box %s: %s", b->name, why->msg);
	else if (b->state == BOX_LOOKING)
		looked(b, c);
	else
		checked(b, c);
	answered(b);
}

static void
box_inspect(struct box *b)
{
	struct backend *backend = b->in->host->backend;

	if (b->inspecting)
		return;
	b->inspecting = true;
	b->awaited++;
	backend->ops->inspect(backend, &b->handle, inspected_cb, b);
}

/* Abandoned, and its end has come: what it made is removed. */
static void
opened_late(struct box *b, const struct box_opened *o)
{
	if (o == NULL) {
		was_never(b);
		return;
	}
	take_away(b, &o->c.handle);
}

static void
opened_cb(int rc, const struct box_opened *o, const struct err *why, void *arg)
{
	struct box *b = arg;

	b->opening = NULL;
	if (b->state == BOX_CLOSING) {
		opened_late(b, o);
	} else if (b->state == BOX_CREATING && rc != 0) {
		fail(b, rc, why->msg);
	} else if (b->state == BOX_CREATING) {
		b->times.create_us = o->create_us;
		b->times.start_us = o->start_us;
		await_agent(b, &o->c);
	}
	answered(b);
}

/* ---- the agent's answers */

/* An answer may have come while nobody read, or this process was stopped: only
 * several in a row that do not come mean anything. */
static void
ask_agent(struct box *b)
{
	if (peer_ping(b->peer))
		b->silences = 0;
	else if (!b->unread && ++b->silences >= BOX_SILENCES_MAX) {
		lose(b, "its agent does not answer");
		return;
	}
	timer_set_ms(b->timer, b->in->host->ping_ms);
}

static void
timer_cb(void *arg)
{
	struct box *b = arg;

	if (b->state == BOX_UP) {
		ask_agent(b);
	} else if (b->state == BOX_LOOKING) {
		box_inspect(b);
	} else if (b->state == BOX_AWAY) {
		timer_set_ms(b->timer, LOOK_AGAIN_MS);
		box_inspect(b);
	} else if (b->state == BOX_GREETING &&
	    b->mode == MSG_OPEN_MODE_CREATE) {
		fail(b, ERR_BACKEND,
		    "the sandbox started but its agent did not answer within "
		    "10 s");
	} else if (b->state == BOX_GREETING) {
		lose(b, "its agent does not answer");
	}
}

/* ---- opening */

static struct box *
box_new(struct boxes *bs, const struct box_start *s)
{
	struct box *b = xcalloc(1, sizeof(*b));

	b->in = bs;
	b->sandbox = s->sandbox;
	b->tenant = s->tenant;
	b->mode = s->mode;
	b->ttl_s = s->ttl_s;
	b->state = s->mode == MSG_OPEN_MODE_CREATE ? BOX_CREATING : BOX_LOOKING;
	b->id.uuid = s->uuid;
	(void)snprintf(
	    b->id.tenant, sizeof(b->id.tenant), "%s", s->tenant_name);
	ceilings_fingerprint(ceilings_of(bs->host->ceilings, s->tenant_name),
	    bs->host->policy, b->id.fingerprint);
	b->name = xstrdup(s->name);
	said_init(&b->said, s->tenant, s->claim.identifier);
	backend_handle_named(
	    &b->handle, s->container_id[0] != '\0' ? s->container_id : s->name);
	b->timer = timer_new(bs->host->base, timer_cb, b);
	b->tasks = tasks_new(&bs->tasks_host, s->sandbox,
	    s->mode == MSG_OPEN_MODE_CREATE ? TASKS_NONE_BEGUN :
					      TASKS_MAY_HAVE_BEGUN,
	    on_overdue, b);
	b->bounds = box_bounds_new(
	    bs->host->base, bs->host->backend, &bs->bounds, b->name);
	box_enter(b);
	return b;
}

static int
prepare(struct box *b, struct backend_spec *spec, struct backend_wishes *wishes,
    struct err *e)
{
	const struct box_host *h = b->in->host;
	const struct ceiling *c = ceilings_of(h->ceilings, b->id.tenant);
	int rc = policy_check_claim(&spec->claim, e);

	if (rc == 0)
		rc = ceilings_check(c, h->policy, &spec->template, e);
	if (rc == 0)
		rc = policy_check(h->policy, &spec->template, e);
	if (rc == 0)
		rc = h->delivery->ops->prepare(
		    h->delivery, &b->id.uuid, wishes, e);
	if (rc == 0)
		rc = h->carrier->ops->prepare(
		    h->carrier, &b->id.uuid, wishes, e);
	return rc != 0 ? rc : box_listen(b, e);
}

static void
create(struct box *b, const struct box_start *s)
{
	struct backend_wishes wishes = {.nmounts = 0};
	struct backend_spec spec = {.name = b->name,
	    .identity = b->id,
	    .template = s->template,
	    .claim = s->claim,
	    .wishes = &wishes};
	struct err e;
	int rc = prepare(b, &spec, &wishes, &e);

	if (rc != 0) {
		fail(b, rc, e.msg);
		return;
	}
	b->awaited++;
	b->opening = opening_start(&b->in->openings, &spec, opened_cb, b);
}

/* ---- what the front says
 *
 * A box is named by the front's number of its sandbox, and must be of the
 * tenant that the front says. */

int
boxes_open(struct boxes *bs, const struct box_start *s, struct err *e)
{
	struct box *b;

	if (box_by_sandbox(bs, s->sandbox) != NULL ||
	    box_by_uuid(bs, &s->uuid) != NULL)
		return err_set(e, ERR_PROTO, "sandbox %llu is open already",
		    (unsigned long long)s->sandbox);
	b = box_new(bs, s);
	if (s->mode == MSG_OPEN_MODE_CREATE)
		create(b, s);
	else
		box_inspect(b);
	return 0;
}

/* *out NULL: there is none. */
static int
find_box(const struct boxes *bs, uint64_t sandbox, uint64_t tenant,
    struct box **out, struct err *e)
{
	*out = box_by_sandbox(bs, sandbox);
	if (*out == NULL || (*out)->tenant == tenant)
		return 0;
	return err_set(e, ERR_PROTO, "sandbox %llu is not tenant %llu's",
	    (unsigned long long)sandbox, (unsigned long long)tenant);
}

/* The same of its tasks; *out NULL: also when it is being taken away. */
static int
find_tasks(const struct boxes *bs, uint64_t sandbox, uint64_t tenant,
    struct tasks **out, struct err *e)
{
	struct box *b;

	if (find_box(bs, sandbox, tenant, &b, e) != 0)
		return ERR_PROTO;
	*out = b != NULL && is_in(b, BOX_LIVING) ? b->tasks : NULL;
	return 0;
}

int
boxes_settled(
    struct boxes *bs, const struct msg_sandbox_settled *m, struct err *e)
{
	struct tasks *ts;

	if (find_tasks(bs, m->id, m->tenant, &ts, e) != 0)
		return ERR_PROTO;
	if (ts != NULL)
		tasks_settled(ts);
	return 0;
}

int
boxes_set_ttl(struct boxes *bs, const struct msg_sandbox_ttl *m, struct err *e)
{
	struct box *b;

	if (find_box(bs, m->id, m->tenant, &b, e) != 0)
		return ERR_PROTO;
	if (b == NULL)
		return 0;
	b->ttl_s = m->ttl_s;
	tell_lease(b);
	return 0;
}

int
boxes_set_shares(
    struct boxes *bs, const struct msg_sandbox_shares *m, struct err *e)
{
	const struct backend_bounds want = {.cpu_shares = m->cpu_shares,
	    .nano_cpus = m->nano_cpus,
	    .first_cpu = m->first_cpu,
	    .cpus = m->cpus};
	struct box *b;

	if (find_box(bs, m->id, m->tenant, &b, e) != 0)
		return ERR_PROTO;
	if (b == NULL || !is_in(b, BOX_RUNNING))
		return 0;
	box_bounds_set(b->bounds, &b->handle, &want);
	link_pace(b->link, m->output_bytes_s);
	return 0;
}

static void
box_remove(struct box *b)
{
	b->farewell = BOX_SAY_REMOVED;
	if (b->state == BOX_CLOSING)
		return; /* said when it is gone */
	tasks_end(b->tasks, RUNLOG_LOST, "the sandbox was removed");
	box_close(b);
}

/* A box that is not here: an earlier worker made it, and the front has given it
 * up. */
static void
remove_unknown(struct boxes *bs, const struct msg_sandbox_remove *m,
    const struct box_identity *id)
{
	if (bs->unknown >= BOXES_UNKNOWN_MAX) {
		tell_removed(bs, m->id, ERR_LIMIT,
		    "too many sandboxes are being removed");
		return;
	}
	bs->unknown++;
	removal_start(&(struct removal){.in = bs, .id = *id, .sandbox = m->id},
	    m->name, NULL);
}

int
boxes_remove(
    struct boxes *bs, const struct msg_sandbox_remove *m, struct err *e)
{
	struct box *b = box_by_uuid(bs, &m->uuid);
	struct box_identity id = {.uuid = m->uuid};

	(void)snprintf(id.tenant, sizeof(id.tenant), "%s", m->tenant_name);
	if (b != NULL && strcmp(b->id.tenant, id.tenant) != 0)
		return err_set(e, ERR_PROTO, "sandbox %llu is not tenant %s's",
		    (unsigned long long)m->id, id.tenant);
	if (b != NULL && b->sandbox == m->id)
		box_remove(b);
	else
		remove_unknown(bs, m, &id);
	return 0;
}

int
boxes_find_task(const struct boxes *bs, uint64_t number, uint64_t tenant,
    struct tasks_item **out, struct err *e)
{
	*out = tasks_find(&bs->tasks, number);
	if (*out == NULL || tasks_item_start(*out)->tenant == tenant)
		return 0;
	return err_set(e, ERR_PROTO, "run %llu is not tenant %llu's",
	    (unsigned long long)number, (unsigned long long)tenant);
}

int
boxes_find_asks(const struct boxes *bs, uint64_t sandbox, uint64_t tenant,
    struct box_asks **out, struct err *e)
{
	struct tasks *ts;

	if (find_tasks(bs, sandbox, tenant, &ts, e) != 0)
		return ERR_PROTO;
	*out = ts == NULL ? NULL : tasks_asks(ts);
	return 0;
}

static const char *
root_refusal(void *arg)
{
	const struct boxes *bs = arg;
	const struct box_host *h = bs->host;

	return root_rule_refusal(h->policy, h->backend);
}

int
boxes_start_task(
    struct boxes *bs, uint64_t sandbox, struct task_start *s, struct err *e)
{
	struct tasks_item *known;
	struct tasks *ts;
	bool same;

	if (boxes_find_task(bs, s->id, s->tenant, &known, e) != 0 ||
	    find_tasks(bs, sandbox, s->tenant, &ts, e) != 0) {
		task_start_clear(s);
		return ERR_PROTO;
	}
	if (known != NULL) {
		same = uuid_is_equal(&tasks_item_start(known)->uuid, &s->uuid);
		task_start_clear(s);
		return same ?
		    0 :
		    err_set(e, ERR_PROTO, "run %llu is another already",
			(unsigned long long)s->id);
	}
	if (ts != NULL)
		return tasks_start(ts, s, e);
	tasks_refuse(*bs->host->front, s, RUNLOG_LOST, "the sandbox is gone");
	return 0;
}

/* ---- what concerns all boxes */

/* fn may end that box, and no other. */
static void
each_box(struct boxes *bs, void (*fn)(struct box *b))
{
	struct hash_entry *en, *next;

	HASHMAP_FOREACH (en, next, &bs->by_sandbox)
		fn(HASH_OF(en, struct box, by_sandbox));
}

void
boxes_on_change(
    struct boxes *bs, const struct backend_handle *h, enum backend_change what)
{
	struct box *b = box_by_handle(bs, h);

	if (b == NULL || !is_in(b, BOX_RUNNING))
		return;
	log_debug("box %s: engine's event %d", b->name, (int)what);
	if (what == BACKEND_DESTROYED)
		lose(b, "its container was removed from outside");
	else if (what == BACKEND_DIED)
		box_inspect(b); /* says why */
}

static void
box_look(struct box *b)
{
	if (b->state == BOX_LOOKING)
		box_inspect(b);
}

void
boxes_look(struct boxes *bs)
{
	each_box(bs, box_look);
}

void
boxes_pause(struct boxes *bs)
{
	each_box(bs, box_pause);
}

static void
box_resume(struct box *b)
{
	b->unread = false;
	if (b->link != NULL)
		link_resume(b->link);
}

void
boxes_resume(struct boxes *bs)
{
	each_box(bs, box_resume);
}

bool
boxes_is_busy(const struct boxes *bs)
{
	const struct hash_entry *en, *next;

	HASHMAP_FOREACH (en, next, &bs->by_sandbox)
		if (is_in(HASH_OF(en, const struct box, by_sandbox),
			BOX_CREATING | BOX_CLOSING))
			return true;
	return bs->removals > 0;
}

/* ---- life */

struct boxes *
boxes_new(const struct box_host *host)
{
	struct boxes *bs = xcalloc(1, sizeof(*bs));

	bs->host = host;
	openings_init(&bs->openings, host);
	bs->asks_host.front = host->front;
	box_bounds_line_init(&bs->bounds);
	bs->tasks_host = (struct tasks_host){.front = host->front,
	    .asks = &bs->asks_host,
	    .task = host->task,
	    .limits = host->limits,
	    .by_number = &bs->tasks,
	    .root_refusal = root_refusal,
	    .arg = bs};
	return bs;
}

void
boxes_free(struct boxes *bs)
{
	if (bs == NULL)
		return;
	each_box(bs, die);
	hashmap_clear(&bs->by_sandbox);
	hashmap_clear(&bs->by_uuid);
	hashmap_clear(&bs->by_handle);
	hashmap_clear(&bs->tasks);
	free(bs);
}
