/*
 * artifacts.h - the files that a run left, on their way in
 *
 * The worker offers a file (its name, its size), gets a descriptor to copy it
 * into, and says when it is whole; then it is one of the run's rows.  Names
 * come from inside the sandbox and are checked here.  The store owns the
 * files: what is begun is committed or aborted.
 */
#ifndef CORE_ARTIFACTS_H
#define CORE_ARTIFACTS_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"
#include "supervisor/store/store.h"

#define ARTIFACTS_AT_A_TIME 64 /* of one run, on their way in */
#define ARTIFACTS_PATH_MAX 1024
/* All names of a run together, which are in memory until its end is told:
 * 5,000 files have some 200 bytes each. */
#define ARTIFACTS_NAMES_MAX (1u << 20)

struct artifact_file;
STAILQ_HEAD(artifact_files, artifact_file);

struct artifacts {             /* part of a run */
	struct store_log *log; /* the run's, on which blobs hang */
	struct tenant_id tenant;
	struct artifact_files files;
	unsigned int nfiles;
	size_t names_bytes;          /* of files and rows */
	struct store_artifact *rows; /* whole, by the time of their end */
	uint32_t nrows;
	char *error; /* the last that failed, NULL: none */
};

/* What a worker says of a file before it comes. */
struct artifact_offer {
	uint32_t number;
	uint64_t size;
	uint32_t mode;
	int64_t mtime_ns;
	const uint8_t *path; /* no NUL behind it */
	size_t path_len;
};

/* artifacts_init - log outlives *a */
void artifacts_init(
    struct artifacts *a, struct store_log *log, struct tenant_id tenant);
/* artifacts_clear - what is not whole is aborted */
void artifacts_clear(struct artifacts *a);

/* artifacts_begin - a descriptor to copy into, the caller's, or negative with
 * why, for the worker to report */
int artifacts_begin(struct artifacts *a, const struct artifact_offer *offer,
    struct err *e) MUSTCHECK;
/* artifacts_done - the copy is whole and has that digest; artifacts_failed -
 * there will be none.  Nothing happens for a file that never began. */
void artifacts_done(struct artifacts *a, uint32_t number, uint64_t size,
    const uint8_t sha256[32]);
void artifacts_failed(struct artifacts *a, uint32_t number);
/* artifacts_fail - they are not whole, and that is why (copied) */
void artifacts_fail(struct artifacts *a, const char *why);
bool artifacts_has_error(const struct artifacts *a);

/* For the end of the run: what is taken is the caller's. */
char *artifacts_take_error(struct artifacts *a); /* NULL: none */
void artifacts_take_rows(
    struct artifacts *a, struct store_artifact **rows, uint32_t *nrows);

#endif
