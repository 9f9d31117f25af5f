/* sandbox_int.h - what the files sandbox*.c share */
#ifndef WORKER_SANDBOX_INT_H
#define WORKER_SANDBOX_INT_H

#include "worker/link/peer.h"
#include "worker/report.h"
#include "worker/sandbox.h"

enum sandbox_state {
	SANDBOX_CREATING,
	SANDBOX_LOOKING,
	SANDBOX_GREETING,
	SANDBOX_UP,
	SANDBOX_AWAY,
	SANDBOX_CLOSING,
	SANDBOX_DEAD /* freed when no callback is awaited any more */
};

/* What the front is told when the container is gone. */
enum sandbox_farewell {
	SANDBOX_SAY_NOTHING, /* it was told before */
	SANDBOX_SAY_LOST,
	SANDBOX_SAY_REMOVED
};

struct sandbox {
	struct worker *w;
	uint64_t id;
	struct uuid uuid;
	enum sandbox_mode mode;
	enum sandbox_state state;
	enum sandbox_farewell farewell;
	bool told_ready;
	bool settled;
	bool in_map;
	unsigned int awaited; /* callbacks of the backend */
	bool inspecting;
	char *name;
	char *link_dir;                        /* once it listens */
	char container_id[BACKEND_ID_MAX + 1]; /* "" : not known yet */
	int64_t pid;
	struct backend_open *open;
	uint64_t running_us; /* when the backend said that it runs */
	struct report_times times;
	uint64_t away_since_ms;
	char why[ERR_TEXT_MAX]; /* of a loss that is told later */
	struct event *timer;

	struct peer *peer;
	bool has_boot;
	struct uuid boot;
	const struct peer_hello *hello; /* while UP */

	struct run_list runs;
	struct run *last; /* found last; NULL: none */
	uint32_t nruns;
	struct run_list to_copy;
	struct artifact_host copy_host;
	struct artifact *copy;
	struct run *copy_run; /* whose it is; NULL: none */
	bool copy_ended;      /* it waits for the front's commit */
	struct event *copy_timer;
	uint32_t next_request;
};

/* sandbox.c */
void sandbox_inspect(struct sandbox *sb);
void sandbox_timer(struct sandbox *sb, uint32_t ms);
int sandbox_listen(struct sandbox *sb, struct err *e) MUSTCHECK;
void sandbox_await_agent(struct sandbox *sb, const struct backend_container *c);

/* sandbox_end.c */
void sandbox_fail(struct sandbox *sb, int code, const char *text);
void sandbox_lose(struct sandbox *sb, const char *why);
void sandbox_lose_container(
    struct sandbox *sb, const struct backend_container *c);
/* sandbox_opened_late - the backend's answer to an abandoned open */
void sandbox_opened_late(struct sandbox *sb);
/* sandbox_answered - one of the awaited callbacks has come; may free sb */
void sandbox_answered(struct sandbox *sb);
/* sandbox_die - off the map, link closed; freed when nothing is awaited */
void sandbox_die(struct sandbox *sb);

/* sandbox_runs.c */
void sandbox_runs_init(struct sandbox *sb);
void sandbox_runs_attach(struct sandbox *sb, const struct peer_hello *h);
void sandbox_runs_detach(struct sandbox *sb);
/* sandbox_runs_end - all of them, now */
void sandbox_runs_end(
    struct sandbox *sb, enum runlog_reason reason, const char *text);
void sandbox_runs_clear(struct sandbox *sb); /* frees them */
void sandbox_drop_unknown(struct sandbox *sb);

int sandbox_on_run_known(const struct uuid *uuid, bool fresh, uint64_t length,
    void *arg, struct err *e);
int sandbox_on_run_refused(
    const struct uuid *uuid, const char *why, void *arg, struct err *e);
int sandbox_on_run_log(const struct uuid *uuid, uint64_t offset,
    const uint8_t *p, size_t n, void *arg, struct err *e);
int sandbox_on_file_entry(
    uint32_t request, const struct peer_entry *f, void *arg, struct err *e);
int sandbox_on_file_data(uint32_t request, uint64_t offset, const uint8_t *p,
    size_t n, void *arg, struct err *e);
int sandbox_on_file_end(
    uint32_t request, int32_t error, uint64_t size, void *arg, struct err *e);
void sandbox_on_turn(void *arg);
void sandbox_on_drain(void *arg);

#endif
