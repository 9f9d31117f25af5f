/*
 * pod_volume.h - the PersistentVolumeClaim that has a sandbox's files
 *
 * It outlives the sandbox's Pod: its name comes from the instance, the tenant
 * and the identifier, so that the next box of that sandbox finds it.  Which box
 * has it is a label, which is changed with the version that was seen, so that
 * of two one gets it; only the box that has it takes it along when it is
 * removed.
 */
#ifndef WORKER_KUBERNETES_POD_VOLUME_H
#define WORKER_KUBERNETES_POD_VOLUME_H

#include <jansson.h>

#include "common/base.h"
#include "common/err.h"
#include "common/uuid.h"
#include "worker/backend.h"
#include "worker/kubernetes/pod_name.h"
#include "worker/kubernetes/pod_settings.h"
#include "worker/kubernetes/pod_view.h"

#define POD_VOLUME_VERSION_MAX 40

/* pod_volume_name - id: of the instance */
void pod_volume_name(const char *id, const char *tenant, const char *identifier,
    char out[POD_NAME_MAX + 1]);

/* What a claim is to be, and whose. */
struct pod_volume_wish {
	const struct pod_settings *settings;
	const char *ns;
	const char *instance;
	const char *id; /* of the instance */
	const struct backend_spec *spec;
	int64_t now_ms;
};
/* pod_volume_body - for a new one; the caller frees, as of the next ones */
char *pod_volume_body(const struct pod_volume_wish *w);
/* Merge patches, which are refused when the claim has changed since version.
 * pod_volume_body_taken - it is w's box's from now on
 * pod_volume_body_unused - since when nobody uses it; 0: somebody does */
char *pod_volume_body_taken(
    const struct pod_volume_wish *w, const char *version);
char *pod_volume_body_unused(
    const char *prefix, int64_t since_ms, const char *version);

/* One that the cluster showed. */
struct pod_volume {
	char name[POD_NAME_MAX + 1];
	char uid[POD_UID_MAX + 1];
	char version[POD_VOLUME_VERSION_MAX + 1];
	bool is_removing;
	/* Of our instance and whole; else what follows is empty. */
	bool is_ours;
	char tenant[POLICY_WORD_MAX + 1];
	struct uuid box;            /* that has it */
	struct uuid first;          /* that it was made for */
	char pod[POD_NAME_MAX + 1]; /* of the box that has it */
	int64_t taken_ms;           /* when that got it */
	int64_t unused_ms;          /* 0: it is not noted as unused */
};
/* pod_volume_view - ERR_BACKEND: it is no claim */
int pod_volume_view(const json_t *claim, const struct pod_ours *ours,
    struct pod_volume *out, struct err *e) MUSTCHECK;
/* pod_volume_is_new - only the box that it was made for has had it */
bool pod_volume_is_new(const struct pod_volume *v, const struct uuid *box);
/* pod_volume_is_in - a Pod has it */
bool pod_volume_is_in(const json_t *pod, const char *name);

enum pod_volume_fate {
	POD_VOLUME_STAYS,
	POD_VOLUME_IS_NOTED,   /* from now on it is unused */
	POD_VOLUME_IS_CLEARED, /* it is used again */
	POD_VOLUME_GOES
};
/* pod_volume_judge - what a sweep does with it; is_used: its box is there, or
 * may be; asof_ms: by which time that was known */
enum pod_volume_fate pod_volume_judge(
    const struct pod_volume *v, bool is_used, int64_t asof_ms, int64_t keep_ms);

#endif
