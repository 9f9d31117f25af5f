/*
 * spool.h - the store's files: run logs below the data directory, blobs of
 * artifacts below ARTIFACTS_DIR
 *
 *	dir/spool/<2 random hex digits of it>/<run uuid>.log
 *	ARTIFACTS_DIR/<tenant>/<first 2 hex>/<sha256 in hex>
 *	ARTIFACTS_DIR/tmp/<run uuid>.<file number>.<number of this opening>
 *
 * All opened relative to directory descriptors with O_NOFOLLOW.  What a file
 * means, and when it may go, others know (log_files.c, trim.c, leftovers.c).
 *May be used by several threads, but for the spares.
 */
#ifndef STORE_SPOOL_H
#define STORE_SPOOL_H

#include "common/base.h"
#include "common/err.h"
#include "common/uuid.h"

struct spool;

/* spool_open - makes the directories that are missing, and locks them: nobody
 * else may remove files there (ERR_CONFLICT, after FD_LOCK_PATIENCE_MS) */
int spool_open(const char *data_dir, const char *artifacts_dir,
    struct spool **out, struct err *e) MUSTCHECK;
void spool_close(struct spool *s);
/* Its two directories; borrowed. */
int spool_data_fd(const struct spool *s);
int spool_artifacts_fd(const struct spool *s);
bool spool_is_apart(const struct spool *s); /* they are on two disks */

/* spool_log_place - where a run's log is: spool/BUCKET/NAME */
#define SPOOL_BUCKET_BYTES 3 /* "ab" */
#define SPOOL_LOG_BYTES 41   /* uuid.log */
void spool_log_place(const struct uuid *run, char bucket[SPOOL_BUCKET_BYTES],
    char name[SPOOL_LOG_BYTES]);

/* Both return a descriptor or a negative ERR_*.  spool_log_create makes or
 * opens for append and read; spool_log_read opens to read (ERR_NOTFOUND). */
int spool_log_create(
    struct spool *s, const struct uuid *run, struct err *e) MUSTCHECK;
int spool_log_read(
    struct spool *s, const struct uuid *run, struct err *e) MUSTCHECK;
void spool_log_remove(struct spool *s, const struct uuid *run);
/*
 * A log without a name is gone with its last descriptor.  spool_log_fresh
 * gives one, made anew or used before (ERR_WRONG_STATE where the file system
 * has no such files); spool_log_name makes it the log of that run; both only
 * once.  spool_log_reuse takes back one that was never named; spool_tidy
 * empties those that are not empty (spool_is_tidy), some time later.
 */
int spool_log_fresh(struct spool *s, struct err *e) MUSTCHECK;
int spool_log_name(
    struct spool *s, int fd, const struct uuid *run, struct err *e) MUSTCHECK;
void spool_log_reuse(struct spool *s, int fd);
void spool_tidy(struct spool *s);
bool spool_is_tidy(const struct spool *s);

/*
 * Onto the disk, and waited for: bytes, and the directory that has the name;
 * to the root, also the directories' own names above it.  ERR_LOST: the disk
 * did not take it, and a second try would not tell; ERR_NOTFOUND: no such blob;
 * ERR_SYS.
 *	fd	the log's
 */
enum spool_depth {
	SPOOL_BUCKET,
	SPOOL_TO_ROOT
};
int spool_log_sync(struct spool *s, int fd, const struct uuid *run,
    enum spool_depth depth, struct err *e) MUSTCHECK;
int spool_blob_sync(struct spool *s, uint64_t tenant, const uint8_t sha256[32],
    enum spool_depth depth, struct err *e) MUSTCHECK;
/* spool_blob_write_out - its writing begins, and is not waited for */
void spool_blob_write_out(
    struct spool *s, uint64_t tenant, const uint8_t sha256[32]);
/* spool_sync_all - all that their disks have not written yet; -1: something
 * of it could not be */
int spool_sync_all(struct spool *s) MUSTCHECK;
/* spool_log_bucket - its bucket's number */
uint8_t spool_log_bucket(const struct uuid *run);

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

/*
 * Looking through what is there.  spool_walk_places finds the directories that
 * hold logs and blobs; spool_walk calls back for each file of one whose name
 * is one of ours.  spool_sweep_tmp removes what an earlier opening left in tmp.
 */
struct spool_place {
	uint64_t tenant; /* 0: of logs */
	char bucket[3];  /* "ab" */
};
struct spool_entry {
	uint64_t tenant;    /* 0: a log */
	struct uuid run;    /* of a log */
	uint8_t sha256[32]; /* of a blob */
};
/* spool_keep_all - the database is a new one, and knows nothing of what is
 * there: from now on the walk passes over directories of ours that hold logs or
 * blobs by now, until their file SPOOL_KEEP is removed.  Says so in the log. */
#define SPOOL_KEEP "keep-all"
int spool_keep_all(struct spool *s, struct err *e) MUSTCHECK;
size_t spool_walk_places(struct spool *s, struct spool_place **out);
void spool_walk(struct spool *s, const struct spool_place *place,
    void (*on_entry)(const struct spool_entry *entry, void *arg), void *arg);
void spool_sweep_tmp(struct spool *s);

#endif
