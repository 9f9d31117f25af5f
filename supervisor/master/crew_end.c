#include "supervisor/master/crew_int.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include <event2/event.h>

#include "common/clock.h"
#include "common/log.h"

#define CREW_DRAIN_GRACE_MS 1000 /* the front ends its own drain first */
#define CREW_UNEXPLAINED_MS 100
#define CREW_AFTER_FRONT_MS 1 /* timers of one moment have no order */

/* Death and restart */

static void
role_throttle(struct role *r, uint32_t ms)
{
	log_error("%s: more than %u deaths in %u s: throttled for %u s",
	    r->name, r->policy->burst, r->policy->window_ms / 1000, ms / 1000);
	r->until_ms = clock_mono_ms() + ms;
	crew_timer_set(r->timer, ms);
	r->crew->ops->on_health(CREW_DEGRADED, r->crew->arg);
}

/* The throttling is over: whoever of the role is down starts. */
void
crew_role_cb(int fd, short what, void *arg)
{
	struct role *r = arg;
	struct crew *c = r->crew;

	(void)fd;
	(void)what;
	log_info("%s: no longer throttled", r->name);
	for (uint32_t i = 0; i < c->nslots; i++) {
		struct slot *s = &c->slots[i];

		if (slot_role(s) == r && s->proc.state == PROC_DOWN &&
		    s->use == SLOT_USED && !evtimer_pending(s->timer, NULL))
			slot_schedule(s, 0);
	}
	if (!role_is_throttled(&c->roles[0]) &&
	    !role_is_throttled(&c->roles[1]))
		c->ops->on_health(CREW_WELL, c->arg);
}

