/*
 * A box's life.
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
 * Every change goes through set_state, which knows these arrows, and one more:
 * from GREETING to AWAY goes a box that was found again and whose agent does
 * not come in time, where the way to it may be what fails.
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
#include "worker/box.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/box_plan.h"
#include "worker/ceilings.h"
#include "worker/later.h"
#include "worker/removal.h"
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

struct box {
	struct box_common *in;
	struct box_place at;
	uint64_t tenant; /* of who uses it, the front's number */
	struct box_identity id;
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

	const struct way *way; /* NULL: not known yet */
	struct way_wait *wait; /* for it, of a new box; NULL: not any more */
	struct box_plan *plan; /* meanwhile, what it is to be */
	struct door *door;
	struct link *link; /* the peer's */
	struct peer *peer;
	bool has_boot;
	struct uuid boot;
	struct tasks *tasks;
	struct said said;
	struct box_bounds *bounds;

	bool told_ready;
	char *isolation;    /* to be told; NULL: nothing */
	bool has_old_files; /* likewise */
	enum box_farewell farewell;
	enum backend_forget forgets; /* of files that would outlive it */
	enum backend_forget forgot;  /* as far as that was asked for */
	char why[ERR_TEXT_MAX];      /* of a loss that is told later */
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
	    {BOX_AWAY, BOX_UP | BOX_GREETING},
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

struct box *
box_of(struct box_place *p)
{
	return p == NULL ? NULL : CONTAINER_OF(p, struct box, at);
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

/* It waits for no way any more. */
static void
leave_way(struct box *b)
{
	if (b->wait != NULL)
		ways_leave(b->in->host->ways, b->wait);
	box_plan_free(b->plan);
	b->wait = NULL;
	b->plan = NULL;
}

static void
close_link(struct box *b)
{
	if (b->peer == NULL)
		return;
	tasks_detach(b->tasks);
	b->door->ops->close(b->door);
	b->door = NULL;
	peer_free(b->peer);
	b->peer = NULL;
	b->link = NULL;
}

static void
die(struct box *b)
{
	set_state(b, BOX_DEAD);
	box_index_leave(&b->in->index, &b->at);
	box_index_unsee(&b->in->index, &b->at);
	leave_way(b);
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

void
box_tell_removed(
    const struct box_host *host, uint64_t sandbox, int rc, const char *text)
{
	msg_send_sandbox_removed(*host->front,
	    &(struct msg_sandbox_removed){
		.id = sandbox, .code = rc, .text = text});
}

/* Of files that would outlive it, where there are any. */
static void
set_forgets(struct box *b, enum backend_forget which)
{
	if (b->in->host->backend->ops->forget_files != NULL)
		b->forgets = which;
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
			.id = b->at.sandbox, .why = b->why});
	else if (b->farewell == BOX_SAY_REMOVED)
		box_tell_removed(b->in->host, b->at.sandbox, rc, text);
	die(b);
}

static void take_away(struct box *b, const struct backend_handle *h);

static void
taken_away_cb(int rc, const char *text, void *arg)
{
	struct box *b = arg;

	b->in->removals--;
	if (rc == 0 && b->forgot != b->forgets)
		take_away(b, NULL); /* the front wants its files gone, too */
	else
		gone(b, rc, text);
	answered(b);
}

static void
take_away(struct box *b, const struct backend_handle *h)
{
	const struct box_host *host = b->in->host;

	b->awaited++;
	b->in->removals++;
	b->forgot = b->forgets;
	removal_start(host->backend, host->ways,
	    &(struct removal_wish){.id = &b->id,
		.name = b->name,
		.handle = h,
		.files = {.forget = b->forgets, .left_by = ""}},
	    taken_away_cb, b);
}

static void
forgot_cb(int rc, const struct err *why, void *arg)
{
	taken_away_cb(rc, rc == 0 ? "" : why->msg, arg);
}

/* No container was made; what the carrier prepared goes, and so may files. */
static void
was_never(struct box *b)
{
	struct backend *backend = b->in->host->backend;

	ways_forget(b->in->host->ways, &b->id.uuid);
	b->forgot = b->forgets;
	if (b->forgets == BACKEND_FORGET_NOTHING) {
		gone(b, 0, "");
		return;
	}
	b->awaited++;
	b->in->removals++;
	backend->ops->forget_files(backend, &b->id,
	    &(struct backend_files){.forget = b->forgets, .left_by = ""},
	    forgot_cb, b);
}

