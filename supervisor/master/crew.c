/*
 * crew.c - the lives of the front and the workers
 *
 * A slot is a child's place: the front has slot 0, each worker one behind it,
 * and behind those are the envoys (common/envoy.h): what asks for an issuer's
 * keys, and the courier.  Of workers all is true of these, too, but that a
 * front can do without them.
 * One life after the other is in it, and struct life (life.h) knows how far
 * the present one is.
 *
 *	slot_start		life_start, and the first messages
 *	   | on_hello		it is told its configuration; the front also
 *	   |			the listening socket
 *	   | on_ready		pair_if_ready: a worker and the front get the
 *	   |			two ends of a channel, once both are ready
 *	   | slot_on_exit	it was reaped.  What its status means is in
 *	   |			restart.h:
 *	   |	refused		never started again; if it was the front, or
 *	   |			the last worker, the crew stops.  An envoy that
 *	   |			was ready once is tried again, a minute later
 *	   |	died		slot_died: counted per slot and per role
 *	   |	left		status 0: with its front, or else a death
 *	   v
 *	slot_schedule		the slot's timer starts the next life; while
 *				the role is throttled, the role's timer does
 *
 * A worker leaves with 0 when its front is gone, and may be reaped before it.
 * So a 0 with the front alive waits CREW_UNEXPLAINED_MS for the front's death
 * (SLOT_UNEXPLAINED), and counts as a death of its own only after that.  The
 * other order is SLOT_ORPHAN: the front is gone, and the worker has leave_ms
 * to see it.
 *
 * The end has three states.  CREW_STOPPING_FRONT: the front drains, and is
 * killed when it does not end.  CREW_STOPPING_WORKERS: who is left is asked,
 * then killed.  CREW_ENDED: nobody is up, and on_end was called.
 */
#include "supervisor/master/crew.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "common/child.h"
#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/master/life.h"
#include "supervisor/master/restart.h"

#define CREW_DRAIN_GRACE_MS 1000 /* the front ends its own drain first */
#define CREW_UNEXPLAINED_MS 100
#define CREW_AFTER_FRONT_MS 1 /* timers of one moment have no order */

static const char *const role_names[CHILD_ROLES] = {[MSG_ROLE_FRONT] = "front",
    [MSG_ROLE_WORKER] = "workers",
    [MSG_ROLE_KEYS] = "keys",
    [MSG_ROLE_COURIER] = "courier"};

enum crew_state {
	CREW_RUNNING,
	CREW_STOPPING_FRONT,
	CREW_STOPPING_WORKERS,
	CREW_ENDED
};

/* Why a worker that exits with 0 may do so. */
enum slot_note {
	SLOT_NONE,
	SLOT_ORPHAN,     /* its front is gone: it should exit */
	SLOT_UNEXPLAINED /* it exited; is its front about to be reaped? */
};

/* The children of one kind.  More deaths than the policy bears throttle it:
 * nobody of the role is started while its timer is set. */
struct role {
	const char *name;
	const struct restart_policy *policy;
	struct restart_burst burst;
	struct timer *timer;
	uint64_t until_ms; /* when the timer is due */
	struct crew *crew;
};

struct slot { /* a place in the crew; one life after the other is in it */
	struct crew *crew;
	struct life life;
	struct restart restart;
	struct timer *timer; /* the next start */
	uint64_t due_ms;     /* when that is */
	/* Of its newest channel with the present front, 0: none yet. */
	uint32_t peer_generation;
	enum slot_note note;
	bool is_paired; /* it has a channel to the front, in its present life */
	bool is_refused; /* it exited with 77 or 78 */
	bool was_ready;  /* in any of its lives */
};

struct crew {
	struct event_base *base;
	const struct tuning *tuning;
	struct prepared *given;
	uint32_t workers;
	const struct crew_ops *ops;
	void *arg;
	enum crew_state state;
	int status;
	int64_t started_wall_ms;
	const struct conf *conf;
	uint32_t peer_generation; /* the newest */
	struct tlsfiles tls_offer;
	uint32_t tls_number; /* of the newest offer */
	bool was_ready;      /* all were, at one time */
	struct role roles[CHILD_ROLES];
	struct timer *stop_timer;
	uint32_t nslots;
	/* The front, the workers, the envoys. */
	struct slot slots[CREW_WORKERS_MAX + CHILD_ROLES - 1];
};

static struct slot *
slot_front(struct crew *c)
{
	return &c->slots[0];
}