static void
describe_status(int wait_status, char *out, size_t size)
{
	if (WIFSIGNALED(wait_status))
		(void)snprintf(out, size, "signal %d (%s)",
		    WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
	else
		(void)snprintf(
		    out, size, "exit status %d", WEXITSTATUS(wait_status));
}

void
slot_died(struct slot *s, const char *how)
{
	struct role *r = slot_role(s);
	uint64_t now_ms = clock_mono_ms();
	uint32_t delay_ms, throttle_ms;

	delay_ms = restart_next(r->policy, &s->restart, now_ms, s->proc.done);
	throttle_ms = restart_burst_add(r->policy, &r->burst, now_ms);
	log_warn("%s died: %s; work done: %u; restart in %u ms", s->proc.name,
	    how, s->proc.done, delay_ms);
	if (throttle_ms > 0 && !role_is_throttled(r))
		role_throttle(r, throttle_ms);
	if (!role_is_throttled(r))
		slot_schedule(s, delay_ms);
}

/* Stopping */

static bool
is_anybody_up(const struct crew *c)
{
	for (uint32_t i = 0; i < c->nslots; i++)
		if (c->slots[i].proc.state != PROC_DOWN)
			return true;
	return false;
}

static void
cancel_timers(struct crew *c)
{
	for (uint32_t i = 0; i < c->nslots; i++)
		(void)event_del(c->slots[i].timer);
	for (size_t i = 0; i < ARRAY_LEN(c->roles); i++)
		(void)event_del(c->roles[i].timer);
}

static void
end_if_empty(struct crew *c)
{
	if (c->state != CREW_STOPPING_WORKERS || is_anybody_up(c))
		return;
	(void)event_del(c->stop_timer);
	c->state = CREW_ENDED;
	c->ops->on_end(c->status, c->arg);
}

static void
stop_workers(struct crew *c)
{
	uint32_t leave_ms = c->setup->tuning->leave_ms;

	c->state = CREW_STOPPING_WORKERS;
	for (uint32_t i = 0; i < c->nslots; i++)
		if (c->slots[i].proc.state != PROC_DOWN)
			msg_send_drain(c->slots[i].proc.chan,
			    &(struct msg_drain){.left_ms = leave_ms});
	crew_timer_set(c->stop_timer, leave_ms);
	end_if_empty(c);
}

void
crew_stop_cb(int fd, short what, void *arg)
{
	struct crew *c = arg;

	(void)fd;
	(void)what;
	if (c->state == CREW_STOPPING_FRONT) {
		log_warn("the front did not drain in time: SIGKILL");
		proc_kill(&slot_front(c)->proc);
		return;
	}
	for (uint32_t i = 0; i < c->nslots; i++)
		if (c->slots[i].proc.state != PROC_DOWN) {
			log_warn(
			    "%s did not leave: SIGKILL", c->slots[i].proc.name);
			proc_kill(&c->slots[i].proc);
		}
}

void
crew_stop(struct crew *c, uint32_t left_ms)
{
	if (c->state != CREW_RUNNING)
		return;
	cancel_timers(c);
	c->state = CREW_STOPPING_FRONT;
	if (slot_front(c)->proc.state == PROC_DOWN) {
		stop_workers(c);
		return;
	}
	msg_send_drain(
	    slot_front(c)->proc.chan, &(struct msg_drain){.left_ms = left_ms});
	crew_timer_set(c->stop_timer, left_ms + CREW_DRAIN_GRACE_MS);
}

void
crew_kill(struct crew *c)
{
	if (c->state == CREW_ENDED)
		return;
	cancel_timers(c);
	(void)event_del(c->stop_timer);
	c->state = CREW_STOPPING_WORKERS;
	for (uint32_t i = 0; i < c->nslots; i++)
		proc_kill(&c->slots[i].proc);
	end_if_empty(c);
}

/* Exits */

/* The workers leave with their front; those that were quicker than the news
 * of its death have now explained themselves. */
static void
front_gone(struct crew *c)
{
	for (uint32_t i = 1; i < c->nslots; i++) {
		struct slot *w = &c->slots[i];

		w->peer_generation = 0;
		if (w->note == SLOT_UNEXPLAINED) {
			log_info("%s left with the front", w->proc.name);
			w->note = SLOT_NONE;
			slot_schedule(w, CREW_AFTER_FRONT_MS);
		}
		if (w->channel == SLOT_ALONE || w->proc.state == PROC_DOWN)
			continue;
		w->note = SLOT_ORPHAN;
		proc_expect_exit(&w->proc, c->setup->tuning->leave_ms);
	}
}

static bool
are_all_workers_refused(const struct crew *c)
{
	for (uint32_t i = 1; i < c->nslots; i++)
		if (c->slots[i].use != SLOT_REFUSED)
			return false;
	return true;
}

/* Exit 77 or 78: starting it again would end the same way. */
static void
slot_refused(struct slot *s, int status)
{
	struct crew *c = s->crew;

	s->use = SLOT_REFUSED;
	log_error("%s exited with status %d and is not started again",
	    s->proc.name, status);
	if (s != slot_front(c) && !are_all_workers_refused(c))
		return;
	c->status = status;
	crew_stop(c, 0);
}

static void
slot_left(struct slot *s)
{
	const struct crew *c = s->crew;

	if (s->note == SLOT_ORPHAN) {
		log_info("%s left with the front", s->proc.name);
		s->note = SLOT_NONE;
		slot_schedule(s, CREW_AFTER_FRONT_MS);
	} else if (s->proc.role == MSG_ROLE_WORKER &&
	    c->slots[0].proc.state == PROC_READY) {
		s->note = SLOT_UNEXPLAINED;
		slot_schedule(s, CREW_UNEXPLAINED_MS);
	} else {
		slot_died(s, "exit status 0 without a reason");
	}
}

static void
slot_ended(struct slot *s, int wait_status)
{
	char how[64];

	switch (restart_read_status(wait_status)) {
	case RESTART_REFUSED:
		slot_refused(s, WEXITSTATUS(wait_status));
		break;
	case RESTART_LEFT:
		slot_left(s);
		break;
	case RESTART_DIED:
		describe_status(wait_status, how, sizeof(how));
		slot_died(s, how);
		break;
	}
}

static void
on_exit_while_stopping(struct slot *s)
{
	struct crew *c = s->crew;

	log_debug("%s is gone", s->proc.name);
	if (c->state == CREW_STOPPING_FRONT && s == slot_front(c)) {
		stop_workers(c);
		return;
	}
	if (s != slot_front(c))
		slot_tell_gone(s);
	end_if_empty(c);
}

void
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
