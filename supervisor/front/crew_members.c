#include "supervisor/front/crew_members.h"

#include <stdio.h>

#include "common/xmalloc.h"
#include "supervisor/tools/view.h"

struct seen_member {
	char name[MSG_CREW_MEMBER_NAME_MAX + 1];
	uint32_t pid;
	enum msg_member_state state;
	uint32_t restarts;
	int64_t started_ms;
};

struct crew_members {
	size_t n;
	struct seen_member at[CREW_MEMBERS_MAX];
};

static const char *const words[] = {[MSG_MEMBER_STATE_DOWN] = "down",
    [MSG_MEMBER_STATE_STARTING] = "starting",
    [MSG_MEMBER_STATE_READY] = "ready",
    [MSG_MEMBER_STATE_QUIET] = "quiet",
    [MSG_MEMBER_STATE_THROTTLED] = "throttled",
    [MSG_MEMBER_STATE_REFUSED] = "refused"};

struct crew_members *
crew_members_new(void)
{
	return xcalloc(1, sizeof(struct crew_members));
}

void
crew_members_free(struct crew_members *all)
{
	free(all);
}

static const struct seen_member *
find(const struct crew_members *all, const char *name)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->at[i].name, name) == 0)
			return &all->at[i];
	return NULL;
}

void
crew_members_take(struct crew_members *all, const struct msg_crew_member *m)
{
	const struct seen_member *known = find(all, m->name);
	size_t i = known == NULL ? all->n : (size_t)(known - all->at);

	if (i == CREW_MEMBERS_MAX)
		return;
	if (known == NULL)
		all->n++;
	all->at[i] = (struct seen_member){.pid = m->pid,
	    .state = m->state,
	    .restarts = m->restarts,
	    .started_ms = m->started_ms};
	(void)snprintf(all->at[i].name, sizeof(all->at[i].name), "%s", m->name);
}

static json_t *
view_uptime(const struct seen_member *m, int64_t now_ms)
{
	if (m->started_ms == 0)
		return json_null();
	return json_integer(
	    now_ms > m->started_ms ? (now_ms - m->started_ms) / 1000 : 0);
}

json_t *
crew_members_view(const struct crew_members *all, int64_t now_ms)
{
	json_t *list = json_array();

	for (size_t i = 0; i < all->n; i++) {
		const struct seen_member *m = &all->at[i];

		json_array_append_new(list,
		    json_pack("{s:s, s:o, s:s, s:I, s:o, s:o}", "name", m->name,
			"pid",
			m->pid == 0 ? json_null() :
				      json_integer((json_int_t)m->pid),
			"state", words[m->state], "restarts",
			(json_int_t)m->restarts, "started_at",
			view_time(m->started_ms), "uptime_s",
			view_uptime(m, now_ms)));
	}
	return list;
}

int64_t
crew_members_started_ms(const struct crew_members *all, const char *name)
{
	const struct seen_member *m = find(all, name);

	return m == NULL ? 0 : m->started_ms;
}