static struct role *
slot_role(struct slot *s)
{
	return &s->crew->roles[s->life.role];
}

/* ---- roles */

static bool
role_is_throttled(const struct role *r)
{
	return timer_is_set(r->timer);
}

/* True: it is throttled from now on. */
static bool
role_died(struct role *r, uint64_t now_ms)
{
	uint32_t ms = restart_burst_add(r->policy, &r->burst, now_ms);

	if (ms == 0 || role_is_throttled(r))
		return false;
	log_error("%s: more than %u deaths in %u s: throttled for %u s",
	    r->name, r->policy->burst, r->policy->window_ms / 1000, ms / 1000);
	r->until_ms = now_ms + ms;
	timer_set_ms(r->timer, ms);
	return true;
}

/* ---- what the front is told */

static enum msg_member_state
state_of(struct slot *s)
{
	const struct life *p = &s->life;

	if (s->is_refused)
		return MSG_MEMBER_STATE_REFUSED;
	if (p->state == LIFE_DOWN)
		return role_is_throttled(slot_role(s)) ?
		    MSG_MEMBER_STATE_THROTTLED :
		    MSG_MEMBER_STATE_DOWN;
	if (p->state != LIFE_READY)
		return MSG_MEMBER_STATE_STARTING;
	return p->quiet ? MSG_MEMBER_STATE_QUIET : MSG_MEMBER_STATE_READY;
}

static void
tell(struct crew *c, const struct msg_crew_member *m)
{
	if (slot_front(c)->life.state == LIFE_READY)
		msg_send_crew_member(slot_front(c)->life.chan, m);
}

/* The front, if it can hear, is told how it stands with that place. */
static void
slot_tell(struct slot *s)
{
	const struct life *p = &s->life;

	tell(s->crew,
	    &(struct msg_crew_member){.name = p->name,
		.pid = p->state == LIFE_DOWN ? 0 : (uint32_t)p->pid,
		.state = state_of(s),
		.restarts = p->starts > 0 ? p->starts - 1 : 0,
		.started_ms = p->started_wall_ms});
}

/* To a front that is new. */
static void
tell_all(struct crew *c)
{
	tell(c,
	    &(struct msg_crew_member){.name = "supervisor",
		.pid = (uint32_t)getpid(),
		.state = MSG_MEMBER_STATE_READY,
		.started_ms = c->started_wall_ms});
	for (uint32_t i = 0; i < c->nslots; i++)
		slot_tell(&c->slots[i]);
}

/* Its next start, in ms. */
static void
slot_schedule(struct slot *s, uint32_t ms)
{
	s->due_ms = clock_mono_ms() + ms;
	timer_set_ms(s->timer, ms);
}

/* How long until the slot's next start, as the front is told. */
static uint32_t
slot_delay_ms(struct slot *s)
{
	const struct role *r = slot_role(s);
	uint64_t now_ms = clock_mono_ms();
	uint64_t due_ms = 0;

	if (role_is_throttled(r))
		due_ms = r->until_ms;
	else if (timer_is_set(s->timer))
		due_ms = s->due_ms;
	return due_ms > now_ms ? (uint32_t)(due_ms - now_ms) : 0;
}

/* The front is told that this worker is away, and how long. */
static void
slot_tell_gone(struct slot *s)
{
	struct crew *c = s->crew;

	if (slot_front(c)->life.state != LIFE_READY)
		return;
	msg_send_peer_gone(slot_front(c)->life.chan,
	    &(struct msg_peer_gone){.index = s->life.index,
		.generation = s->peer_generation,
		.delay_ms = slot_delay_ms(s),
		.throttled = role_is_throttled(slot_role(s)) || s->is_refused ||
		    c->state != CREW_RUNNING});
}

/* ---- death and restart */

