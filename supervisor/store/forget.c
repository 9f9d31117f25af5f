#include "supervisor/store/forget.h"

#include "common/clock.h"
#include "supervisor/store/artifact_rows.h"
#include "supervisor/store/db.h"
#include "supervisor/store/leftovers.h"
#include "supervisor/store/spool.h"
#include "supervisor/store/store_int.h"

void
forget_clear(struct forget *f)
{
	free(f->logs);
	free(f->blobs);
	*f = (struct forget){0};
}

void
forget_add_log(struct forget *f, const struct uuid *run, uint64_t bytes)
{
	f->logs = array_grow(f->logs, f->nlogs, sizeof(*f->logs));
	f->logs[f->nlogs++] = *run;
	f->bytes += bytes;
}

int
forget_artifacts(struct db *db, struct forget *f, uint64_t tenant, uint64_t run,
    struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_FORGET_DIGESTS);
	db_put_uint(&c, run);
	while ((rc = db_call_step(&c, e)) == 1) {
		uint8_t sha256[32];

		db_get_bytes(&c, sha256, sizeof(sha256));
		rc = artifact_rows_unref(db, tenant, sha256, e);
		if (rc != 0) {
			db_call_end(&c);
			return rc;
		}
		f->nartifacts++;
	}
	return rc;
}

int
forget_run(struct db *db, struct forget *f, uint64_t tenant, uint64_t run,
    struct err *e)
{
	uint64_t bytes;

	if (db_ask_with(db, DB_FORGET_SIZE, run, &bytes, e) != 0 ||
	    forget_artifacts(db, f, tenant, run, e) != 0)
		return e->code;
	f->row_bytes += bytes;
	return db_exec_with(db, DB_FORGET_RUN, run, e);
}

int
forget_mark(struct db *db, uint64_t run, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_EVICT_MARK);
	db_put_uint(&c, run);
	db_put_int(&c, clock_wall_ms());
	return db_call_run(&c, e);
}

int
forget_blobs(struct db *db, struct forget *f, uint64_t tenant, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_FORGET_BLOBS);
	db_put_uint(&c, tenant);
	while ((rc = db_call_step(&c, e)) == 1) {
		struct forget_blob *b;
		uint64_t n;

		f->blobs = array_grow(f->blobs, f->nblobs, sizeof(*f->blobs));
		b = &f->blobs[f->nblobs++];
		b->tenant = tenant;
		db_get_bytes(&c, b->sha256, sizeof(b->sha256));
		n = db_get_uint(&c);
		f->bytes += n;
		f->blob_bytes += n;
	}
	return rc;
}

int
forget_sandboxes(struct db *db, uint64_t tenant, struct err *e)
{
	return db_exec_with(db, DB_TRIM_SANDBOXES, tenant, e);
}

int
forget_count(struct db *db, const struct forget *f, uint64_t tenant,
    uint64_t runs, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_FORGET_COUNT);
	db_put_uint(&c, tenant);
	db_put_uint(&c, runs);
	db_put_uint(&c, f->row_bytes);
	return db_call_run(&c, e);
}

void
forget_files(struct store *s, struct db *db, const struct forget *f)
{
	for (size_t i = 0; i < f->nlogs; i++)
		spool_log_remove(s->spool, &f->logs[i]);
	for (size_t i = 0; i < f->nblobs; i++)
		leftovers_check_blob(
		    s, db, f->blobs[i].tenant, f->blobs[i].sha256);
}
