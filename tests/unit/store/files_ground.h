/* files_ground.h - ended runs with logs in files and with artifacts. */
#ifndef TESTS_STORE_FILES_GROUND_H
#define TESTS_STORE_FILES_GROUND_H

#include "tests/unit/store/fixture.h"
#include "tests/unit/test.h"

static inline void
bring(struct store_log *log, uint32_t file, uint64_t tenant, uint8_t digest)
{
	uint8_t sha256[32];
	struct err e;
	int fd = store_blob_begin(log, file, &e);

	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
	memset(sha256, digest, sizeof(sha256));
	assert_int_equal(store_blob_commit(
			     log, file, (struct tenant_id){tenant}, sha256, &e),
	    0);
}

static inline bool
has_blob(struct fixture *f, uint64_t tenant, uint8_t digest)
{
	uint8_t sha256[32];
	struct err e;
	int fd;

	memset(sha256, digest, sizeof(sha256));
	fd = store_blob_read(f->store, (struct tenant_id){tenant}, sha256, &e);
	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

static inline bool
has_log(struct fixture *f, const struct uuid *run)
{
	struct err e;
	int fd = store_log_read(f->store, run, &e);

	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

/* An ended run of a tenant, with a log in a file, that left the files f0, f1
 * ..., with these digests (0 ends). */
static inline struct uuid
run_of(struct fixture *f, uint64_t tenant, uint64_t id, uint64_t sandbox,
    const uint8_t *digests)
{
	struct store_log *log;
	struct store_run r;
	struct uuid uuid;

	fixture_run(&r, id, sandbox, "a");
	r.tenant = tenant;
	fixture_insert(f, &r);
	log = fixture_log_open(f, &r);
	fixture_log_fill(log, &r, 'L', STORE_INLINE_MAX + 1);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	for (uint32_t i = 0; digests[i] != 0; i++) {
		char path[24];

		(void)snprintf(path, sizeof(path), "f%u", i);
		fixture_run_artifact(&r, path, digests[i]);
		bring(log, i, tenant, digests[i]);
	}
	fixture_end_with(f, &r, log);
	store_log_close(log);
	uuid = r.uuid;
	store_run_clear(&r);
	return uuid;
}

static inline struct uuid
run_with(struct fixture *f, uint64_t id, const uint8_t *digests)
{
	return run_of(f, STORE_TENANT_DEFAULT, id, 1, digests);
}

#define DIGESTS(...) ((const uint8_t[]){__VA_ARGS__, 0})
#define NO_DIGESTS ((const uint8_t[]){0})

/* The counts must say what the rows say. */
static inline void
assert_counts_agree(struct fixture *f)
{
	assert_int_equal(
	    fixture_query(f,
		"SELECT count(*) FROM blob b WHERE refs <> (SELECT count(*)"
		" FROM artifact a WHERE a.tenant = b.tenant"
		" AND a.sha256 = b.sha256 AND a.run NOT IN (SELECT run"
		" FROM kept WHERE evicted_ms <> 0))"),
	    0);
	assert_int_equal(
	    fixture_query(f,
		"SELECT count(*) FROM artifact a WHERE NOT EXISTS (SELECT 1"
		" FROM blob b WHERE a.tenant = b.tenant"
		" AND a.sha256 = b.sha256) AND a.run NOT IN (SELECT run"
		" FROM kept WHERE evicted_ms <> 0)"),
	    0);
	assert_int_equal(
	    fixture_query(f,
		"SELECT count(*) FROM tenant t WHERE runs_kept <> (SELECT"
		" count(*) FROM run WHERE tenant = t.id AND state NOT IN"
		" ('queued', 'running'))"),
	    0);
	assert_int_equal(
	    fixture_query(f,
		"SELECT count(*) FROM tenant t WHERE (log_files, log_bytes) <>"
		" (SELECT count(*), coalesce(sum(spool_bytes), 0) FROM run"
		" WHERE tenant = t.id AND log IS NULL AND id IN (SELECT run"
		" FROM kept WHERE evicted_ms = 0 AND log_files = 1))"
		" OR (blob_files, blob_bytes) <> (SELECT count(*),"
		" coalesce(sum(size), 0) FROM blob WHERE tenant = t.id)"),
	    0);
	/* What an end counted is what the database counts. */
	assert_int_equal(
	    fixture_query(f,
		"SELECT count(*) FROM run JOIN run_size ON run_size.run = id"
		" WHERE state NOT IN ('queued', 'running')"
		" AND row_bytes IS NOT bytes"),
	    0);
	assert_int_equal(
	    fixture_query(f,
		"SELECT count(*) FROM tenant t WHERE row_bytes <> (SELECT"
		" coalesce(sum(row_bytes), 0) FROM run WHERE tenant = t.id)"),
	    0);
}

#endif