/* Its tasks have ended, and the front was told or will be by gone. */
static void
box_close(struct box *b)
{
	enum box_state was = b->state;

	set_state(b, BOX_CLOSING);
	box_index_unsee(&b->in->index, &b->at);
	timer_stop(b->timer);
	leave_way(b);
	close_link(b);
	box_bounds_free(b->bounds);
	b->bounds = NULL;
	if (was == BOX_CREATING && b->opening != NULL)
		opening_abandon(b->opening); /* then opened_late */
	else if (was == BOX_CREATING)
		was_never(b);
	else
		take_away(b, was == BOX_LOOKING ? NULL : &b->at.handle);
}

/* ---- failed, lost */

/* It never was: FAILED. */
static void
fail(struct box *b, int code, const char *text)
{
	log_warn("box %s: %s", b->name, text);
	msg_send_sandbox_failed(*b->in->host->front,
	    &(struct msg_sandbox_failed){
		.id = b->at.sandbox, .code = code, .text = text});
	tasks_end(b->tasks, RUNLOG_START_FAILED, text);
	box_index_leave(&b->in->index, &b->at);
	b->farewell = BOX_SAY_NOTHING;
	set_forgets(b, BACKEND_FORGET_NEW);
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
		    &(struct msg_sandbox_lost){
			.id = b->at.sandbox, .why = why});
		box_index_leave(&b->in->index, &b->at);
		b->farewell = BOX_SAY_NOTHING;
	} else {
		b->farewell = BOX_SAY_LOST;
	}
	box_close(b);
}

static void
lose_container(struct box *b, const struct backend_container *c)
{
	char why[BACKEND_WHY_MAX];

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
	    &(struct msg_sandbox_ready){.id = b->at.sandbox,
		.container_id = backend_handle_text(&b->at.handle),
		.isolation = b->isolation,
		.has_old_files = b->has_old_files});
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

/* What is between this worker and its agent may fail without either. */
static bool
is_far(const struct box *b)
{
	return b->way->carrier->ops->heartbeat_ms != 0;
}

/* Between two questions to its agent. */
static uint32_t
ping_ms(const struct box *b)
{
	uint32_t beat_ms = b->way->carrier->ops->heartbeat_ms;
	uint32_t wish_ms = b->in->host->ping_ms;

	return beat_ms != 0 && beat_ms < wish_ms ? beat_ms : wish_ms;
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
	timer_set_ms(b->timer, ping_ms(b));
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
be_away(struct box *b)
{
	set_state(b, BOX_AWAY);
	b->away_since_ms = clock_mono_ms();
	timer_set_ms(b->timer, AWAY_FIRST_MS);
	box_inspect(b);
}

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
	tasks_detach(b->tasks);
	be_away(b);
}

static bool
is_front_full(const struct box_common *in)
{
	struct ipc_chan *front = *in->host->front;

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

void
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
	int rc = b->way->carrier->ops->listen(
	    b->way->carrier, &b->id.uuid, l, &b->door, e);

	if (rc != 0) {
		link_free(l);
		return rc;
	}
	b->link = l;
	b->peer = peer_new(b->link, &peer_ops, b);
	peer_limit_greeting(b->peer, b->way->carrier->ops->greet_ms);
	if (is_front_full(b->in))
		box_pause(b);
	return 0;
}

/* ---- the container, asked for */

