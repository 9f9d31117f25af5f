/*
 * service.h - the product's rules: tenants, sandboxes, runs, artifacts
 *
 * The front's handlers call in, the worker channels feed it, the store
 * remembers.  Everything is asynchronous on one loop; callbacks come later or
 * at once, exactly once.  All lookups are by principal: what belongs to
 * another tenant is not found, in the same words as what never was.
 */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include <jansson.h>

#include "common/base.h"
#include "common/conf.h"
#include "common/err.h"
#include "common/principal.h"
#include "common/uuid.h"

struct service;
struct event_base;
struct store;
struct ipc_chan;

#define SERVICE_IDENTIFIER_DEFAULT "default"

struct service *service_new(
    struct event_base *base, struct conf *conf, struct store *store);
void service_free(struct service *s);
/* service_recover - load the snapshot; before the first worker comes */
int service_recover(struct service *s, struct err *e) MUSTCHECK;
void service_reload(struct service *s); /* conf has new values */
/* service_drain - refuse new runs; on_idle once no caller waits any more */
void service_drain(struct service *s, void (*on_idle)(void *), void *arg);

/* Workers: a fresh channel for worker index, or its loss. */
void service_worker_attach(struct service *s, uint32_t index, int fd);
void service_worker_gone(
    struct service *s, uint32_t index, uint32_t delay_ms, bool throttled);

/* rc 0 with result (borrowed: incref to keep), or negative with why. */
typedef void (*service_json_cb)(
    int rc, json_t *result, const struct err *why, void *arg);

/*
 * service_run_sandbox - tool run_sandbox; args fit the tool's schema
 *
 * result: the seed's structured result (tool, run_id, events_url, status_url,
 * identifier, sandbox_name, final when awaiting).  Failures before a run
 * exists: ERR_INVAL (names the argument), ERR_LIMIT, ERR_BACKEND,
 * ERR_WRONG_STATE.
 */
void service_run_sandbox(struct service *s, const struct principal *p,
    json_t *args, service_json_cb done, void *arg);
void service_delete_sandbox(struct service *s, const struct principal *p,
    json_t *args, service_json_cb done, void *arg);
void service_restart_sandbox(struct service *s, const struct principal *p,
    json_t *args, service_json_cb done, void *arg);
/* The interpreter's three.  Their failures are results with status "error",
 * so rc is 0 for those; *result has status, error_type, message. */
void service_initialize_sandbox(struct service *s, const struct principal *p,
    json_t *args, service_json_cb done, void *arg);
void service_execute_code(struct service *s, const struct principal *p,
    json_t *args, service_json_cb done, void *arg);
void service_stop_sandbox(struct service *s, const struct principal *p,
    json_t *args, service_json_cb done, void *arg);

/* service_run_view - the Run object of GET {MCP_PATH}/runs/{id} */
void service_run_view(struct service *s, const struct principal *p,
    const struct uuid *run, service_json_cb done, void *arg);

/*
 * Following a run: the seed's SSE events, from the log.
 *
 * follow_open finds the run and calls ready (rc 0 or ERR_NOTFOUND...).  Then
 * the reader pulls with follow_next at its own pace; nothing is buffered for
 * it but one event.  FOLLOW_WAIT: wake is called once when there is more.
 *	last_event_id	continue after it, NULL or "" for the start; ERR_INVAL
 *			in ready when it is none of ours
 */
struct follow;
struct follow_event {
	const char *name; /* "run_started" ... */
	const char *id;   /* for Last-Event-ID */
	const char *data; /* one line of JSON; valid until the next call */
	size_t data_len;
};
enum follow_result {
	FOLLOW_EVENT,
	FOLLOW_WAIT,
	FOLLOW_END,
	FOLLOW_ERROR
};
struct follow_ops {
	void (*ready)(
	    struct follow *f, int rc, const struct err *why, void *arg);
	void (*wake)(struct follow *f, void *arg);
};
struct follow *follow_open(struct service *s, const struct principal *p,
    const struct uuid *run, const char *last_event_id,
    const struct follow_ops *ops, void *arg);
enum follow_result follow_next(struct follow *f, struct follow_event *ev);
void follow_close(struct follow *f); /* any time, also inside its callbacks */

/* service_artifact_open - a descriptor to read and what it is; run_text is a
 * UUID or "latest" */
struct service_artifact {
	int fd; /* the callback's to take; -1 it and it is yours */
	uint64_t size;
	int64_t mtime_ns;
	char etag[80]; /* quoted digest */
};
typedef void (*service_artifact_cb)(
    int rc, struct service_artifact *a, const struct err *why, void *arg);
void service_artifact_open(struct service *s, const struct principal *p,
    const char *identifier, const char *run_text, const char *path,
    service_artifact_cb done, void *arg);

/* Health: true when calls can be served now; text says what is missing. */
bool service_is_ready(const struct service *s, char *text, size_t size);

struct service_histogram {   /* mcp_command_duration_seconds */
	uint64_t bucket[12]; /* see service_histogram_bounds, last is +Inf */
	uint64_t count;
	double sum;
};
extern const double service_histogram_bounds[11];
struct service_stats {
	uint64_t active_sandboxes, active_runs, workers_ready, workers_total;
	uint64_t runs_completed, runs_failed, runs_canceled;
	uint64_t commands_completed, commands_failed, commands_timed_out;
	uint64_t reaper_deletes, worker_restarts, follows;
	struct service_histogram command_seconds;
};
void service_stats(const struct service *s, struct service_stats *out);

#endif
