/*
 * cluster_refusal.h - what an API server's refusal means
 *
 * A refusal is an object of the kind Status; of a proxy before the server, or
 * for a path that it does not know, it is any text.
 */
#ifndef WORKER_KUBERNETES_CLUSTER_REFUSAL_H
#define WORKER_KUBERNETES_CLUSTER_REFUSAL_H

#include <jansson.h>

#include "common/base.h"
#include "common/err.h"

#define CLUSTER_REFUSAL_REASON_MAX 63
#define CLUSTER_REFUSAL_MESSAGE_MAX 300

/* Bounded and printable; "" for what is not said. */
struct cluster_refusal_said {
	bool is_status;
	char reason[CLUSTER_REFUSAL_REASON_MAX + 1];
	char message[CLUSTER_REFUSAL_MESSAGE_MAX];
	char kind[CLUSTER_REFUSAL_REASON_MAX +
	    1];           /* "pods": of what is not there */
	bool has_name;    /* it is an object that is named */
	uint32_t retry_s; /* 0: not said */
};

struct cluster_refusal_asked {
	const char *method, *path;
	const char *where; /* the server, for texts */
	long status;
	bool upgrades; /* to another protocol */
};

/* cluster_refusal_read - json: the body, parsed; NULL: it is text of n bytes */
void cluster_refusal_read(const json_t *json, const char *text, size_t n,
    struct cluster_refusal_said *out);
/* cluster_refusal_judge - the code as cluster_answer has it, and for a person
 * what is wrong and what to do; never 0 */
int cluster_refusal_judge(const struct cluster_refusal_said *said,
    const struct cluster_refusal_asked *asked, struct err *e);

#endif