/* The throttling is over: whoever of the role is down starts. */
static void
role_over_cb(void *arg)
{
	struct role *r = arg;
	struct crew *c = r->crew;

	log_info("%s: no longer throttled", r->name);
	for (uint32_t i = 0; i < c->nslots; i++) {
		struct slot *s = &c->slots[i];

		if (slot_role(s) == r && s->life.state == LIFE_DOWN &&
		    !s->is_refused && !timer_is_set(s->timer))
			slot_schedule(s, 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(c->roles); i++)
		if (role_is_throttled(&c->roles[i]))
			return;
	c->ops->on_health(CREW_WELL, c->arg);
}

/* A death is counted, and the next start is set: by the slot's timer, or by
 * the role's when that is throttled. */
static void
slot_died(struct slot *s, const char *how)
{
	struct role *r = slot_role(s);
	uint64_t now_ms = clock_mono_ms();
	uint32_t delay_ms;

	delay_ms = restart_next(r->policy, &s->restart, now_ms, s->life.done);
	log_warn("%s died: %s; work done: %u; restart in %u ms", s->life.name,
	    how, s->life.done, delay_ms);
	if (role_died(r, now_ms))
		s->crew->ops->on_health(CREW_DEGRADED, s->crew->arg);
	if (!role_is_throttled(r))
		slot_schedule(s, delay_ms);
}

/* ---- stopping */

static bool
is_anybody_up(const struct crew *c)
{
	for (uint32_t i = 0; i < c->nslots; i++)
		if (c->slots[i].life.state != LIFE_DOWN)
			return true;
	return false;
}

static void
cancel_timers(struct crew *c)
{
	for (uint32_t i = 0; i < c->nslots; i++)
		timer_stop(c->slots[i].timer);
	for (size_t i = 0; i < ARRAY_LEN(c->roles); i++)
		timer_stop(c->roles[i].timer);
}

static void
end_if_empty(struct crew *c)
{
	if (c->state != CREW_STOPPING_WORKERS || is_anybody_up(c))
		return;
	timer_stop(c->stop_timer);
	c->state = CREW_ENDED;
	c->ops->on_end(c->status, c->arg);
}

static void
stop_workers(struct crew *c)
{
	uint32_t leave_ms = c->tuning->leave_ms;

	c->state = CREW_STOPPING_WORKERS;
	for (uint32_t i = 0; i < c->nslots; i++)
		if (c->slots[i].life.state != LIFE_DOWN)
			msg_send_drain(c->slots[i].life.chan,
			    &(struct msg_drain){.left_ms = leave_ms});
	timer_set_ms(c->stop_timer, leave_ms);
	end_if_empty(c);
}

static void
stop_cb(void *arg)
{
	struct crew *c = arg;

	if (c->state == CREW_STOPPING_FRONT) {
		log_warn("the front did not drain in time: SIGKILL");
		life_kill(&slot_front(c)->life);
		return;
	}
	for (uint32_t i = 0; i < c->nslots; i++)
		if (c->slots[i].life.state != LIFE_DOWN) {
			log_warn(
			    "%s did not leave: SIGKILL", c->slots[i].life.name);
			life_kill(&c->slots[i].life);
		}
}

void
crew_stop(struct crew *c, uint32_t left_ms)
{
	if (c->state != CREW_RUNNING)
		return;
	cancel_timers(c);
	c->state = CREW_STOPPING_FRONT;
	if (slot_front(c)->life.state == LIFE_DOWN) {
		stop_workers(c);
		return;
	}
	msg_send_drain(
	    slot_front(c)->life.chan, &(struct msg_drain){.left_ms = left_ms});
	timer_set_ms(c->stop_timer, left_ms + CREW_DRAIN_GRACE_MS);
}

void
crew_kill(struct crew *c)
{
	if (c->state == CREW_ENDED)
		return;
	cancel_timers(c);
	timer_stop(c->stop_timer);
	c->state = CREW_STOPPING_WORKERS;
	for (uint32_t i = 0; i < c->nslots; i++)
		life_kill(&c->slots[i].life);
	end_if_empty(c);
}

/* ---- exits */

/* The workers leave with their front; those that were quicker than the news
 * of its death have now explained themselves. */
static void
front_gone(struct crew *c)
{
	for (uint32_t i = 1; i < c->nslots; i++) {
		struct slot *w = &c->slots[i];

		w->peer_generation = 0;
		if (w->note == SLOT_UNEXPLAINED) {
			log_info("%s left with the front", w->life.name);
			w->note = SLOT_NONE;
			slot_schedule(w, CREW_AFTER_FRONT_MS);
		}
		if (!w->is_paired || w->life.state == LIFE_DOWN)
			continue;
		w->note = SLOT_ORPHAN;
		life_expect_exit(&w->life, c->tuning->leave_ms);
	}
}

static bool
are_all_workers_refused(const struct crew *c)
{
	for (uint32_t i = 1; i <= c->workers; i++)
		if (!c->slots[i].is_refused)
			return false;
	return true;
}

static bool
slot_is_envoy(const struct slot *s)
{
	return s->life.role == MSG_ROLE_KEYS ||
	    s->life.role == MSG_ROLE_COURIER;
}

/* Exit 77 or 78: starting it again at once would end the same way.  At a start
 * that is for whoever starts it to mend.  Later what an envoy is missing may
 * come back (a file of authorities that is written anew): all others go on, and
 * it is tried again after throttle_ms. */
static void
slot_refused(struct slot *s, int status)
{
	struct crew *c = s->crew;

	s->is_refused = true;
	if (slot_is_envoy(s) && s->was_ready) {
		uint32_t ms = slot_role(s)->policy->throttle_ms;

		log_warn("%s exited with status %d and is tried again in %u ms",
		    s->life.name, status, ms);
		slot_schedule(s, ms);
		return;
	}
	log_error("%s exited with status %d and is not started again",
	    s->life.name, status);
	if (s->life.role == MSG_ROLE_WORKER && !are_all_workers_refused(c))
		return;
	c->status = status;
	crew_stop(c, 0);
}

static void
slot_left(struct slot *s)
{
	const struct crew *c = s->crew;

	if (s->note == SLOT_ORPHAN) {
		log_info("%s left with the front", s->life.name);
		s->note = SLOT_NONE;
		slot_schedule(s, CREW_AFTER_FRONT_MS);
	} else if (s->life.role != MSG_ROLE_FRONT &&
	    c->slots[0].life.state == LIFE_READY) {
		s->note = SLOT_UNEXPLAINED;
		slot_schedule(s, CREW_UNEXPLAINED_MS);
	} else {
		slot_died(s, "exit status 0 without a reason");
	}
}

static void
slot_ended(struct slot *s, int wait_status)
{
	char how[RESTART_TEXT_MAX];

	switch (restart_read_status(wait_status)) {
	case RESTART_REFUSED:
		slot_refused(s, WEXITSTATUS(wait_status));
		break;
	case RESTART_LEFT:
		slot_left(s);
		break;
	case RESTART_DIED:
		restart_describe(wait_status, how);
		slot_died(s, how);
		break;
	}
}

static void
on_exit_while_stopping(struct slot *s)
{
	struct crew *c = s->crew;

	log_debug("%s is gone", s->life.name);
	if (c->state == CREW_STOPPING_FRONT && s == slot_front(c)) {
		stop_workers(c);
		return;
	}
	if (s != slot_front(c))
		slot_tell_gone(s);
	end_if_empty(c);
}

/* A life is over: what follows for it and the others. */
static void
slot_on_exit(struct slot *s, int wait_status)
{
	struct crew *c = s->crew;

	if (c->state != CREW_RUNNING) {
		on_exit_while_stopping(s);
		return;
	}
	slot_ended(s, wait_status);
	if (s != slot_front(c))
		slot_tell_gone(s);
	else if (c->state == CREW_RUNNING) /* it may have refused */
		front_gone(c);
}

/* ---- starting */

static void
slot_start(struct slot *s)
{
	const struct prepared *given = s->crew->given;
	struct privdrop_user user;
	struct spawn spawn = {.path = given->paths[s->life.role]};
	struct err e;

	if (users_find(&given->users, s->life.role, &user))
		spawn.user = &user;
	s->note = SLOT_NONE;
	s->is_paired = false;
	s->restart.ready_ms = 0;
	if (life_start(&s->life, &spawn, &e) != 0)
		slot_died(s, e.msg);
	slot_tell(s);
}

static void
slot_cb(void *arg)
{
	struct slot *s = arg;

	/* It left with 0, and its front lives on.  Only an envoy has a reason
	 * (envoy.h). */
	if (s->note == SLOT_UNEXPLAINED) {
		s->note = SLOT_NONE;
		slot_died(s,
		    slot_is_envoy(s) ? "exit status 0 to start anew" :
				       "exit status 0 without a reason");
		return;
	}
	s->is_refused = false;
	if (role_is_throttled(slot_role(s)))
		slot_tell_gone(s); /* the role's timer starts it */
	else
		slot_start(s);
}

/* ---- pairing */

static void
pair(struct slot *worker)
{
	struct crew *c = worker->crew;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == -1) {
		log_error("%s: no job channel: %s", worker->life.name,
		    strerror(errno));
		life_kill(&worker->life); /* its next life tries again */
		return;
	}
	worker->is_paired = true;
	worker->peer_generation = ++c->peer_generation;
	msg_send_peer(slot_front(c)->life.chan,
	    &(struct msg_peer){.index = worker->life.index,
		.generation = worker->peer_generation,
		.channel = fds[0]});
	msg_send_peer(worker->life.chan,
	    &(struct msg_peer){.index = 0,
		.generation = worker->peer_generation,
		.channel = fds[1]});
	log_debug("front and %s have channel %u", worker->life.name,
	    worker->peer_generation);
}

