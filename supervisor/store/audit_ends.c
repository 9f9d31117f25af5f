#include "supervisor/store/audit_ends.h"

#include "supervisor/store/db.h"

static void
get_mark(struct db_call *c, struct store_audit_mark *m)
{
	m->seq = db_get_uint(c);
	db_get_bytes(c, m->hash, sizeof(m->hash));
}

static void
put_mark(struct db_call *c, const struct store_audit_mark *m)
{
	db_put_uint(c, m->seq);
	db_put_blob(c, m->hash, sizeof(m->hash));
}

int
audit_ends_get(struct db *db, struct audit_ends *out, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_AUDIT_ENDS);
	rc = db_call_step(&c, e);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return err_set(e, ERR_NOTFOUND,
		    "audit: the row that says where it ends is missing");
	get_mark(&c, &out->head);
	get_mark(&c, &out->base);
	db_call_end(&c);
	return 0;
}

int
audit_ends_put(struct db *db, const struct audit_ends *ends, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_AUDIT_ENDS_PUT);
	put_mark(&c, &ends->head);
	put_mark(&c, &ends->base);
	return db_call_run_one(&c, e);
}
