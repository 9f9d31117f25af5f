#include "supervisor/store/artifact_rows.h"

#include "common/clock.h"
#include "supervisor/store/db.h"
#include "supervisor/store/rows_sql_gen.h"

int
artifact_rows_unref(
    struct db *db, uint64_t tenant, const uint8_t sha256[32], struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_FORGET_BLOB_UNREF);
	db_put_uint(&c, tenant);
	db_put_blob(&c, sha256, 32);
	return db_call_run(&c, e);
}

static int
unref_replaced(struct db *db, const struct store_run *r,
    const struct store_artifact *a, struct err *e)
{
	uint8_t sha256[32];
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_ARTIFACT_DELETE);
	db_put_uint(&c, r->id);
	db_put_text(&c, a->path);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc;
	db_get_bytes(&c, sha256, sizeof(sha256));
	db_call_end(&c);
	/* Without references it goes with the next trim, its file too. */
	return artifact_rows_unref(db, r->tenant, sha256, e);
}

static int
put_artifact(struct db *db, const struct store_run *r,
    const struct store_artifact *a, struct err *e)
{
	struct db_call c;

	if (unref_replaced(db, r, a, e) != 0)
		return e->code;
	db_call_init(&c, db, DB_ARTIFACT_INSERT);
	db_put_uint(&c, r->id);
	rows_put_artifact(&c, a);
	if (db_call_run(&c, e) != 0)
		return e->code;
	db_call_init(&c, db, DB_BLOB_REF);
	db_put_uint(&c, r->tenant);
	db_put_blob(&c, a->sha256, sizeof(a->sha256));
	db_put_uint(&c, a->size);
	return db_call_run(&c, e);
}

int
artifact_rows_lose(
    struct db *db, uint64_t tenant, const uint8_t sha256[32], struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_BLOB_LOSE);
	db_put_uint(&c, tenant);
	db_put_blob(&c, sha256, 32);
	db_put_int(&c, clock_wall_ms());
	return db_call_run(&c, e);
}

int
artifact_rows_put(
    struct db *db, const struct store_run *r, const bool *lost, struct err *e)
{
	for (uint32_t i = 0; i < r->nartifacts; i++) {
		const struct store_artifact *a = &r->artifacts[i];

		if (put_artifact(db, r, a, e) != 0 ||
		    (lost != NULL && lost[i] &&
			artifact_rows_lose(db, r->tenant, a->sha256, e) != 0))
			return e->code;
	}
	return 0;
}
