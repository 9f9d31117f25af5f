/*
 * pod_table.h - our Pods as the cluster showed them last, and who waits for one
 *
 * By name, the newest of each: what is told later of an older Pod of a name is
 * left aside.
 */
#ifndef WORKER_KUBERNETES_POD_TABLE_H
#define WORKER_KUBERNETES_POD_TABLE_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/hashmap.h"
#include "worker/kubernetes/pod_view.h"

struct event_base;
struct timer;

/* Somebody who waits for news of a Pod. */
struct pod_wait {
	struct pod_table *in; /* NULL: it does not wait */
	char name[POD_NAME_MAX + 1];
	bool is_due;
	void (*on_news)(void *arg);
	void *arg;
	TAILQ_ENTRY(pod_wait) link;
};

struct pod_table {
	struct hashmap by_name;
	TAILQ_HEAD(, pod_wait) waits;
	struct timer *due;
};

/* What a change is to whoever uses the Pod. */
enum pod_news {
	POD_NEWS_NONE,
	POD_NEWS_OVER,  /* it ended, is being removed, or was started anew */
	POD_NEWS_KILLED /* and memory was short */
};

void pod_table_init(struct pod_table *t, struct event_base *base);
/* pod_table_clear - nobody may wait any more */
void pod_table_clear(struct pod_table *t);

/* pod_table_made - the cluster says that it has just made it */
void pod_table_made(struct pod_table *t, const struct pod_state *s);
/* pod_table_see - it is there, or has changed */
enum pod_news pod_table_see(struct pod_table *t, const struct pod_state *s);
/* pod_table_gone - true: it was the one that is known */
bool pod_table_gone(struct pod_table *t, const char *name, const char *uid);
/* pod_table_find - NULL: none is known; until the next call above */
const struct pod_state *pod_table_find(
    const struct pod_table *t, const char *name);

/* pod_wait_begin - on_news after each change of a Pod of that name, its end
 * among them, and after pod_wait_look; never inside a call here.  Ends with
 * pod_wait_end, which may come at any time and twice. */
void pod_wait_begin(struct pod_wait *w, struct pod_table *t, const char *name,
    void (*on_news)(void *arg), void *arg);
void pod_wait_look(struct pod_wait *w);
void pod_wait_end(struct pod_wait *w);

#endif
