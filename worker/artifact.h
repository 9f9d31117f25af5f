/*
 * artifact.h - what a run left below /artifacts, copied to the front's files
 *
 * A walk of what changed, then file by file: ARTIFACT_OPEN to the front, its
 * descriptor back, READ from the agent within credit, ARTIFACT_DONE with the
 * digest.  Limits count bytes that came, not sizes that were told.  What is
 * over a limit or cannot be copied is left out and noted; the rest goes on.
 * When the link is lost in between it begins anew without the files it has;
 * after ARTIFACT_TIME_MS it ends with what it has.
 */
#ifndef WORKER_ARTIFACT_H
#define WORKER_ARTIFACT_H

#include "common/base.h"
#include "common/err.h"
#include "worker/link/peer.h"

#define ARTIFACT_ROOT "/artifacts"
#define ARTIFACT_PATH_MAX 1024
#define ARTIFACT_TIME_MS 120000
#define ARTIFACT_ERROR_MAX 1200

struct artifact;
struct event_base;
struct ipc_chan;

struct artifact_limits {
	uint64_t total_bytes; /* 0: none */
	uint64_t file_bytes;
	uint32_t files;
};

struct artifact_host {
	struct event_base *base;
	struct ipc_chan **front;
	const struct artifact_limits *limits;
	uint32_t *next_request; /* counts up over a sandbox's life */
	uint32_t time_ms;       /* ARTIFACT_TIME_MS; tests have less time */
	/* All that can be copied was. */
	void (*on_end)(struct artifact *a, void *arg);
	void *arg;
};

/* artifact_new - of run number run; does nothing before artifact_attach.
 * host is kept by pointer. */
struct artifact *artifact_new(const struct artifact_host *host, uint64_t run);
void artifact_free(struct artifact *a);
void artifact_attach(struct artifact *a, struct peer *p);
void artifact_detach(struct artifact *a);
/* artifact_stop - no more; on_end is called with why noted */
void artifact_stop(struct artifact *a, const char *why);

uint32_t artifact_files(const struct artifact *a);    /* copied */
const char *artifact_error(const struct artifact *a); /* "": none */

/* artifact_taken - once the front has them for good: tell the agent which
 * ones need not be walked again.  Nothing if the link was lost since. */
void artifact_taken(struct artifact *a);

/* From the agent; other requests than its own are passed over. */
int artifact_on_entry(struct artifact *a, uint32_t request,
    const struct peer_entry *f, struct err *e) MUSTCHECK;
int artifact_on_data(struct artifact *a, uint32_t request, uint64_t offset,
    const uint8_t *p, size_t n, struct err *e) MUSTCHECK;
int artifact_on_end(struct artifact *a, uint32_t request, int32_t error,
    struct err *e) MUSTCHECK;
/* From the front: fd is the artifact's from now on, -1 with refusal. */
void artifact_on_fd(
    struct artifact *a, uint32_t number, int fd, const char *refusal);

/* artifact_is_path - relative, no empty, "." or ".." part, no NUL */
bool artifact_is_path(const uint8_t *p, size_t n);

#endif
