#include "worker/kubernetes/pod_table.h"

#include "common/timer.h"
#include "common/xmalloc.h"

struct pod_known {
	struct pod_state state;
	/* Made by us, and the cluster has not shown it since: what it shows
	 * of another uid is of one before. */
	bool is_new;
	struct hash_entry by_name;
};

static bool
is_name(const struct hash_entry *en, const void *key)
{
	return strcmp(HASH_OF(en, const struct pod_known, by_name)->state.name,
		   key) == 0;
}

static struct pod_known *
find(const struct pod_table *t, const char *name)
{
	return HASH_OBJECT(
	    hashmap_get(&t->by_name, hashmap_key_text(name), is_name, name),
	    struct pod_known, by_name);
}

static struct pod_known *
enter(struct pod_table *t, const struct pod_state *s)
{
	struct pod_known *p = xcalloc(1, sizeof(*p));

	p->state = *s;
	hashmap_put(&t->by_name, &p->by_name, hashmap_key_text(p->state.name));
	return p;
}

/* ---- who waits */

/* One after another: each may end its own and others' waiting. */
static void
due_cb(void *arg)
{
	struct pod_table *t = arg;
	struct pod_wait *w;

	do {
		TAILQ_FOREACH (w, &t->waits, link)
			if (w->is_due)
				break;
		if (w == NULL)
			return;
		w->is_due = false;
		w->on_news(w->arg);
	} while (true);
}

static void
tell(struct pod_table *t, const char *name)
{
	struct pod_wait *w;

	TAILQ_FOREACH (w, &t->waits, link)
		if (strcmp(w->name, name) == 0)
			pod_wait_look(w);
}

void
pod_wait_begin(struct pod_wait *w, struct pod_table *t, const char *name,
    void (*on_news)(void *arg), void *arg)
{
	*w = (struct pod_wait){.in = t, .on_news = on_news, .arg = arg};
	memcpy(w->name, name, strlen(name) + 1);
	TAILQ_INSERT_TAIL(&t->waits, w, link);
}

void
pod_wait_look(struct pod_wait *w)
{
	w->is_due = true;
	timer_set_ms(w->in->due, 0);
}

void
pod_wait_end(struct pod_wait *w)
{
	if (w->in != NULL)
		TAILQ_REMOVE(&w->in->waits, w, link);
	w->in = NULL;
}

/* ---- what is known */

void
pod_table_init(struct pod_table *t, struct event_base *base)
{
	*t = (struct pod_table){.by_name = {NULL, 0, 0}};
	TAILQ_INIT(&t->waits);
	t->due = timer_new(base, due_cb, t);
}

void
pod_table_clear(struct pod_table *t)
{
	struct hash_entry *en, *next;

	HASHMAP_FOREACH (en, next, &t->by_name) {
		struct pod_known *p = HASH_OF(en, struct pod_known, by_name);

		hashmap_del(&t->by_name, en);
		free(p);
	}
	hashmap_clear(&t->by_name);
	timer_free(t->due);
	t->due = NULL;
}

void
pod_table_made(struct pod_table *t, const struct pod_state *s)
{
	struct pod_known *p = find(t, s->name);

	if (p == NULL)
		p = enter(t, s);
	else if (strcmp(p->state.uid, s->uid) == 0)
		return; /* it was shown before the answer came */
	p->state = *s;
	p->is_new = true;
	tell(t, s->name);
}

static bool
is_over(const struct pod_state *s)
{
	return s->phase == POD_ENDED || s->phase == POD_REMOVING;
}

static enum pod_news
compare(const struct pod_state *old, const struct pod_state *new)
{
	bool same =
	    strcmp(old->uid, new->uid) == 0 && old->restarts == new->restarts;

	if (same && (!is_over(new) || old->phase == new->phase))
		return POD_NEWS_NONE;
	return new->oom_killed ? POD_NEWS_KILLED : POD_NEWS_OVER;
}

enum pod_news
pod_table_see(struct pod_table *t, const struct pod_state *s)
{
	struct pod_known *p = find(t, s->name);
	enum pod_news news = is_over(s) ? POD_NEWS_OVER : POD_NEWS_NONE;

	if (p == NULL) {
		(void)enter(t, s);
	} else if (p->is_new && strcmp(p->state.uid, s->uid) != 0) {
		return POD_NEWS_NONE;
	} else {
		news = compare(&p->state, s);
		p->is_new = false;
		p->state = *s;
	}
	tell(t, s->name);
	return news;
}

bool
pod_table_gone(struct pod_table *t, const char *name, const char *uid)
{
	struct pod_known *p = find(t, name);

	if (p == NULL || strcmp(p->state.uid, uid) != 0)
		return false;
	hashmap_del(&t->by_name, &p->by_name);
	free(p);
	tell(t, name);
	return true;
}

const struct pod_state *
pod_table_find(const struct pod_table *t, const char *name)
{
	const struct pod_known *p = find(t, name);

	return p == NULL ? NULL : &p->state;
}
