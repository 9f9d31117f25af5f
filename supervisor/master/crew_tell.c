#include "supervisor/master/crew_int.h"

#include <unistd.h>

#include "common/clock.h"

static enum msg_member_state
state_of(struct slot *s)
{
	const struct life *p = &s->life;

	if (s->use == SLOT_REFUSED)
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

void
crew_tell_member(struct slot *s)
{
	const struct life *p = &s->life;

	tell(s->crew,
	    &(struct msg_crew_member){.name = p->name,
		.pid = p->state == LIFE_DOWN ? 0 : (uint32_t)p->pid,
		.state = state_of(s),
		.restarts = p->starts > 0 ? p->starts - 1 : 0,
		.started_ms = p->started_wall_ms});
}

void
crew_tell_all(struct crew *c)
{
	tell(c,
	    &(struct msg_crew_member){.name = "supervisor",
		.pid = (uint32_t)getpid(),
		.state = MSG_MEMBER_STATE_READY,
		.started_ms = c->started_wall_ms});
	for (uint32_t i = 0; i < c->nslots; i++)
		crew_tell_member(&c->slots[i]);
}
