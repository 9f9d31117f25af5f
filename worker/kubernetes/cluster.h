/*
 * cluster.h - requests to a Kubernetes API server
 *
 * api.h with what the API asks for besides: credentials, errors that are
 * objects of the kind Status, and rules for when a request may be repeated.
 *
 * A request is repeated here, within its timeout_ms, when the server has done
 * nothing (429, by Retry-After or retryAfterSeconds), when it reads (a GET that
 * was answered by 503 or 504), and once after a 401, with the token read again.
 * One without timeout_ms is repeated after a 401 only.
 */
#ifndef WORKER_KUBERNETES_CLUSTER_H
#define WORKER_KUBERNETES_CLUSTER_H

#include <jansson.h>

#include "common/base.h"
#include "common/err.h"
#include "worker/http/api.h"

#define CLUSTER_REASON_MAX 63

struct event_base;
struct cluster;
struct cluster_call;

/* Copied. */
struct cluster_setup {
	/* A kubeconfig's path; NULL or "": the service account of the Pod that
	 * this process runs in. */
	const char *kubeconfig;
	const char *context; /* of it; NULL or "": its current one */
	/* Of a service account; NULL: where a Pod has it. */
	const char *account_directory;
};

struct cluster_answer {
	/* 0: status 2xx, or 101 with a stream.  Else
	 * ERR_NOTFOUND: there is no such object.  ERR_CONFLICT: 409.
	 * ERR_POLICY: the cluster refuses the content (admission, Pod
	 * Security, an unknown runtime class).  ERR_QUOTA: likewise, for a
	 * ResourceQuota or a LimitRange.  ERR_LOST: the request may have
	 * been acted on, and the server did not say; never of one that reads.
	 * ERR_WRONG_STATE: the worker is ending.  ERR_BACKEND: all else. */
	int rc;
	long status;                         /* HTTP's; 0: no answer */
	char reason[CLUSTER_REASON_MAX + 1]; /* of a Status; "": none */
	json_t *body; /* borrowed; NULL: none, or no JSON object */
	/* When rc is not 0, for a person: bounded and printable, with the
	 * cluster's own words. */
	const struct err *why;
	struct api_call *stream;      /* with 101: as in api.h */
	const struct api_answer *raw; /* for api_header, and texts */
};

struct cluster_ask {
	const char *method;         /* a literal */
	const char *path;           /* "/api/v1/...", with query; copied */
	const char *body;           /* JSON; NULL: none; copied */
	const char *content_type;   /* a literal; NULL: application/json */
	uint32_t timeout_ms;        /* of all tries; 0: none, for streams */
	size_t max_body;            /* 0: 1 MiB */
	const char *const *headers; /* "Name: value", then NULL; copied */
	const char *upgrade;        /* "websocket"; NULL: none; copied */
	size_t max_line;            /* as in api.h */
	/* As in api.h.  Must not call cluster_free. */
	void (*on_line)(const char *line, size_t n, void *arg);
	void (*on_done)(const struct cluster_answer *a, void *arg);
	void *arg;
};

/* cluster_open - reads kubeconfig or service account, and forks: before the
 * process is confined and has threads.  ERR_INVAL says what is wrong, and never
 * a secret. */
int cluster_open(struct event_base *base, const struct cluster_setup *setup,
    struct cluster **out, struct err *e) MUSTCHECK;
/* cluster_free - on_done of all calls, with ERR_WRONG_STATE; streams must have
 * been given back.  NULL is fine. */
void cluster_free(struct cluster *k);
/* cluster_start - on_done comes exactly once, never inside this call; the call
 * is over then, but for a stream, which is given to api_cancel */
struct cluster_call *cluster_start(
    struct cluster *k, const struct cluster_ask *ask);
/* cluster_cancel - on_done will not be called; not for a stream */
void cluster_cancel(struct cluster_call *c);

/* cluster_namespace - of the kubeconfig's context or of the service account;
 * "default" where neither says one */
const char *cluster_namespace(const struct cluster *k);
/* cluster_files - that are read after the start, for the fence: paths, then
 * NULL */
const char *const *cluster_files(const struct cluster *k);
/* cluster_port - that is connected to, for the fence */
uint16_t cluster_port(const struct cluster *k);

/* For the doctor; what is given lives as long as the cluster. */
struct cluster_facts {
	const char *url;
	bool is_loopback;
	/* When its certificate ends, the authority's and ours; 0: none, or not
	 * known yet. */
	int64_t peer_ends_ms, ca_ends_ms, own_ends_ms;
};
void cluster_look(const struct cluster *k, struct cluster_facts *out);

#endif
