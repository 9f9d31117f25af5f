/*
 * rights.h - what we may do in a namespace, asked of the cluster in one call
 */
#ifndef WORKER_KUBERNETES_RIGHTS_H
#define WORKER_KUBERNETES_RIGHTS_H

#include <jansson.h>

#include "common/base.h"
#include "common/err.h"

#define RIGHTS_TEXT_MAX 384

struct cluster;
struct rights_ask;

struct rights_need {
	const char *verb;     /* "create" */
	const char *group;    /* "": the core's */
	const char *resource; /* "pods/exec" */
};

struct rights_found {
	char missing[RIGHTS_TEXT_MAX]; /* "create pods/exec, ..."; "": none */
	/* The cluster did not say all: what is missing may be there. */
	bool is_hint;
};

/* rights_compare - review: an answered SelfSubjectRulesReview */
void rights_compare(const json_t *review, const struct rights_need *needs,
    size_t n, struct rights_found *out);

/* found is NULL when rc is not 0, which is as in cluster_answer. */
typedef void (*rights_cb)(
    int rc, const struct rights_found *found, const struct err *why, void *arg);

/* rights_ask_start - cb once, never inside this call; needs are kept by
 * pointer */
struct rights_ask *rights_ask_start(struct cluster *k, const char *ns,
    const struct rights_need *needs, size_t n, rights_cb cb, void *arg);
/* rights_ask_cancel - cb will not be called */
void rights_ask_cancel(struct rights_ask *r);

#endif
