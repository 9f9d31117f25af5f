/*
 * spool.h - run logs and artifact blobs as files below the data directory
 *
 *	DATA_DIR/spool/<first 2 hex>/<run uuid>.log
 *	ARTIFACTS_DIR/<tenant>/<first 2 hex>/<sha256 in hex>
 *	ARTIFACTS_DIR/tmp/<run uuid>.<file number>
 *
 * All opened relative to directory descriptors with O_NOFOLLOW.
 */
#ifndef STORE_SPOOL_H
#define STORE_SPOOL_H

#include "common/base.h"
#include "common/err.h"
#include "common/uuid.h"

struct spool;

int spool_open(const char *data_dir, const char *artifacts_dir,
    struct spool **out, struct err *e) MUSTCHECK;
void spool_close(struct spool *s);

/* Both return a descriptor or a negative ERR_*.  spool_log_create makes or
 * opens for append and read; spool_log_read opens to read (ERR_NOTFOUND). */
int spool_log_create(
    struct spool *s, const struct uuid *run, struct err *e) MUSTCHECK;
int spool_log_read(
    struct spool *s, const struct uuid *run, struct err *e) MUSTCHECK;
void spool_log_remove(struct spool *s, const struct uuid *run);
/*
 * A log without a name, for runs that may be over before anyone needs one: it
 * is gone with its last descriptor.  spool_log_fresh gives one, made anew or
 * used before (ERR_WRONG_STATE where the file system has no such files);
 * spool_log_name makes it the log of that run; spool_log_reuse takes back one
 * that was never named.
 */
int spool_log_fresh(struct spool *s, struct err *e) MUSTCHECK;
int spool_log_name(
    struct spool *s, int fd, const struct uuid *run, struct err *e) MUSTCHECK;
void spool_log_reuse(struct spool *s, int fd);

/* An artifact on its way in, then under its digest. */
int spool_blob_begin(struct spool *s, const struct uuid *run, uint32_t file,
    struct err *e) MUSTCHECK;
/* spool_blob_commit - rename to the digest's name; the same bytes may be there
 * already.  spool_blob_abort - remove the temporary file. */
int spool_blob_commit(struct spool *s, const struct uuid *run, uint32_t file,
    uint64_t tenant, const uint8_t sha256[32], struct err *e) MUSTCHECK;
void spool_blob_abort(struct spool *s, const struct uuid *run, uint32_t file);
int spool_blob_read(struct spool *s, uint64_t tenant, const uint8_t sha256[32],
    struct err *e) MUSTCHECK;
void spool_blob_remove(
    struct spool *s, uint64_t tenant, const uint8_t sha256[32]);
/* spool_sweep_tmp - remove what a crash left in tmp; at start */
void spool_sweep_tmp(struct spool *s);
/* spool_free_bytes - bytes available to us on the data directory's disk */
int spool_free_bytes(
    const struct spool *s, uint64_t *out, struct err *e) MUSTCHECK;

#endif
