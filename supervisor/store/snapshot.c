#include "supervisor/store/store_int.h"

#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/rows_sql_gen.h"

/* Both work before the loop runs, on the caller's thread and a connection of
 * their own: the threads have theirs. */

void
store_snapshot_clear(struct store_snapshot *s)
{
	for (size_t i = 0; i < s->nsandboxes; i++)
		store_sandbox_clear(&s->sandboxes[i]);
	for (size_t i = 0; i < s->nruns; i++)
		store_run_clear(&s->runs[i]);
	for (size_t i = 0; i < s->nended; i++)
		store_sandbox_clear(&s->ended[i]);
	free(s->sandboxes);
	free(s->ended);
	free(s->runs);
	memset(s, 0, sizeof(*s));
}

static int
next_number(struct db *db, enum db_query q, uint64_t *out, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, q);
	rc = db_call_step(&c, e);
	if (rc < 0)
		return rc;
	*out = 1;
	if (rc == 1) {
		*out = db_get_uint(&c);
		db_call_end(&c);
	}
	return 0;
}

static int
read_sandboxes(struct db *db, enum db_query which, struct store_sandbox **out,
    size_t *n, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, which);
	while ((rc = db_call_step(&c, e)) == 1) {
		*out = array_grow(*out, *n, sizeof(**out));
		rc = rows_get_sandbox(&c, &(*out)[*n], e);
		if (rc != 0) {
			db_call_end(&c);
			return rc;
		}
		(*n)++;
	}
	return rc;
}

static int
read_runs(struct db *db, void (*slim)(struct store_run *run),
    struct store_snapshot *s, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_RUN_UNFINISHED);
	while ((rc = db_call_step(&c, e)) == 1) {
		s->runs = array_grow(s->runs, s->nruns, sizeof(*s->runs));
		if (reads_run(db, &c, 0, &s->runs[s->nruns], e) != 0) {
			db_call_end(&c);
			return e->code;
		}
		if (slim != NULL)
			slim(&s->runs[s->nruns]);
		s->nruns++;
	}
	return rc;
}

static int
snapshot_read(struct db *db, void (*slim)(struct store_run *run),
    struct store_snapshot *s, struct err *e)
{
	if (db_exec(db, DB_BEGIN_READ, e) != 0 ||
	    next_number(db, DB_NEXT_SANDBOX, &s->next_sandbox, e) != 0 ||
	    next_number(db, DB_NEXT_RUN, &s->next_run, e) != 0 ||
	    read_sandboxes(
		db, DB_SANDBOX_LIVE, &s->sandboxes, &s->nsandboxes, e) != 0 ||
	    read_sandboxes(db, DB_SANDBOX_LEFT, &s->ended, &s->nended, e) != 0)
		return e->code;
	return read_runs(db, slim, s, e);
}

int
store_snapshot(struct store *s, void (*slim)(struct store_run *run),
    struct store_snapshot *out, struct err *e)
{
	struct store_snapshot snapshot = {0};
	struct err why = {0};
	struct db *db;
	int rc = db_open(s->dir, DB_READER, &db, &why);

	if (rc == 0) {
		rc = snapshot_read(db, slim, &snapshot, &why);
		db_close(db);
	}
	if (rc != 0) {
		store_snapshot_clear(&snapshot);
		return err_set(e, rc, "%s", why.msg);
	}
	*out = snapshot;
	return 0;
}

static int
counts_read(struct db *db, struct store_counts *n, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_TALLY_TOTAL);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc;
	n->runs_completed = db_get_uint(&c);
	n->runs_failed = db_get_uint(&c);
	n->runs_canceled = db_get_uint(&c);
	n->commands_completed = db_get_uint(&c);
	n->commands_failed = db_get_uint(&c);
	n->commands_timed_out = db_get_uint(&c);
	db_call_end(&c);
	return 0;
}

int
store_counts(struct store *s, struct store_counts *out, struct err *e)
{
	struct store_counts counts = {0};
	struct err why = {0};
	struct db *db;
	int rc = db_open(s->dir, DB_READER, &db, &why);

	if (rc == 0) {
		rc = counts_read(db, &counts, &why);
		db_close(db);
	}
	if (rc != 0)
		return err_set(e, rc, "%s", why.msg);
	*out = counts;
	return 0;
}
