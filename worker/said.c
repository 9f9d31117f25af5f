#include "worker/said.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "worker/task.h"

static struct said_allowance all; /* of all sandboxes */

static const char *const words[] = {
    [FRAME_SAID_WHAT_STARTED] = "agent is there",
    [FRAME_SAID_WHAT_ENDED_COMMAND] = "agent ended a command",
    [FRAME_SAID_WHAT_OUT_OF_MEMORY] = "agent saw kills for want of memory",
    [FRAME_SAID_WHAT_KEEPER_LOST] = "agent lost the keeper of a command",
    [FRAME_SAID_WHAT_KEEPER_STUCK] = "agent killed a keeper that hung",
    [FRAME_SAID_WHAT_DISK_FULL] = "agent saw a full disk",
    [FRAME_SAID_WHAT_NO_FILES] = "agent could not make a run's files",
    [FRAME_SAID_WHAT_LINK_REFUSED] = "agent refused a link",
    [FRAME_SAID_WHAT_RUN_DROPPED] = "agent dropped a run's log",
    [FRAME_SAID_WHAT_NOT_PREPARED] = "agent could not prepare the sandbox",
};

static const enum log_level levels[] = {
    [FRAME_SAID_LEVEL_DEBUG] = LOG_DEBUG,
    [FRAME_SAID_LEVEL_INFO] = LOG_INFO,
    [FRAME_SAID_LEVEL_WARN] = LOG_WARN,
};

/* As of now: so many lines, each of every_ms. */
static bool
may_say(struct said_allowance *a, uint64_t now_ms, unsigned int burst,
    unsigned int every_ms)
{
	const uint64_t most = (uint64_t)burst * every_ms;

	a->allowed_ms += a->asof_ms == 0 ? most : now_ms - a->asof_ms;
	if (a->allowed_ms > most)
		a->allowed_ms = most;
	a->asof_ms = now_ms;
	return a->allowed_ms >= every_ms;
}

static void
tell_said(const struct said *s, const struct frame_said *m,
    const struct task_start *run, uint64_t dropped)
{
	char id[UUID_TEXT_LEN + 1], tenant[24], count[24];
	const struct log_field fields[] = {{"said_by", "agent"},
	    {"sandbox", s->sandbox}, {"tenant", tenant},
	    {"run", run == NULL ? NULL : id},
	    {"request",
		run == NULL || run->request[0] == '\0' ? NULL : run->request},
	    {"detail", m->text}, {"dropped", dropped == 0 ? NULL : count}};

	if (run != NULL)
		uuid_format(&run->uuid, id);
	(void)snprintf(tenant, sizeof(tenant), "%" PRIu64, s->tenant);
	(void)snprintf(count, sizeof(count), "%" PRIu64, dropped);
	log_event(levels[m->level], words[m->what], fields, ARRAY_LEN(fields));
}

void
said_init(struct said *s, uint64_t tenant, const char *identifier)
{
	*s = (struct said){.tenant = tenant};
	(void)snprintf(s->sandbox, sizeof(s->sandbox), "%s", identifier);
}

void
said_take(
    struct said *s, const struct frame_said *m, const struct task_start *run)
{
	const uint64_t now_ms = clock_mono_ms();

	if (levels[m->level] > log_get_level())
		return;
	if (!may_say(&s->own, now_ms, SAID_BURST, SAID_EVERY_MS) ||
	    !may_say(&all, now_ms, SAID_BURST_ALL, SAID_EVERY_ALL_MS)) {
		s->dropped++;
		return;
	}
	s->own.allowed_ms -= SAID_EVERY_MS;
	all.allowed_ms -= SAID_EVERY_ALL_MS;
	tell_said(s, m, run, s->dropped + m->dropped);
	s->dropped = 0;
}
