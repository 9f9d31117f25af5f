/*
 * pod_view.h - what the cluster says of a Pod, read with distrust
 *
 * Nothing is taken that is not of the type and in the range that it must be;
 * texts are cut and made printable.  Labels and annotations are believed only
 * when they are whole and fit the Pod's name and each other.
 */
#ifndef WORKER_KUBERNETES_POD_VIEW_H
#define WORKER_KUBERNETES_POD_VIEW_H

#include <jansson.h>

#include "common/base.h"
#include "common/err.h"
#include "worker/backend.h"
#include "worker/kubernetes/pod_name.h"

#define POD_UID_MAX 36
#define POD_REASON_MAX 300

enum pod_phase {
	POD_PENDING, /* its container was not started yet */
	POD_RUNNING,
	POD_ENDED,
	POD_REMOVING /* someone is taking it away */
};

struct pod_state {
	enum pod_phase phase;
	char name[POD_NAME_MAX + 1];
	char uid[POD_UID_MAX + 1];
	uint32_t restarts;
	/* Why it is pending or has ended, for people; "": it does not say. */
	char reason[POD_REASON_MAX + 1];
	/* Of a pending one: what time does not mend. */
	bool is_hopeless;
	/* Of a pending one: it has a node, and does not say what it waits for;
	 * the cluster's events may. */
	bool is_mute;
	bool was_ended_from_outside; /* evicted and the like */
	bool oom_killed;
	int32_t exit_code;
	int64_t finished_ms; /* 0: not ended; INT64_MAX: it does not say */
};
/* pod_view_state - container: the name of the one that counts.  ERR_BACKEND:
 * it is no Pod. */
int pod_view_state(const json_t *pod, const char *container,
    struct pod_state *out, struct err *e) MUSTCHECK;

/* What is ours. */
struct pod_ours {
	const char *prefix;
	const char *id; /* of the instance */
	const char *container;
	/* Whose Pods alone may be where it is; "": any's. */
	const char *tenant;
};
/* pod_view_container - out->report is NULL unless it is ours and report is not
 * NULL, then report; its isolation is left empty */
int pod_view_container(const json_t *pod, const struct pod_ours *ours,
    struct backend_container *out, struct backend_report *report,
    struct err *e) MUSTCHECK;

/* pod_view_life - backend_handle.life of it */
void pod_view_life(const struct pod_state *s, char out[BACKEND_LIFE_MAX + 1]);
/* pod_view_uid_of - of such a life; false: it has none */
bool pod_view_uid_of(const char *life, char out[POD_UID_MAX + 1]) MUSTCHECK;

#endif
