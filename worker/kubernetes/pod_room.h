/*
 * pod_room.h - the namespaces that sandboxes are in, and what each has
 *
 * A namespace is a room.  Without POD_NAMESPACE_TENANT (pod_namespace.h) there
 * is one, from the start, for all tenants; with it each tenant has its own,
 * from when it is first needed on to the end.
 *
 *	its Pods are listed and followed -> our rights there -> a trial of its
 *	network, where sandboxes are to have none: of a tenant's, when its
 *	first sandbox is to be made
 *
 * What a room lacks refuses creates there, and is asked for again; other rooms
 * go on.  Whether the cluster is there at all is what its rooms hear.
 */
#ifndef WORKER_KUBERNETES_POD_ROOM_H
#define WORKER_KUBERNETES_POD_ROOM_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"
#include "common/hashmap.h"
#include "worker/backend.h"
#include "worker/kubernetes/network.h"
#include "worker/kubernetes/pod_exec.h"
#include "worker/kubernetes/pod_feed.h"
#include "worker/kubernetes/pod_settings.h"
#include "worker/kubernetes/pod_table.h"
#include "worker/kubernetes/pod_view.h"
#include "worker/kubernetes/rights.h"
#include "worker/policy.h"

#define POD_ROOMS_MAX 1000   /* each has a connection that lasts */
#define POD_PLACES_MAX 10000 /* tenants that are known by name */

#define POD_ROOM_LACK_MAX (ERR_TEXT_MAX + POD_NAME_MAX + 16)

enum pod_contact {
	POD_CONTACT_NONE, /* nothing was heard yet */
	POD_CONTACT_LOST,
	POD_CONTACT_UP
};

struct pod_rooms_user {
	/* What a room has or lacks, or whether it is heard of. */
	void (*on_news)(void *arg);
	void (*on_change)(const struct backend_handle *h,
	    enum backend_change what, void *arg);
};

/* Kept by pointer. */
struct pod_rooms_parts {
	struct event_base *base;
	struct cluster *cluster;
	const struct policy *policy;
	const struct pod_settings *settings;
	const char *id; /* of the instance */
	const struct pod_rooms_user *user;
	void *arg;
};

struct pod_rooms {
	struct pod_rooms_parts parts;
	bool is_per_tenant;
	size_t n;
	TAILQ_HEAD(, pod_room) all;
	struct hashmap by_tenant;
	struct hashmap names; /* of tenants that may have Pods */
};

struct pod_room {
	struct pod_rooms *in;
	char ns[POD_NAME_MAX + 1];
	char tenant[POLICY_WORD_MAX + 1]; /* "": all */
	struct pod_ours ours;
	struct pod_table pods;
	struct pod_execs execs;
	const char *network_word; /* for what holds a sandbox */

	/* pod_room.c's */
	struct pod_feed *feed;
	bool is_heard;
	enum pod_feed_state state;
	char detail[ERR_TEXT_MAX];
	bool is_settled; /* our rights are known since it is up */
	struct rights_ask *rights;
	struct timer *rights_again; /* while one is missing */
	char rights_lack[ERR_TEXT_MAX];
	bool is_for_boxes; /* some are to be made */
	struct network_trial *network;
	struct timer *network_again;
	enum network_verdict network_verdict;
	char network_lack[ERR_TEXT_MAX]; /* "": it is as it is to be */
	char lack[POD_ROOM_LACK_MAX];    /* the first of all that it lacks */
	struct hash_entry by_tenant;
	TAILQ_ENTRY(pod_room) link;
};

/* pod_rooms_init - ns: of the one room, where there is one */
void pod_rooms_init(
    struct pod_rooms *all, const struct pod_rooms_parts *parts, const char *ns);
/* pod_rooms_stop - nothing is called any more, and streams end; before
 * cluster_free */
void pod_rooms_stop(struct pod_rooms *all);
/* pod_rooms_clear - after cluster_free; nobody may wait for a Pod */
void pod_rooms_clear(struct pod_rooms *all);

/* pod_rooms_of - a tenant's, opened where it is not yet.  NULL: ERR_POLICY, it
 * has no good name; ERR_LIMIT, there are too many */
struct pod_room *pod_rooms_of(
    struct pod_rooms *all, const char *tenant, struct err *e);
/* pod_rooms_find - of a Pod that was seen: there is one */
struct pod_room *pod_rooms_find(
    const struct pod_rooms *all, const char *tenant);
/* pod_rooms_name - a tenant that may have Pods */
void pod_rooms_name(struct pod_rooms *all, const char *tenant);

/* Where Pods of ours may be. */
struct pod_place {
	char ns[POD_NAME_MAX + 1];
	char tenant[POLICY_WORD_MAX + 1]; /* "": all */
};
/* pod_rooms_places - of all rooms and named tenants; the caller frees */
size_t pod_rooms_places(const struct pod_rooms *all, struct pod_place **out);

/* pod_rooms_contact - with the cluster; detail: why it is lost */
enum pod_contact pod_rooms_contact(
    const struct pod_rooms *all, const char **detail);
/* pod_rooms_lacks - what tenants' rooms lack, for people, in a text that may
 * be cut; "": nothing */
void pod_rooms_lacks(const struct pod_rooms *all, char *out, size_t size);

/* pod_room_check - whether a box can be made there: 0, 1: not known yet, and
 * on_news comes; ERR_BACKEND */
int pod_room_check(struct pod_room *r, struct err *e) MUSTCHECK;
/* pod_room_is_up - changes of its Pods are told */
bool pod_room_is_up(const struct pod_room *r);
/* pod_room_is_settled - it is up, and our rights there are known */
bool pod_room_is_settled(const struct pod_room *r);
/* pod_room_lack - why no box can be made there, and where that is; "": it can,
 * or the cluster is away */
const char *pod_room_lack(const struct pod_room *r);

#endif
