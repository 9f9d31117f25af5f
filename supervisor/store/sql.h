/*
 * sql.h - all SQL of the store, in one table (sql.c)
 *
 * Parameters and columns are in the order in which the callers put and get
 * them (db.h).  Migrations are files in schema/sql/.
 */
#ifndef STORE_SQL_H
#define STORE_SQL_H

enum db_query {
	/* connection */
	DB_SET_SYNCHRONOUS,
	DB_SET_FOREIGN_KEYS,
	DB_SET_NO_FOREIGN_KEYS,
	DB_SET_NO_MMAP,
	DB_SET_TEMP_MEMORY,
	DB_SET_SECURE_DELETE,
	DB_SET_QUERY_ONLY,
	DB_SET_WAL,
	/* migrations */
	DB_GET_VERSION,
	DB_GET_APPLICATION,
	DB_GET_TABLES,
	DB_CHECK_FOREIGN_KEYS,
	/* transactions */
	DB_BEGIN,
	DB_BEGIN_READ,
	DB_COMMIT,
	DB_ROLLBACK,
	DB_SAVEPOINT,
	DB_RELEASE,
	DB_ROLLBACK_TO,
	/* sandboxes */
	DB_SANDBOX_PUT,
	DB_SANDBOX_LIVE,
	/* runs */
	DB_RUN_INSERT,
	DB_RUN_MOVE,
	DB_RUN_END,
	DB_RUN_STATE,
	DB_RUN_GET,
	DB_RUN_UNFINISHED,
	DB_SPEC_INSERT,
	DB_SPEC_DELETE,
	DB_COMMAND_INSERT,
	DB_COMMAND_END,
	DB_COMMANDS_GET,
	DB_TALLY,
	DB_TALLY_TOTAL,
	DB_NEXT_NUMBER,
	/* artifacts */
	DB_ARTIFACT_INSERT,
	DB_ARTIFACTS_GET,
	DB_ARTIFACT_GET,
	DB_ARTIFACT_LATEST,
	DB_BLOB_REF,
	/* files */
	DB_LOG_WANTED,
	DB_BLOB_WANTED,
	/* trim */
	DB_TRIM_KEPT,
	DB_TRIM_RUNS,
	DB_TRIM_RUN_DELETE,
	DB_TRIM_DIGESTS,
	DB_TRIM_BLOB_UNREF,
	DB_TRIM_BLOBS,
	DB_TRIM_SANDBOXES,
	DB_TRIM_COUNT,
	DB_NQUERY
};

extern const char *const db_sql[DB_NQUERY];

#endif
