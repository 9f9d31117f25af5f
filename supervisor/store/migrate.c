#include "supervisor/store/migrate.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/store.h"

#define APPLICATION_ID 1296257107 /* "MCPS", see 0001_initial.sql */

/* The files are numbered 1, 2, ...; *count is the last number. */
static int
files_count(const struct embed_file *files, int64_t *count, struct err *e)
{
	int64_t n = 0;

	for (; files[n].name != NULL; n++) {
		char *end;
		long number = strtol(files[n].name, &end, 10);

		if (number != n + 1 || *end != '_')
			return err_set(e, ERR_WRONG_STATE,
			    "migration %s: want number %04lld", files[n].name,
			    (long long)n + 1);
	}
	*count = n;
	return 0;
}

int
migrate_check(struct db *db, const struct embed_file *files, struct err *e)
{
	int64_t known, version, application, tables;

	if (files_count(files, &known, e) != 0 ||
	    db_exec_int(db, DB_GET_VERSION, &version, e) != 0 ||
	    db_exec_int(db, DB_GET_APPLICATION, &application, e) != 0 ||
	    db_exec_int(db, DB_GET_TABLES, &tables, e) != 0)
		return e->code;
	if (application != APPLICATION_ID && (version != 0 || tables != 0))
		return err_set(e, ERR_WRONG_STATE,
		    "%s/" DB_FILE " is the database of another program: move "
		    "it away",
		    db_dir(db));
	if (version > known)
		return err_set(e, ERR_WRONG_STATE,
		    "%s/" DB_FILE " was made by a newer mcp-sandboxd (schema "
		    "%lld, this one knows %lld): start that one, or put a "
		    "backup in its place",
		    db_dir(db), (long long)version, (long long)known);
	return 0;
}

/* A migration may rebuild tables, so what refers to what is checked late. */
static int
check_result(struct db *db, struct err *e)
{
	AUTO(auto_free) char *text = NULL;
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_CHECK_FOREIGN_KEYS);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc;
	text = db_get_text(&c);
	db_call_end(&c);
	return err_set(
	    e, ERR_DB, "rows of %s refer to rows that are gone", text);
}

static int
migrate_one(
    struct db *db, const struct embed_file *file, int64_t number, struct err *e)
{
	char version[64];
	int rc;

	(void)snprintf(version, sizeof(version), "PRAGMA user_version = %lld",
	    (long long)number);
	rc = db_begin(db, e);
	if (rc == 0)
		rc = db_exec_text(db, file->data, e);
	if (rc == 0)
		rc = check_result(db, e);
	if (rc == 0)
		rc = db_exec_text(db, version, e);
	if (rc == 0)
		rc = db_exec(db, DB_COMMIT, e);
	if (rc != 0) {
		db_rollback(db);
		return err_wrap(e, "migration %s", file->name);
	}
	return 0;
}

/* ---- telling: a large database takes minutes */

#define TELL_MS 100

struct upkeep {
	const struct store_progress *p;
	bool is_new; /* there is nothing to bring up to date */
	uint64_t began_ms;
	uint64_t told_ms;
};

static void
tell_cb(void *arg)
{
	struct upkeep *t = arg;
	uint64_t now = clock_mono_ms();

	if (t->p == NULL || now - t->told_ms < TELL_MS)
		return;
	t->told_ms = now;
	t->p->tell(t->p->arg);
}

static void
tell_begin(struct upkeep *t, struct db *db, int64_t from, int64_t to)
{
	t->is_new = from == 0;
	t->began_ms = t->told_ms = clock_mono_ms();
	db_on_progress(db, tell_cb, t);
	if (!t->is_new)
		log_info("the database is brought up to date, from schema %lld "
			 "to %lld: this takes about a minute for a million "
			 "runs, and as much room on the disk again",
		    (long long)from, (long long)to);
}

static void
tell_end(const struct upkeep *t, struct db *db, int rc)
{
	db_on_progress(db, NULL, NULL);
	if (!t->is_new && rc == 0)
		log_info("the database is up to date, after %llu ms",
		    (unsigned long long)(clock_mono_ms() - t->began_ms));
}

int
migrate_run(struct db *db, const struct embed_file *files,
    const struct store_progress *p, struct err *e)
{
	struct upkeep t = {.p = p};
	int64_t known, version;
	int rc = 0;

	if (files_count(files, &known, e) != 0 ||
	    db_exec_int(db, DB_GET_VERSION, &version, e) != 0)
		return e->code;
	if (version >= known)
		return 0;
	if (db_exec(db, DB_SET_NO_FOREIGN_KEYS, e) != 0)
		return e->code;
	tell_begin(&t, db, version, known);
	while (rc == 0 && version < known) {
		rc = migrate_one(db, &files[version], version + 1, e);
		version++;
		tell_cb(&t);
	}
	tell_end(&t, db, rc);
	if (rc != 0)
		return rc; /* the connection is closed now, as it is */
	return db_exec(db, DB_SET_FOREIGN_KEYS, e);
}
