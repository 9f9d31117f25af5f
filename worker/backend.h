/*
 * backend.h - what makes, finds and removes sandboxes
 *
 * One interface; Docker's is worker/docker/docker.h.  Everything is
 * asynchronous on the one loop: a callback is called exactly once and never
 * inside the call that asked for it.  Each has a time limit of its own.
 *
 * What callbacks are given is theirs to read until they return.  Texts of
 * errors are fit for clients: they name the thing and what to do.
 */
#ifndef WORKER_BACKEND_H
#define WORKER_BACKEND_H

#include "common/base.h"
#include "common/err.h"
#include "common/uuid.h"
#include "worker/policy.h"

#define BACKEND_ID_MAX 64
#define BACKEND_LIST_MAX 20000

struct backend;
struct backend_open; /* a sandbox on its way */

/* A container as the engine describes it; labels of others are not believed
 * unless is_ours. */
struct backend_container {
	char id[BACKEND_ID_MAX + 1];
	int64_t pid; /* of its first process, 0: not running */
	bool running;
	bool created;  /* was never started */
	bool removing; /* someone is taking it away */
	bool oom_killed;
	int32_t exit_code;
	bool is_ours; /* a sandbox of our instance, with all labels in order */
	struct uuid sandbox;
	int64_t created_ms;
	char fingerprint[POLICY_FINGERPRINT_LEN + 1];
};

/* What to make.  Checked by policy_check before it comes here; copied. */
struct backend_spec {
	struct uuid uuid;
	uint32_t generation;
	struct policy_ask ask;
	const char *link_dir; /* absolute; holds the agent and its socket */
};

struct backend_opened {
	struct backend_container c;
	uint32_t create_us;
	uint32_t start_us;
};

typedef void (*backend_opened_cb)(
    int rc, const struct backend_opened *o, const struct err *why, void *arg);
typedef void (*backend_container_cb)(int rc, const struct backend_container *c,
    const struct err *why, void *arg);
typedef void (*backend_list_cb)(int rc, const struct backend_container *list,
    size_t n, const struct err *why, void *arg);
typedef void (*backend_done_cb)(int rc, const struct err *why, void *arg);

enum backend_change {
	BACKEND_DIED,
	BACKEND_OOM,
	BACKEND_DESTROYED
};

/* What the backend says unasked. */
struct backend_watch {
	/* The engine came, went, or has something to complain about. */
	void (*on_state)(
	    bool up, const char *detail, bool runtime_ok, void *arg);
	void (*on_change)(const char *id, enum backend_change what,
	    int32_t exit_code, void *arg);
};

struct backend_ops {
	const char *name;
	/* Calls what is still to be called, with ERR_WRONG_STATE. */
	void (*free)(struct backend *b);
	/* Image, create, start, and what runs then.  A container of the same
	 * uuid that runs already is taken as it is: an earlier worker made it
	 * and its runs go on.  ERR_BACKEND at once while the engine is away. */
	struct backend_open *(*open)(struct backend *b,
	    const struct backend_spec *spec, backend_opened_cb cb, void *arg);
	/* Not wanted any more: cb comes as soon as it is safe, with
	 * ERR_WRONG_STATE and nothing left behind.  Only before cb was called.
	 */
	void (*abandon)(struct backend *b, struct backend_open *o);
	/* ERR_NOTFOUND: the engine knows none; ERR_BACKEND: it did not say. */
	void (*inspect)(struct backend *b, const char *id_or_name,
	    backend_container_cb cb, void *arg);
	/* By force, and waited for; what is gone already is removed well. */
	void (*remove)(struct backend *b, const char *id_or_name,
	    backend_done_cb cb, void *arg);
	/* All containers of our instance, in any state. */
	void (*list)(struct backend *b, backend_list_cb cb, void *arg);
};

struct backend {
	const struct backend_ops *ops;
};

#endif
