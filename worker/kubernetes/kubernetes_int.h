/*
 * kubernetes_int.h - what the files of worker/kubernetes/ share
 */
#ifndef WORKER_KUBERNETES_KUBERNETES_INT_H
#define WORKER_KUBERNETES_KUBERNETES_INT_H

#include <sys/queue.h>

#include "worker/backends.h"
#include "worker/kubernetes/cluster.h"
#include "worker/kubernetes/kubernetes.h"
#include "worker/kubernetes/pod_room.h"
#include "worker/kubernetes/pod_settings.h"
#include "worker/kubernetes/pod_table.h"
#include "worker/kubernetes/pod_view.h"
#include "worker/kubernetes/pod_volume.h"

#define KUBERNETES_ASK_MS 15000
#define KUBERNETES_CREATE_MS 30000
#define KUBERNETES_LIST_MS 60000
#define KUBERNETES_REMOVE_MS 60000 /* asked for and seen through */
/* A name that is taken by a Pod on its way out. */
#define KUBERNETES_NAME_MS 30000
#define KUBERNETES_LOOK_MS 5000 /* for the cluster, while there is no room */
#define KUBERNETES_PAGE 100     /* as many as a turn of the loop can parse */
#define KUBERNETES_PAGE_MAX (32u << 20)

struct kubernetes {
	struct backend b;
	struct backend_ops ops; /* b's */
	struct event_base *base;
	struct cluster *cluster;
	const struct policy *policy;
	struct pod_settings settings;
	char *instance;
	char *id; /* of the instance */
	const struct backend_watch *user;
	void *user_arg;
	bool freeing;

	/* kubernetes.c's: whether the cluster is there, and what is missing */
	bool is_reached;
	bool up;
	bool known; /* it was said once */
	char detail[ERR_TEXT_MAX];
	char lack[POD_ROOM_LACK_MAX];
	struct backend_about about;
	struct cluster_call *asking; /* which version it is */
	struct timer *look;

	struct pod_rooms rooms;
	TAILQ_HEAD(, backend_create) creates; /* pod_create.c's */
	TAILQ_HEAD(, pod_start) starts;       /* pod_start.c's */
	TAILQ_HEAD(, pod_removal) removals;   /* pod_removal.c's */
};

/* pod_ask.c
 * pod_ask - a request whose path is printf's, below that of the namespace:
 * "pods/%s" */
struct cluster_call *pod_ask(struct cluster *cluster, const char *ns,
    const struct cluster_ask *ask, const char *path, ...) PRINTF(4, 5);
/* pod_check - 0, or what backend.h's callbacks are told of such an answer:
 * ERR_NOTFOUND only when the cluster says that the object is not there */
int pod_check(const struct cluster_answer *a, const char *what, struct err *e);

/* pod_start.c
 * kubernetes_room - of a Pod that was seen there */
struct pod_room *kubernetes_room(
    const struct kubernetes *k, const struct backend_handle *h);

/* pod_ops.c: as backend_ops says */
void pod_inspect(struct backend *b, const struct backend_handle *h,
    backend_container_cb cb, void *arg);
void pod_list(struct backend *b, backend_list_cb cb, void *arg);
/* pod_list_passes_over - a tenant's namespace that is missing, or that we may
 * not look into: what is in the others is known all the same */
bool pod_list_passes_over(
    const struct kubernetes *k, const struct cluster_answer *a);

/* pod_create.c: as backend_ops says */
struct backend_create *pod_create(struct backend *b,
    const struct backend_spec *spec, backend_created_cb cb, void *arg);
void pod_create_abandon(struct backend *b, struct backend_create *c);
/* pod_creates_resume - those that wait for their room, when there is news */
void pod_creates_resume(struct kubernetes *k);
/* pod_creates_clear - those that wait for no answer are told */
void pod_creates_clear(struct kubernetes *k);

/* volume_take.c
 * volume_take_start - the claim of spec's sandbox is its box's: made, or taken
 * over from a box that is gone, which is waited for.  cb once, never inside
 * this call; had_files: another box had it before.  spec is kept by pointer
 * until then. */
struct volume_take;
typedef void (*volume_take_cb)(
    int rc, bool had_files, const struct err *why, void *arg);
struct volume_take *volume_take_start(struct kubernetes *k,
    const struct pod_room *room, const struct backend_spec *spec,
    volume_take_cb cb, void *arg);
/* volume_take_abandon - not wanted any more: cb comes with ERR_WRONG_STATE,
 * soon, or behind the answer that is awaited */
void volume_take_abandon(struct volume_take *t);
/* volume_take_free - cb will not be called; NULL is fine */
void volume_take_free(struct volume_take *t);

/* volume_forget.c, volume_sweep.c: as backend_ops says */
void volume_forget(struct backend *b, const struct box_identity *id,
    const struct backend_files *files, backend_done_cb cb, void *arg);
void volume_sweep(struct backend *b, const struct backend_sweep *how,
    backend_done_cb cb, void *arg);
/* volume_delete - asks for the removal of the claim as it was seen: 409 when
 * it has changed since */
struct cluster_call *volume_delete(struct kubernetes *k, const char *ns,
    const struct pod_volume *v,
    void (*on_done)(const struct cluster_answer *a, void *arg), void *arg);
/* volume_list - claims of our instance that selector (", " and more; "": all)
 * selects */
struct cluster_call *volume_list(struct kubernetes *k, const char *ns,
    const char *more, const char *from,
    void (*on_done)(const struct cluster_answer *a, void *arg), void *arg);

/* pod_start.c: as backend_ops says */
void pod_start(struct backend *b, const struct backend_handle *h,
    backend_done_cb cb, void *arg);
void pod_start_abandon(struct backend *b, const struct backend_handle *h);
void pod_starts_clear(struct kubernetes *k);

/* pod_removal.c: as backend_ops says */
void pod_remove(struct backend *b, const struct backend_handle *h,
    backend_done_cb cb, void *arg);
void pod_removals_clear(struct kubernetes *k);

#endif
