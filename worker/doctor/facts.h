/*
 * facts.h - what an engine says of itself, asked once and waited for
 */
#ifndef WORKER_DOCTOR_FACTS_H
#define WORKER_DOCTOR_FACTS_H

#include "common/base.h"
#include "common/err.h"
#include "worker/docker/answer.h"

#define FACTS_WORD_MAX 80
#define FACTS_PATH_MAX 4096

struct facts {
	char socket[FACTS_PATH_MAX];
	char engine[FACTS_WORD_MAX]; /* versions as they are given */
	char containerd[FACTS_WORD_MAX];
	char runc[FACTS_WORD_MAX];   /* "": another runtime, or not said */
	char cgroup[FACTS_WORD_MAX]; /* "1" or "2" */
	char root[FACTS_PATH_MAX];   /* where it keeps its data */
	struct answer_info info;
	int64_t ahead_ms; /* its clock before ours; INT64_MIN: not said */
};

/* facts_ask - host is DOCKER_HOST; "": the usual sockets, the first that
 * answers.  runtime: SANDBOX_RUNTIME.  ERR_BACKEND when none answers. */
int facts_ask(const char *host, const char *runtime, struct facts *out,
    struct err *e) MUSTCHECK;
/* facts_read - from the two answers; only what is of the right type */
void facts_read(const char *version, const char *info, const char *runtime,
    int64_t now_ms, struct facts *out);

#endif
