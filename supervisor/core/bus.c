#include "supervisor/core/bus.h"

void
bus_init(struct bus *b)
{
	TAILQ_INIT(&b->members);
	b->walks = NULL;
}

void
bus_join(struct bus *b, struct bus_member *m,
    void (*on)(const struct bus_event *ev, void *arg), void *arg)
{
	m->on = on;
	m->arg = arg;
	m->joined = true;
	TAILQ_INSERT_TAIL(&b->members, m, link);
}

void
bus_leave(struct bus *b, struct bus_member *m)
{
	if (!m->joined)
		return;
	m->joined = false;
	for (struct bus_walk *w = b->walks; w != NULL; w = w->outer)
		if (w->next == m)
			w->next = TAILQ_NEXT(m, link);
	TAILQ_REMOVE(&b->members, m, link);
}

void
bus_tell(struct bus *b, const struct bus_event *ev)
{
	struct bus_walk walk = {TAILQ_FIRST(&b->members), b->walks};
	struct bus_member *m;

	b->walks = &walk;
	while ((m = walk.next) != NULL) {
		walk.next = TAILQ_NEXT(m, link);
		m->on(ev, m->arg);
	}
	b->walks = walk.outer;
}