static void
await_agent(struct box *b, const struct backend_container *c)
{
	box_index_see(&b->in->index, &b->at, &c->handle);
	box_bounds_own(b->bounds, c->nano_cpus);
	b->running_us = clock_mono_us();
	if (c->report != NULL)
		b->isolation = xstrdup(c->report->isolation);
	b->has_old_files = c->has_old_files;
	set_state(b, BOX_GREETING);
	timer_set_ms(b->timer, BOX_HELLO_MS);
	b->door->ops->expect(b->door, c);
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
	box_index_see(&b->in->index, &b->at, &c->handle);
	if (!c->running) {
		lose_container(b, c);
	} else if (strcmp(c->identity.fingerprint, b->id.fingerprint) != 0) {
		lose(b,
		    "it was made under another policy of network, "
		    "capabilities, system calls or paths");
	} else if (root_rule_is_unknown(
		       b->in->host->policy, b->in->host->backend)) {
		timer_set_ms(b->timer, LOOK_AGAIN_MS);
	} else if ((b->way = ways_of(b->in->host->ways, c->carrier)) == NULL) {
		lose(b,
		    "it was made by a later version, for a carrier that is not "
		    "known here");
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
	else if (!backend_handle_is_same_life(&c->handle, &b->at.handle))
		lose(b, "it was restarted from outside");
	else if (b->state == BOX_AWAY &&
	    clock_mono_ms() - b->away_since_ms >= BOX_AWAY_MS)
		lose(b, "its agent does not answer any more");
}

/* Nobody knows how it is: while there is no engine there may be no way to its
 * agent, and the time that it has to come again begins when there is. */
static void
unheard(struct box *b, const struct err *why)
{
	log_debug("box %s: %s", b->name, why->msg);
	b->away_since_ms = clock_mono_ms();
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
		unheard(b, why);
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
	backend->ops->inspect(backend, &b->at.handle, inspected_cb, b);
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

/* Of a connection that may be open at this end alone, another is tried. */
static void
be_silent(struct box *b)
{
	if (is_far(b))
		link_hang_up(b->link); /* then on_down */
	else
		lose(b, "its agent does not answer");
}

/* An answer may have come while nobody read, or this process was stopped: only
 * several in a row that do not come mean anything. */
static void
ask_agent(struct box *b)
{
	if (peer_ping(b->peer))
		b->silences = 0;
	else if (!b->unread && ++b->silences >= BOX_SILENCES_MAX) {
		be_silent(b);
		return;
	}
	timer_set_ms(b->timer, ping_ms(b));
}

static void
fail_silent(struct box *b)
{
	const struct carrier_ops *ops = b->door->ops;
	const char *trouble = ops->trouble != NULL ? ops->trouble(b->door) : "";
	char text[ERR_TEXT_MAX];

	(void)snprintf(text, sizeof(text),
	    "the sandbox started but its agent did not answer within 10 s%s%s",
	    trouble[0] != '\0' ? ": " : "", trouble);
	fail(b, ERR_BACKEND, text);
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
		fail_silent(b);
	} else if (b->state == BOX_GREETING && is_far(b)) {
		be_away(b);
	} else if (b->state == BOX_GREETING) {
		lose(b, "its agent does not answer");
	}
}

/* ---- opening */

static struct box *
box_new(struct box_common *in, const struct box_start *s)
{
	struct box *b = xcalloc(1, sizeof(*b));

	b->in = in;
	b->tenant = s->tenant;
	b->mode = s->mode;
	b->ttl_s = s->ttl_s;
	b->state = s->mode == MSG_OPEN_MODE_CREATE ? BOX_CREATING : BOX_LOOKING;
	b->id.uuid = s->uuid;
	(void)snprintf(
	    b->id.tenant, sizeof(b->id.tenant), "%s", s->tenant_name);
	ceilings_fingerprint(ceilings_of(in->host->ceilings, s->tenant_name),
	    in->host->policy, b->id.fingerprint);
	b->name = xstrdup(s->name);
	said_init(&b->said, s->tenant, s->claim.identifier);
	b->timer = timer_new(in->host->base, timer_cb, b);
	b->tasks = tasks_new(&in->tasks_host, s->sandbox,
	    s->mode == MSG_OPEN_MODE_CREATE ? TASKS_NONE_BEGUN :
					      TASKS_MAY_HAVE_BEGUN,
	    on_overdue, b);
	b->bounds = box_bounds_new(
	    in->host->base, in->host->backend, &in->bounds, b->name);
	box_index_enter(&in->index, &b->at, s->sandbox, &s->uuid,
	    s->container_id[0] != '\0' ? s->container_id : s->name);
	backend_handle_set_tenant(&b->at.handle, b->id.tenant);
	return b;
}

static int
prepare(struct box *b, struct backend_spec *spec, struct backend_wishes *wishes,
    struct err *e)
{
	const struct way *way = b->way;
	int rc =
	    way->delivery->ops->prepare(way->delivery, &b->id.uuid, wishes, e);

	if (rc == 0)
		rc = way->carrier->ops->prepare(
		    way->carrier, &b->id.uuid, wishes, e);
	spec->wishes = wishes;
	return rc != 0 ? rc : box_listen(b, e);
}

/* Its way is known. */
static void
create(struct box *b, const struct policy_template *template,
    const struct policy_claim *claim)
{
	struct backend_wishes wishes = {.nmounts = 0};
	struct backend_spec spec = {.name = b->name,
	    .identity = b->id,
	    .template = *template,
	    .claim = *claim,
	    .ttl_s = b->ttl_s};
	struct err e;
	int rc = prepare(b, &spec, &wishes, &e);

	if (rc != 0) {
		fail(b, rc, e.msg);
		return;
	}
	b->awaited++;
	b->opening = opening_start(&b->in->openings, &spec, opened_cb, b);
}

static void
way_known_cb(int rc, const struct way *way, const struct err *why, void *arg)
{
	struct box *b = arg;
	struct box_plan *p = b->plan;

	b->wait = NULL;
	b->plan = NULL;
	b->way = way;
	if (rc != 0)
		fail(b, rc, why->msg);
	else
		create(b, &p->template, &p->claim);
	box_plan_free(p);
}

static void
open_new(struct box *b, const struct box_start *s)
{
	const struct box_host *h = b->in->host;
	const struct ceiling *c = ceilings_of(h->ceilings, b->id.tenant);
	struct policy_template template = s->template;
	struct err e;
	int rc = policy_check_claim(&s->claim, &e);

	if (rc == 0)
		rc = ceilings_check(c, h->policy, &template, &e);
	if (rc == 0)
		rc = policy_check(h->policy, &template, &e);
	b->way = ways_for(h->ways, template.runtime);
	if (rc != 0) {
		fail(b, rc, e.msg);
	} else if (b->way != NULL) {
		create(b, &template, &s->claim);
	} else {
		b->plan = box_plan_new(&template, &s->claim);
		b->wait = ways_ask(h->ways, way_known_cb, b);
	}
}

void
box_open(struct box_common *in, const struct box_start *s)
{
	struct box *b = box_new(in, s);

	if (s->mode == MSG_OPEN_MODE_CREATE)
		open_new(b, s);
	else
		box_inspect(b);
}

/* ---- what it is asked and told */

const struct box_identity *
box_identity(const struct box *b)
{
	return &b->id;
}

bool
box_is_used_by(const struct box *b, uint64_t tenant)
{
	return b->tenant == tenant;
}

struct tasks *
box_tasks(const struct box *b)
{
	return is_in(b, BOX_LIVING) ? b->tasks : NULL;
}

bool
box_is_changing(const struct box *b)
{
	return is_in(b, BOX_CREATING | BOX_CLOSING);
}

void
box_set_ttl(struct box *b, uint32_t ttl_s)
{
	b->ttl_s = ttl_s;
	tell_lease(b);
}

void
box_set_shares(struct box *b, const struct msg_sandbox_shares *m)
{
	const struct backend_bounds want = {.cpu_shares = m->cpu_shares,
	    .nano_cpus = m->nano_cpus,
	    .first_cpu = m->first_cpu,
	    .cpus = m->cpus};

	if (!is_in(b, BOX_RUNNING))
		return;
	box_bounds_set(b->bounds, &b->at.handle, &want);
	link_pace(b->link, m->output_bytes_s);
}

void
box_remove(struct box *b, enum backend_forget files)
{
	b->farewell = BOX_SAY_REMOVED;
	set_forgets(b, files);
	if (b->state == BOX_CLOSING)
		return; /* said when it is gone */
	tasks_end(b->tasks, RUNLOG_LOST, "the sandbox was removed");
	box_close(b);
}

void
box_on_change(struct box *b, enum backend_change what)
{
	if (!is_in(b, BOX_RUNNING))
		return;
	log_debug("box %s: engine's event %d", b->name, (int)what);
	if (what == BACKEND_DESTROYED)
		lose(b, "its container was removed from outside");
	else if (what == BACKEND_DIED)
		box_inspect(b); /* says why */
}

void
box_look(struct box *b)
{
	if (b->state == BOX_LOOKING)
		box_inspect(b);
}

void
box_resume(struct box *b)
{
	b->unread = false;
	if (b->link != NULL)
		link_resume(b->link);
}

/* ---- what all boxes have in common */

static const char *
root_refusal(void *arg)
{
	const struct box_common *in = arg;

	return root_rule_refusal(in->host->policy, in->host->backend);
}

void
box_common_init(struct box_common *in, const struct box_host *host)
{
	memset(in, 0, sizeof(*in));
	in->host = host;
	openings_init(&in->openings, host);
	in->asks_host.front = host->front;
	box_bounds_line_init(&in->bounds);
	in->tasks_host = (struct tasks_host){.front = host->front,
	    .asks = &in->asks_host,
	    .task = host->task,
	    .limits = host->limits,
	    .by_number = &in->tasks,
	    .root_refusal = root_refusal,
	    .arg = in};
}

static void
die_cb(struct box_place *p, void *arg)
{
	(void)arg;
	die(CONTAINER_OF(p, struct box, at));
}

void
box_common_clear(struct box_common *in)
{
	box_index_each(&in->index, die_cb, NULL);
	box_index_clear(&in->index);
	hashmap_clear(&in->tasks);
}
