/*
 * report.h - what the worker tells the front (schema/ipc.txt, 40 to 50)
 *
 * A NULL channel drops: the front is gone and so will the worker be.
 */
#ifndef WORKER_REPORT_H
#define WORKER_REPORT_H

#include "common/base.h"
#include "common/runlog.h"

struct ipc_chan;

struct report_times {
	uint32_t create_us, start_us, hello_us;
};

void report_state(
    struct ipc_chan *c, bool engine_up, const char *detail, bool runtime_ok);
void report_ready(struct ipc_chan *c, uint64_t sandbox,
    const char *container_id, const struct report_times *t);
void report_failed(
    struct ipc_chan *c, uint64_t sandbox, int code, const char *text);
void report_lost(struct ipc_chan *c, uint64_t sandbox, const char *why);
void report_removed(
    struct ipc_chan *c, uint64_t sandbox, int code, const char *text);
void report_bytes(struct ipc_chan *c, uint64_t run, uint64_t length);
void report_record(
    struct ipc_chan *c, uint64_t run, const void *record, size_t n);

struct report_end {
	enum runlog_reason reason;
	uint64_t length;
	const char *text;
	uint32_t files;
	const char *artifacts_error;
};
void report_ended(
    struct ipc_chan *c, uint64_t run, const struct report_end *end);

struct report_file {
	uint32_t file; /* its number in the run */
	uint64_t size;
	uint32_t mode;
	int64_t mtime_ns;
	const void *path;
	size_t path_len;
};
void report_file(struct ipc_chan *c, uint64_t run, const struct report_file *f);
/* code 0 with sha256, or negative */
void report_file_done(struct ipc_chan *c, uint64_t run, uint32_t file, int code,
    uint64_t size, const uint8_t sha256[32]);
void report_swept(struct ipc_chan *c, uint32_t found, uint32_t removed);

#endif