/* A worker that still waits to die of an earlier front gets no new one. */
static void
pair_if_ready(struct slot *worker)
{
	if (slot_front(worker->crew)->life.state == LIFE_READY &&
	    worker->life.state == LIFE_READY && worker->note == SLOT_NONE &&
	    !worker->is_paired)
		pair(worker);
}

static void
check_all_ready(struct crew *c)
{
	if (c->was_ready)
		return;
	for (uint32_t i = 0; i < c->nslots; i++)
		if (c->slots[i].life.state != LIFE_READY)
			return;
	c->was_ready = true;
	c->ops->on_ready(c->arg);
}

static void
send_tls_offer(struct crew *c)
{
	tlsfiles_send(&c->tls_offer, slot_front(c)->life.chan, c->tls_number);
}

static void
on_ready(struct life *p, void *arg)
{
	struct slot *s = arg;
	struct crew *c = s->crew;

	s->restart.ready_ms = clock_mono_ms();
	s->was_ready = true;
	log_info("%s[%d] is ready", p->name, (int)p->pid);
	if (c->state != CREW_RUNNING)
		return;
	if (s == slot_front(c)) {
		send_tls_offer(c);
		tell_all(c);
	} else {
		slot_tell(s);
	}
	for (uint32_t i = 1; i < c->nslots; i++) {
		if (s != slot_front(c) && s != &c->slots[i])
			continue;
		pair_if_ready(&c->slots[i]);
		if (c->slots[i].life.state == LIFE_DOWN)
			slot_tell_gone(&c->slots[i]);
	}
	check_all_ready(c);
}

