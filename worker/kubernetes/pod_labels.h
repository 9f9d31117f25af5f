/*
 * pod_labels.h - by which a Pod is known again
 *
 * What stands in labels is ours: what Pods are selected and believed by.  What
 * a client has a say in is an annotation, which may be any text.  All begin
 * with KUBERNETES_SANDBOX_LABEL_PREFIX and a "/".
 */
#ifndef WORKER_KUBERNETES_POD_LABELS_H
#define WORKER_KUBERNETES_POD_LABELS_H

#include "common/base.h"
#include "worker/kubernetes/pod_settings.h"

/* Labels. */
#define POD_LABEL_ROLE "role"
#define POD_LABEL_ID "instance-id"
#define POD_LABEL_BOX "sandbox"
#define POD_LABEL_TENANT "tenant" /* its digest */
#define POD_LABEL_FINGERPRINT "policy-fingerprint"
#define POD_LABEL_CARRIER "carrier"
#define POD_LABEL_NETWORK "network"     /* of one that is to have none */
#define POD_LABEL_TRIAL "network-trial" /* network.h: id of its instance */
#define POD_NETWORK_NONE "none"
#define POD_ROLE "sandbox"
#define POD_ROLE_TRIAL "carrier-trial"
#define POD_ROLE_VOLUME "volume" /* of a claim: pod_volume.h */
/* Annotations. */
#define POD_NOTE_NAME "name"
#define POD_NOTE_INSTANCE "instance"
#define POD_NOTE_TENANT "tenant"
#define POD_NOTE_IDENTIFIER "identifier"
#define POD_NOTE_GENERATION "generation"
#define POD_NOTE_IMAGE "image"
#define POD_NOTE_CREATED "created-at-unix-ms"
#define POD_NOTE_EXPIRES "expires-at-unix-ms"
#define POD_NOTE_CPUS "nano-cpus"
#define POD_NOTE_MEMORY "memory-bytes"
#define POD_NOTE_OLD_FILES "old-files" /* of another box, which was lost */
/* Of a claim. */
#define POD_NOTE_FIRST "made-for" /* the box that it was made for */
#define POD_NOTE_TAKEN "taken-at-unix-ms"
#define POD_NOTE_UNUSED "unused-since-unix-ms"

#define POD_LABEL_MAX (POD_PREFIX_MAX + 1 + 63)
/* pod_label - the whole name of one, for one of the words above */
void pod_label(
    const char *prefix, const char *word, char out[POD_LABEL_MAX + 1]);

#define POD_TENANT_LEN 16
/* pod_tenant - what the label says of a tenant of that name */
void pod_tenant(const char *tenant, char out[POD_TENANT_LEN + 1]);

/* pod_selector - of all Pods of the instance of that id; the caller frees */
char *pod_selector(const char *prefix, const char *id);

#endif
