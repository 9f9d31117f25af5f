/*
 * pod_feed.h - all Pods of a label selector, as they come, change and go
 *
 * A list, and from its version on a watch, for as long as it is wanted.  What
 * it tells is what a list would show, later: several changes of a Pod may come
 * as one.  A Pod that was replaced by another of its name is told as gone
 * first.
 */
#ifndef WORKER_KUBERNETES_POD_FEED_H
#define WORKER_KUBERNETES_POD_FEED_H

#include <jansson.h>

#include "common/base.h"

struct event_base;
struct cluster;
struct pod_feed;

enum pod_feed_state {
	POD_FEED_AWAY,    /* nobody answers, or not to us */
	POD_FEED_REFUSED, /* the cluster does, and not with Pods of there */
	POD_FEED_UP
};

/* pod_feed_stop may be called inside each, cluster_free may not. */
struct pod_feed_user {
	/* It is there, or changed; borrowed.  Name and uid are texts. */
	void (*on_pod)(const json_t *pod, void *arg);
	/* It is not there any more. */
	void (*on_gone)(const char *name, const char *uid, void *arg);
	/* Whether changes come; detail for a person, "" when up.  When that
	 * changes, and before the first on_pod. */
	void (*on_state)(
	    enum pod_feed_state state, const char *detail, void *arg);
	/* A list was told whole: what was not told is not there. */
	void (*on_listed)(void *arg);
};

/* pod_feed_start - nothing is called inside this call; user is kept by pointer,
 * selector ("a=b,c=d") is copied */
struct pod_feed *pod_feed_start(struct event_base *base,
    struct cluster *cluster, const char *ns, const char *selector,
    const struct pod_feed_user *user, void *arg);
/* pod_feed_set_watch_ms - how long the server keeps a watch open, from the next
 * on; one that is silent for twice as long is given up.  Else five minutes. */
void pod_feed_set_watch_ms(struct pod_feed *f, uint32_t ms);
/* pod_feed_stop - nothing is called any more; before cluster_free; NULL is fine
 */
void pod_feed_stop(struct pod_feed *f);

#endif