/* false: it is gone for that. */
static bool
hand_out(struct life *p, const struct listener *l)
{
	int fd;

	if (l->fd < 0)
		return true;
	fd = spawn_copy(l->fd, "listening socket");
	if (fd == -1) {
		life_kill(p);
		return false;
	}
	msg_send_listen(
	    p->chan, &(struct msg_listen){.address = l->address, .socket = fd});
	return true;
}

static void
on_hello(struct life *p, void *arg)
{
	struct crew *c = ((struct slot *)arg)->crew;

	msg_send_instance(
	    p->chan, &(struct msg_instance){.instance = c->given->instance});
	keyfile_send(c->given->secrets_key, p->chan, p->role);
	if (p->role == MSG_ROLE_FRONT)
		tlsfiles_send(&c->given->tls, p->chan, 0);
	else if (p->role == MSG_ROLE_WORKER)
		bounds_send(&c->given->bounds, p->chan);
	life_configure(p, c->conf);
	if (p->role == MSG_ROLE_FRONT && hand_out(p, &c->given->listener))
		(void)hand_out(p, &c->given->admin);
}

/* An answer to an older offer, or of a front that was asked before this one,
 * says nothing. */
static void
on_tls_taken(struct life *p, uint32_t number, bool good, void *arg)
{
	struct crew *c = ((struct slot *)arg)->crew;

	(void)p;
	if (number != c->tls_number ||
	    c->tls_offer.fds[MSG_TLS_PART_CERTIFICATE] == -1)
		return;
	if (good)
		tlsfiles_move(&c->given->tls, &c->tls_offer);
	else
		tlsfiles_close(&c->tls_offer);
}

void
crew_offer_tls(struct crew *c, struct tlsfiles *offer)
{
	tlsfiles_move(&c->tls_offer, offer);
	c->tls_number++;
	/* One that has not said HELLO is asked when it is ready. */
	if (slot_front(c)->life.state >= LIFE_CONFIGURED)
		send_tls_offer(c);
}

static void
on_exit_of(struct life *p, int wait_status, void *arg)
{
	struct crew *c = ((struct slot *)arg)->crew;

	/* It may have died of them: the next one is not asked again. */
	if (p == &slot_front(c)->life)
		tlsfiles_close(&c->tls_offer);
	slot_on_exit(arg, wait_status);
	slot_tell(arg);
}

