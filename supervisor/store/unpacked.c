#include "supervisor/store/unpacked.h"

#include <stdio.h>
#include <string.h>

#include "common/embed.h"
#include "supervisor/store/artifact_rows.h"
#include "supervisor/store/db.h"
#include "supervisor/store/migrate.h"

int
unpacked_check_integrity(struct db *db, struct err *e)
{
	AUTO(auto_free) char *text = NULL;
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_BACKUP_INTEGRITY);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc < 0 ?
		    rc :
		    err_set(e, ERR_DAMAGED, "integrity_check says nothing");
	text = db_get_text(&c);
	db_call_end(&c);
	return strcmp(text, "ok") == 0 ?
	    0 :
	    err_set(e, ERR_DAMAGED, "%s/" DB_FILE " is damaged: %.200s",
		db_dir(db), text);
}

static int
read_instance(struct db *db, char *instance, size_t size, struct err *e)
{
	struct db_call c;
	int rc;

	instance[0] = '\0';
	db_call_init(&c, db, DB_INSTANCE_GET);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc;
	(void)snprintf(instance, size, "%s", db_get_word(&c));
	db_call_end(&c);
	return 0;
}

int
unpacked_lose_blobs(
    const char *dir, const struct unpacked_blob *blobs, size_t n, struct err *e)
{
	struct db *db;
	int rc = db_open(dir, DB_WRITER, &db, e);

	if (rc != 0)
		return rc;
	rc = migrate_check(db, embed_sql, e);
	if (rc == 0)
		rc = migrate_run(db, embed_sql, NULL, e);
	if (rc == 0)
		rc = db_begin(db, e);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc =
		    artifact_rows_lose(db, blobs[i].tenant, blobs[i].sha256, e);
	if (rc == 0)
		rc = db_exec(db, DB_COMMIT, e);
	db_close(db);
	return rc;
}

int
unpacked_check(const char *dir, char *instance, size_t size, struct err *e)
{
	struct db *db;
	int rc = db_open(dir, DB_LOOK, &db, e);

	if (rc != 0)
		return rc;
	rc = migrate_check(db, embed_sql, e);
	if (rc == 0)
		rc = unpacked_check_integrity(db, e);
	if (rc == 0)
		rc = read_instance(db, instance, size, e);
	db_close(db);
	return rc;
}
