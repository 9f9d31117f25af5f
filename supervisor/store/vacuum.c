#include "supervisor/store/vacuum.h"

#include <sys/stat.h>

#include "common/xmalloc.h"
#include "supervisor/store/db.h"

void
vacuum_on_write(struct vacuum *v, uint64_t now_ms)
{
	v->is_due = true;
	if (!v->is_hurried)
		v->at_ms = now_ms + VACUUM_IDLE_MS;
}

void
vacuum_hurry(struct vacuum *v, uint64_t now_ms)
{
	v->is_due = true;
	v->is_hurried = true;
	v->at_ms = now_ms;
}

uint64_t
vacuum_file_bytes(const struct db *db)
{
	AUTO(auto_free) char *path = xasprintf("%s/" DB_FILE, db_dir(db));
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

int
vacuum_given_back(
    struct db *db, uint64_t before, uint64_t *bytes, struct err *e)
{
	int64_t pages, gaps;
	uint64_t has;

	if (db_exec_int(db, DB_GET_PAGES, &pages, e) != 0 ||
	    db_exec_int(db, DB_GET_FREE_PAGES, &gaps, e) != 0)
		return e->code;
	/* Pages that were given back leave the file with a checkpoint. */
	has = (uint64_t)pages * DB_PAGE_BYTES;
	*bytes =
	    (uint64_t)gaps * DB_PAGE_BYTES + (before > has ? before - has : 0);
	return 0;
}

uint64_t
vacuum_wait_ms(const struct vacuum *v, uint64_t now_ms)
{
	if (!v->is_due)
		return VACUUM_NEVER;
	return v->at_ms > now_ms ? v->at_ms - now_ms : 0;
}

/* Whether the gaps are worth it. */
static int
look(struct vacuum *v, struct db *db, struct err *e)
{
	int64_t mode, pages, gaps;

	if (db_exec_int(db, DB_GET_AUTO_VACUUM, &mode, e) != 0 ||
	    db_exec_int(db, DB_GET_PAGES, &pages, e) != 0 ||
	    db_exec_int(db, DB_GET_FREE_PAGES, &gaps, e) != 0)
		return e->code;
	v->is_at_work = mode == DB_AUTO_VACUUM_INCREMENTAL &&
	    gaps >= VACUUM_FREE_MIN &&
	    gaps > (v->is_at_work ? pages / 16 : pages / 8);
	v->is_hurried =
	    v->is_hurried && gaps > 0 && mode == DB_AUTO_VACUUM_INCREMENTAL;
	v->is_at_work = v->is_at_work || v->is_hurried;
	return 0;
}

int
vacuum_turn(struct vacuum *v, struct db *db, uint64_t now_ms, bool *moved,
    struct err *e)
{
	int rc = look(v, db, e);

	*moved = rc == 0 && v->is_at_work;
	if (*moved)
		rc = db_exec(db, DB_VACUUM_STEP, e);
	v->is_due = v->is_at_work || rc != 0;
	v->is_hurried = v->is_hurried && rc == 0;
	v->at_ms = now_ms + (rc == 0 ? VACUUM_PAUSE_MS : VACUUM_RETRY_MS);
	return rc;
}
