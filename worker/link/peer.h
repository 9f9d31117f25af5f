/*
 * peer.h - the agent as the worker sees it: frames with meaning
 *
 * What comes up is taken for hostile: only what is permitted now, with all
 * fields in order and within limits, is passed on; anything else ends the
 * stream and on_down says ERR_PROTO.  That what it says is also true (offsets,
 * runs that exist) is for the callbacks to see; they return negative with *e
 * when it is not.
 *
 * A stream is up from HELLO_END on.  Sending while it is not up does nothing.
 */
#ifndef WORKER_LINK_PEER_H
#define WORKER_LINK_PEER_H

#include "common/base.h"
#include "common/err.h"
#include "common/runlog.h"
#include "common/uuid.h"
#include "worker/link/link.h"

#define PEER_RUNS_MAX 8192 /* in one HELLO */
#define PEER_WHY_MAX 300

struct peer;

/* A run whose log the agent keeps, from byte from to length. */
struct peer_run {
	struct uuid uuid;
	bool ended;
	uint64_t from;
	uint64_t length;
};

struct peer_hello {
	struct uuid boot; /* the agent's life */
	struct peer_run *runs;
	uint32_t nruns;
};

struct peer_entry {
	uint8_t kind; /* 'f', 'd', 'l', '?' */
	uint32_t mode;
	uint64_t size;
	int64_t mtime_ns;
	const uint8_t *path; /* any bytes */
	size_t path_len;
};

struct peer_ops {
	/* The stream is up; *h is the peer's until the next HELLO. */
	int (*on_hello)(const struct peer_hello *h, void *arg, struct err *e);
	int (*on_run_known)(const struct uuid *run, bool fresh, uint64_t length,
	    void *arg, struct err *e);
	int (*on_run_refused)(
	    const struct uuid *run, const char *why, void *arg, struct err *e);
	int (*on_run_log)(const struct uuid *run, uint64_t offset,
	    const uint8_t *p, size_t n, void *arg, struct err *e);
	int (*on_file_entry)(uint32_t request, const struct peer_entry *f,
	    void *arg, struct err *e);
	int (*on_file_data)(uint32_t request, uint64_t offset, const uint8_t *p,
	    size_t n, void *arg, struct err *e);
	int (*on_file_end)(uint32_t request, int32_t error, uint64_t size,
	    void *arg, struct err *e);
	void (*on_turn)(void *arg);  /* no more for now */
	void (*on_drain)(void *arg); /* room again */
	/* Not up any more; the carrier waits for the next stream. */
	void (*on_down)(const struct err *why, void *arg);
};

/* peer_new - the link is the peer's.  Callbacks may free the peer. */
struct peer *peer_new(struct link *link, const struct peer_ops *ops, void *arg);
void peer_free(struct peer *p);
struct link *peer_link(struct peer *p);
bool peer_is_up(const struct peer *p);
/* peer_has_room - for n further bytes and some small frames */
bool peer_has_room(const struct peer *p, size_t n);

/* Sending.  Small frames beyond all room end the stream: the agent does not
 * read. */
void peer_run_start(struct peer *p, const struct uuid *run, uint64_t have,
    const void *spec, size_t n);
void peer_run_ack(struct peer *p, const struct uuid *run, uint64_t offset);
void peer_run_cancel(
    struct peer *p, const struct uuid *run, enum runlog_reason reason);
void peer_run_forget(struct peer *p, const struct uuid *run);
void peer_walk(struct peer *p, uint32_t request, const char *root);
void peer_walk_taken(
    struct peer *p, uint32_t request, const void *path, size_t n);
void peer_read(struct peer *p, uint32_t request, uint64_t max, const char *root,
    const void *path, size_t n);
void peer_read_ack(struct peer *p, uint32_t request, uint64_t offset);
void peer_abort(struct peer *p, uint32_t request);

#endif