static void
on_quiet(struct life *p, bool quiet, void *arg)
{
	struct slot *s = arg;
	struct crew *c = s->crew;

	slot_tell(s);
	log_warn("%s[%d] %s", p->name, (int)p->pid,
	    quiet ? "does not answer: it is stopped, or has too much to do" :
		    "answers again");
	if (p->role != MSG_ROLE_WORKER ||
	    slot_front(c)->life.state != LIFE_READY)
		return;
	msg_send_peer_quiet(slot_front(c)->life.chan,
	    &(struct msg_peer_quiet){.index = p->index,
		.generation = s->peer_generation,
		.quiet = quiet});
}

static const struct life_ops slot_ops = {.on_hello = on_hello,
    .on_ready = on_ready,
    .on_quiet = on_quiet,
    .on_tls_taken = on_tls_taken,
    .on_exit = on_exit_of};

static struct slot *
find_pid(struct crew *c, pid_t pid)
{
	for (uint32_t i = 0; i < c->nslots; i++)
		if (c->slots[i].life.pid == pid)
			return &c->slots[i];
	return NULL;
}

void
crew_reap(struct crew *c)
{
	int wait_status;
	pid_t pid;

	while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0) {
		struct slot *s = find_pid(c, pid);

		/* As PID 1 of a container we inherit strangers, too. */
		if (s != NULL)
			life_on_reaped(&s->life, wait_status);
	}
}

/* ---- life of the crew */

static void
slot_init(struct crew *c, enum msg_role role, uint32_t index)
{
	struct slot *s = &c->slots[c->nslots++];

	s->crew = c;
	s->timer = timer_new(c->base, slot_cb, s);
	life_init(&s->life, c->base, role, index, c->tuning, &slot_ops, s);
}

struct crew *
crew_new(struct event_base *base, const struct tuning *tuning,
    struct prepared *given, uint32_t workers, const struct crew_ops *ops,
    void *arg)
{
	struct crew *c = xcalloc(1, sizeof(*c));

	c->base = base;
	c->tuning = tuning;
	c->given = given;
	c->workers = workers;
	c->ops = ops;
	c->arg = arg;
	c->started_wall_ms = clock_wall_ms();
	c->tls_offer = (struct tlsfiles)TLSFILES_INIT;
	for (size_t i = 0; i < ARRAY_LEN(c->roles); i++)
		c->roles[i] = (struct role){.name = role_names[i],
		    .policy = i == MSG_ROLE_FRONT ? &c->tuning->front :
						    &c->tuning->worker,
		    .timer = timer_new(base, role_over_cb, &c->roles[i]),
		    .crew = c};
	c->stop_timer = timer_new(base, stop_cb, c);
	slot_init(c, MSG_ROLE_FRONT, 0);
	for (uint32_t i = 0; i < workers; i++)
		slot_init(c, MSG_ROLE_WORKER, i);
	if (given->paths[MSG_ROLE_KEYS] != NULL)
		slot_init(c, MSG_ROLE_KEYS, CHILD_KEYS_INDEX);
	if (given->paths[MSG_ROLE_COURIER] != NULL)
		slot_init(c, MSG_ROLE_COURIER, CHILD_COURIER_INDEX);
	return c;
}

void
crew_free(struct crew *c)
{
	if (c == NULL)
		return;
	for (uint32_t i = 0; i < c->nslots; i++) {
		life_kill(&c->slots[i].life);
		life_clear(&c->slots[i].life);
		timer_free(c->slots[i].timer);
	}
	for (size_t i = 0; i < ARRAY_LEN(c->roles); i++)
		timer_free(c->roles[i].timer);
	timer_free(c->stop_timer);
	tlsfiles_close(&c->tls_offer);
	free(c);
}

void
crew_configure(struct crew *c, const struct conf *conf)
{
	c->conf = conf;
	for (uint32_t i = 0; i < c->nslots; i++) {
		struct life *p = &c->slots[i].life;

		if (p->state == LIFE_CONFIGURED || p->state == LIFE_READY)
			life_configure(p, conf);
	}
}

void
crew_set_log_level(struct crew *c, unsigned int level)
{
	for (uint32_t i = 0; i < c->nslots; i++)
		msg_send_log_level(c->slots[i].life.chan,
		    &(struct msg_log_level){.level = level});
}

void
crew_start(struct crew *c)
{
	for (uint32_t i = 0; i < c->nslots; i++)
		slot_start(&c->slots[i]);
}
