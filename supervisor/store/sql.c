#include "supervisor/store/sql.h"

#include "supervisor/store/history_sql.h"
#include "supervisor/store/rows_sql_gen.h"

#define UNFINISHED                                                             \
	"state IN ('" RUN_STATE_QUEUED_WORD "', '" RUN_STATE_RUNNING_WORD "')"
#define SANDBOX_IS_LIVE                                                        \
	"state IN ('" SANDBOX_IS_CREATING_WORD "', '" SANDBOX_IS_READY_WORD    \
	"', '" SANDBOX_IS_REMOVING_WORD "')"
#define SANDBOX_IS_DEAD                                                        \
	"state IN ('" SANDBOX_IS_REMOVED_WORD "', '" SANDBOX_IS_LOST_WORD "')"

#define RUN_APART                                                              \
	", (SELECT data FROM spec WHERE spec.run = run.id)"                    \
	", (SELECT evicted_ms FROM kept WHERE kept.run = run.id)"              \
	", (SELECT lost_ms FROM kept WHERE kept.run = run.id)"

/* An id that a client gave: what is another tenant's is not even looked at, so
 * that it takes as long as an id that nobody has. */
#define RUN_OF_TENANT                                                          \
	" FROM run INDEXED BY run_of_tenant WHERE uuid = ?1"                   \
	" AND tenant = ?2"

/* Behind its columns. */
#define ARTIFACT_APART                                                         \
	", (SELECT lost_ms FROM blob WHERE blob.tenant = artifact.tenant"      \
	" AND blob.sha256 = artifact.sha256)"

/* Behind its columns, of its run. */
#define TASK_RUN(column)                                                       \
	", (SELECT run." column " FROM run INDEXED BY run_of_tenant"           \
	" WHERE run.uuid = task.run AND run.tenant = task.tenant)"
#define TASK_APART                                                             \
	TASK_RUN("state")                                                      \
	TASK_RUN("end_reason") TASK_RUN("started_ms") TASK_RUN("ended_ms")

#define USAGE_SUM                                                              \
	"runs = runs + excluded.runs, run_ms = run_ms + excluded.run_ms,"      \
	" output_bytes = output_bytes + excluded.output_bytes,"                \
	" artifact_bytes = artifact_bytes + excluded.artifact_bytes,"          \
	" sandboxes = sandboxes + excluded.sandboxes,"                         \
	" refusals = refusals + excluded.refusals"
#define USAGE_SUMS                                                             \
	"tenant, day, sum(runs), sum(run_ms), sum(output_bytes),"              \
	" sum(artifact_bytes), sum(sandboxes), sum(refusals)"                  \
	" FROM usage_parts"
#define NO_DAY                                                                 \
	"day_runs = 0, day_run_ms = 0, day_output_bytes = 0,"                  \
	" day_artifact_bytes = 0"

/* A plus before a column keeps the planner from an index of it. */
const char *const db_sql[DB_NQUERY] = {
    [DB_SET_FOREIGN_KEYS] = "PRAGMA foreign_keys = ON",
    [DB_SET_NO_FOREIGN_KEYS] = "PRAGMA foreign_keys = OFF",
    [DB_SET_EXCLUSIVE] = "PRAGMA locking_mode = EXCLUSIVE",
    [DB_SET_QUERY_ONLY] = "PRAGMA query_only = ON",
    /* Before there is anything in the file. */
    [DB_SET_AUTO_VACUUM] = "PRAGMA auto_vacuum = INCREMENTAL",
    [DB_SET_WAL] = "PRAGMA journal_mode = WAL",

    [DB_GET_VERSION] = "PRAGMA user_version",
    [DB_GET_APPLICATION] = "PRAGMA application_id",
    [DB_GET_AUTO_VACUUM] = "PRAGMA auto_vacuum",
    [DB_GET_PAGES] = "PRAGMA page_count",
    [DB_GET_FREE_PAGES] = "PRAGMA freelist_count",
    [DB_VACUUM_STEP] = "PRAGMA incremental_vacuum(64)", /* VACUUM_PAGES */
    [DB_GET_TABLES] = "SELECT count(*) FROM sqlite_schema",
    [DB_CHECK_FOREIGN_KEYS] = "PRAGMA foreign_key_check",

    [DB_BEGIN] = "BEGIN IMMEDIATE",
    [DB_BEGIN_READ] = "BEGIN",
    [DB_COMMIT] = "COMMIT",
    [DB_ROLLBACK] = "ROLLBACK",
    [DB_SAVEPOINT] = "SAVEPOINT op",
    [DB_RELEASE] = "RELEASE op",
    [DB_ROLLBACK_TO] = "ROLLBACK TO op",

    [DB_EVENT_NEWEST] = "SELECT max(seq) FROM event WHERE tenant = ?1",
    [DB_EVENT_OLDEST] = "SELECT min(seq) FROM event WHERE tenant = ?1",
    /* What is noted of a tenant that was erased meanwhile comes to nothing. */
    [DB_EVENT_NEXT] =
	"SELECT coalesce(max(seq), 0), ?1 = 0 OR"
	" EXISTS (SELECT 1 FROM tenant WHERE id = ?1 AND gone_ms = 0)"
	" FROM event WHERE tenant = ?1",
    [DB_EVENT_INSERT] =
	"INSERT INTO event (" EVENT_COLUMNS ") VALUES (" EVENT_VALUES ")",
    /* From the newest back: none of a run stands before run.created. */
    [DB_EVENT_THERE] = "SELECT kind = ?3 FROM event WHERE tenant = ?1"
		       " AND run = ?2 AND (kind = ?3 OR kind = 'run.created')"
		       " ORDER BY seq DESC LIMIT 1",
    [DB_EVENT_KEEP] = "SELECT value FROM quota WHERE tenant = ?1"
		      " AND key = 'events'",
    [DB_EVENT_TRIM] = "DELETE FROM event WHERE tenant = ?1 AND seq < ?2"
		      " AND seq < ?3 + (SELECT min(seq) FROM event"
		      " WHERE tenant = ?1)",
    [DB_EVENT_KIND] =
	"SELECT kind, at_ms FROM event WHERE tenant = ?1 AND seq = ?2",
    [DB_EVENTS_AFTER] = "SELECT " EVENT_COLUMNS " FROM event"
			" WHERE tenant = ?1 AND seq > ?2 ORDER BY seq",
    [DB_EVENTS_DROP] = "DELETE FROM event WHERE tenant = ?1",

    /* Not REPLACE, which would delete the row that others refer to. */
    [DB_TENANT_PUT] =
	"INSERT INTO tenant (" TENANT_COLUMNS ") VALUES (" TENANT_VALUES ")"
	" ON CONFLICT (id) DO UPDATE SET " TENANT_SET_ALL
	" WHERE tenant.gone_ms = 0",
    [DB_TENANTS_GET] = "SELECT " TENANT_COLUMNS " FROM tenant"
		       " WHERE gone_ms = 0 ORDER BY id",
    [DB_TENANT_NEXT] = "SELECT max(id) + 1 FROM tenant",
    [DB_TENANT_IS_USED] =
	"SELECT EXISTS (SELECT 1 FROM run WHERE tenant = ?1)"
	" OR EXISTS (SELECT 1 FROM sandbox WHERE tenant = ?1)",
    [DB_TENANT_ERASE] = "UPDATE tenant SET name = '.gone-' || id,"
			" gone_ms = ?2, runtime = '', read_only_root = 0,"
			" day = -1, " NO_DAY " WHERE id = ?1 AND gone_ms = 0",
    [DB_USAGE_DROP] = "DELETE FROM usage WHERE tenant = ?1",
    [DB_TENANT_USAGE] = "SELECT log_files, log_bytes, blob_files,"
			" blob_bytes, evicted, runs_kept, row_bytes"
			" FROM tenant WHERE id = ?1",
    /* What was asked for before its tenant was erased comes to nothing. */
    [DB_TOKEN_PUT] =
	"INSERT INTO token (" TOKEN_COLUMNS ") SELECT " TOKEN_VALUES
	" WHERE ?2 = 0 OR"
	" EXISTS (SELECT 1 FROM tenant WHERE id = ?2 AND gone_ms = 0)"
	" ON CONFLICT (id) DO UPDATE SET " TOKEN_SET_ALL,
    [DB_TOKEN_DROP] = "DELETE FROM token WHERE id = ?1",
    [DB_TOKENS_DROP] = "DELETE FROM token WHERE tenant = ?1",
    [DB_TOKENS_GET] = "SELECT " TOKEN_COLUMNS " FROM token"
		      " ORDER BY created_ms, id",
    [DB_TOKENS_COUNT] = "SELECT count(*) FROM token",
    [DB_TOKENS_THERE] = "SELECT count(*) FROM sqlite_schema"
			" WHERE type = 'table' AND name = 'token'",
    [DB_GRANT_PUT] =
	"INSERT INTO quota (" GRANT_COLUMNS ") SELECT " GRANT_VALUES
	" WHERE EXISTS (SELECT 1 FROM tenant WHERE id = ?1 AND gone_ms = 0)"
	" ON CONFLICT (tenant, key) DO UPDATE SET " GRANT_SET_ALL,
    [DB_GRANT_DROP] = "DELETE FROM quota WHERE tenant = ?1 AND key = ?2",
    [DB_GRANTS_DROP] = "DELETE FROM quota WHERE tenant = ?1",
    [DB_GRANTS_GET] = "SELECT " GRANT_COLUMNS " FROM quota",

    [DB_USAGE_ADD] =
	"INSERT INTO usage (" DAY_COLUMNS ") SELECT " DAY_VALUES
	" WHERE EXISTS (SELECT 1 FROM tenant WHERE id = ?1 AND gone_ms = 0)"
	" ON CONFLICT DO UPDATE SET " USAGE_SUM,
    [DB_USAGE_OF_DAY] = "SELECT " USAGE_SUMS " WHERE day = ?1 GROUP BY tenant",
    [DB_USAGE_OF_TENANT] = "SELECT " USAGE_SUMS " WHERE tenant = ?1"
			   " AND day >= ?2 GROUP BY day ORDER BY day DESC",
    [DB_USAGE_FORGET] = "DELETE FROM usage WHERE day < ?1",
    [DB_USAGE_OF_ENDS] =
	"INSERT INTO usage (" DAY_COLUMNS ") SELECT id, day, day_runs,"
	" day_run_ms, day_output_bytes, day_artifact_bytes, 0, 0"
	" FROM tenant WHERE id = ?1 AND day >= 0 AND gone_ms = 0"
	" ON CONFLICT DO UPDATE SET " USAGE_SUM,
    [DB_TENANT_DAY] = "UPDATE tenant SET day = ?2, " NO_DAY " WHERE id = ?1",
    [DB_TENANT_DAY_FORGET] =
	"UPDATE tenant SET day = -1, " NO_DAY " WHERE day >= 0 AND day < ?1",
    [DB_SECRET_PUT] =
	"INSERT INTO secret (" SECRET_COLUMNS ") SELECT " SECRET_VALUES
	" WHERE EXISTS (SELECT 1 FROM tenant WHERE id = ?1 AND gone_ms = 0)"
	" ON CONFLICT (tenant, name) DO UPDATE SET " SECRET_SET_ALL,
    [DB_SECRET_USE] = "UPDATE secret SET used_ms = ?3"
		      " WHERE tenant = ?1 AND name = ?2",
    [DB_SECRET_DROP] = "DELETE FROM secret WHERE tenant = ?1 AND name = ?2",
    [DB_SECRETS_DROP] = "DELETE FROM secret WHERE tenant = ?1",
    [DB_SECRETS_GET] = "SELECT " SECRET_COLUMNS " FROM secret"
		       " ORDER BY tenant, name",
    [DB_WEBHOOK_PUT] =
	"INSERT INTO webhook (" WEBHOOK_COLUMNS ") SELECT " WEBHOOK_VALUES
	" WHERE EXISTS (SELECT 1 FROM tenant WHERE id = ?2 AND gone_ms = 0)"
	" ON CONFLICT (uuid) DO UPDATE SET " WEBHOOK_SET_ALL,
    [DB_WEBHOOK_DROP] = "DELETE FROM webhook WHERE uuid = ?1",
    [DB_WEBHOOKS_DROP] = "DELETE FROM webhook WHERE tenant = ?1",
    [DB_WEBHOOKS_GET] = "SELECT " WEBHOOK_COLUMNS " FROM webhook"
			" ORDER BY created_ms, uuid",

    [DB_TASK_COUNT] = "SELECT count(*) FROM task WHERE tenant = ?1"
		      " AND subject = ?2 AND expires_ms > ?3",
    [DB_TASK_PUT] =
	"INSERT INTO task (" TASK_COLUMNS ") SELECT " TASK_VALUES
	" WHERE EXISTS (SELECT 1 FROM tenant WHERE id = ?2 AND gone_ms = 0)",
    [DB_TASK_CANCEL] = "UPDATE task SET cancelled_ms = ?4 WHERE uuid = ?1"
		       " AND tenant = ?2 AND subject = ?3"
		       " AND cancelled_ms = 0",
    [DB_TASK_GET] = "SELECT " TASK_COLUMNS TASK_APART " FROM task"
		    " WHERE uuid = ?1 AND tenant = ?2 AND subject = ?3"
		    " AND expires_ms > ?4",
    [DB_TASK_PAGE] =
	"SELECT " TASK_COLUMNS TASK_APART " FROM task"
	" INDEXED BY task_of_subject WHERE tenant = ?1 AND subject = ?2"
	" AND (created_ms, uuid) < (?3, ?4) AND expires_ms > ?5"
	" ORDER BY created_ms DESC, uuid DESC LIMIT ?6",
    [DB_TASK_EXPIRE] =
	"DELETE FROM task WHERE (uuid, tenant, subject) IN (SELECT uuid,"
	" tenant, subject FROM task INDEXED BY task_by_end"
	" WHERE expires_ms <= ?1 ORDER BY expires_ms LIMIT ?2)",
    [DB_TASKS_DROP] = "DELETE FROM task WHERE tenant = ?1",
    [DB_TASKS_UNFINISHED] =
	"SELECT " TASK_COLUMNS TASK_APART " FROM task WHERE run IN"
	" (SELECT uuid FROM run WHERE " UNFINISHED ")",

    [DB_AUDIT_ENDS] = "SELECT audit_head_seq, audit_head_hash, audit_base_seq,"
		      " audit_base_hash FROM tenant"
		      " WHERE id = 1 AND audit_head_seq IS NOT NULL",
    /* In a row that the end of a run of this tenant writes, too. */
    [DB_AUDIT_ENDS_PUT] = "UPDATE tenant SET audit_head_seq = ?1,"
			  " audit_head_hash = ?2, audit_base_seq = ?3,"
			  " audit_base_hash = ?4 WHERE id = 1",
    [DB_AUDIT_INSERT] =
	"INSERT INTO audit (" AUDIT_COLUMNS ") VALUES (" AUDIT_VALUES ")",
    [DB_AUDIT_HASH] = "SELECT hash FROM audit WHERE seq = ?1",
    [DB_AUDIT_TRIM] = "DELETE FROM audit WHERE seq <= ?1",
    [DB_AUDIT_FIRST] = "SELECT min(seq) FROM audit",
    [DB_AUDIT_AFTER] = "SELECT " AUDIT_COLUMNS " FROM audit"
		       " WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    [DB_AUDIT_LIST] = "SELECT " AUDIT_COLUMNS " FROM audit"
		      " WHERE seq < ?1 AND seq >= ?2 AND +at_ms >= ?3"
		      " AND (?4 = '' OR tenant = ?4 OR actor_tenant = ?4)"
		      " AND (?5 = '' OR what = ?5)"
		      " ORDER BY seq DESC",

    /* Not REPLACE, which would delete the row that runs refer to. */
    [DB_SANDBOX_PUT] =
	"INSERT INTO sandbox (" SANDBOX_COLUMNS ") VALUES (" SANDBOX_VALUES ")"
	" ON CONFLICT (id) DO UPDATE SET " SANDBOX_SET_ALL,
    [DB_SANDBOX_STATE] = "SELECT state FROM sandbox WHERE id = ?1",
    [DB_SANDBOX_LIVE] = "SELECT " SANDBOX_COLUMNS " FROM sandbox"
			" WHERE " SANDBOX_IS_LIVE " ORDER BY id",
    [DB_SANDBOX_LEFT] =
	"SELECT " SANDBOX_COLUMNS " FROM sandbox"
	" WHERE id IN (SELECT sandbox FROM run"
	" WHERE " UNFINISHED ") AND " SANDBOX_IS_DEAD " ORDER BY id",
    [DB_SANDBOX_ENDED] = "SELECT 1 FROM sandbox WHERE uuid = ?1"
			 " AND " SANDBOX_IS_DEAD,
    [DB_SANDBOX_PLACE] = "SELECT id FROM sandbox WHERE uuid = ?1"
			 " AND tenant = ?2",
    [DB_SANDBOX_PAGE] = "SELECT " SANDBOX_COLUMNS " FROM sandbox"
			" INDEXED BY sandbox_of_tenant WHERE tenant = ?1"
			" AND id < ?2 ORDER BY id DESC",
    [DB_INSTANCE_GET] = "SELECT id FROM instance",
    [DB_INSTANCE_PUT] = "INSERT INTO instance (one, id) VALUES (1, ?1)"
			" ON CONFLICT (one) DO UPDATE SET id = excluded.id",

    [DB_RUN_INSERT] =
	"INSERT INTO run (" RUN_COLUMNS ") VALUES (" RUN_VALUES ")",
    [DB_RUN_MOVE] = "UPDATE run SET sandbox = ?2, sandbox_name = ?3"
		    " WHERE id = ?1 AND " UNFINISHED,
    [DB_RUN_END] = "UPDATE run SET " RUN_END_SET " WHERE " RUN_END_WHERE
		   " AND " UNFINISHED,
    [DB_RUN_STATE] = "SELECT state FROM run WHERE id = ?1",
    [DB_RUN_GET] = "SELECT " RUN_COLUMNS RUN_APART RUN_OF_TENANT,
    [DB_RUN_UNFINISHED] = "SELECT " RUN_COLUMNS RUN_APART " FROM run"
			  " WHERE " UNFINISHED " ORDER BY id",
    [DB_SPEC_INSERT] = "INSERT INTO spec (run, data) VALUES (?1, ?2)",
    [DB_SPEC_DELETE] = "DELETE FROM spec WHERE run = ?1",
    [DB_COMMAND_INSERT] = "INSERT INTO command (run, " COMMAND_COLUMNS ")"
			  " VALUES (?1, " COMMAND_VALUES ")",
    [DB_COMMAND_END] = "UPDATE command SET " COMMAND_END_SET
		       " WHERE run = ?1 AND " COMMAND_END_WHERE,
    [DB_COMMANDS_GET] = "SELECT " COMMAND_COLUMNS " FROM command"
			" WHERE run = ?1 ORDER BY idx",
    [DB_COMMANDS_SUM] = "SELECT coalesce(sum(length(CAST(shell AS BLOB))"
			" + length(CAST(argv AS BLOB))"
			" + length(CAST(cwd AS BLOB))"
			" + length(CAST(env AS BLOB))), 0)"
			" FROM command WHERE run = ?1",
    /* Of the day that the row is about: of no row when it is another's. */
    [DB_TALLY] = "UPDATE tenant SET runs_kept = runs_kept + ?4,"
		 " runs_completed = runs_completed + ?8,"
		 " runs_failed = runs_failed + ?9,"
		 " runs_canceled = runs_canceled + ?10,"
		 " commands_completed = commands_completed + ?11,"
		 " commands_failed = commands_failed + ?12,"
		 " commands_timed_out = commands_timed_out + ?13,"
		 " row_bytes = row_bytes + ?3,"
		 " day_runs = day_runs + ?4, day_run_ms = day_run_ms + ?5,"
		 " day_output_bytes = day_output_bytes + ?6,"
		 " day_artifact_bytes = day_artifact_bytes + ?7"
		 " WHERE id = ?1 AND day = ?2",
    [DB_TALLY_TOTAL] = "SELECT sum(runs_completed), sum(runs_failed),"
		       " sum(runs_canceled), sum(commands_completed),"
		       " sum(commands_failed), sum(commands_timed_out)"
		       " FROM tenant",
    [DB_NEXT_SANDBOX] = "SELECT 1 + coalesce((SELECT seq FROM sqlite_sequence"
			" WHERE name = 'sandbox'), 0)",
    /* seq: the largest of those that are gone, or a larger one's. */
    [DB_NEXT_RUN] =
	"SELECT 1 + max(coalesce((SELECT seq FROM sqlite_sequence"
	" WHERE name = 'run'), 0), coalesce((SELECT max(id) FROM run), 0))",

    [DB_ARTIFACT_INSERT] =
	"INSERT INTO artifact (run, tenant, identifier, " ARTIFACT_COLUMNS ")"
	" SELECT ?1, tenant, identifier, " ARTIFACT_VALUES
	" FROM run WHERE id = ?1",
    [DB_ARTIFACT_DELETE] = "DELETE FROM artifact WHERE run = ?1 AND path = ?2"
			   " RETURNING sha256",
    [DB_ARTIFACTS_GET] =
	"SELECT " ARTIFACT_COLUMNS ARTIFACT_APART " FROM artifact"
	" WHERE run = ?1 ORDER BY path LIMIT ?2 OFFSET ?3",
    [DB_ARTIFACTS_SUM] = "SELECT count(*), coalesce(sum(size), 0),"
			 " coalesce(sum(length(CAST(path AS BLOB))), 0)"
			 " FROM artifact WHERE run = ?1",
    [DB_ARTIFACT_GET] =
	"SELECT " ARTIFACT_COLUMNS ARTIFACT_APART " FROM artifact WHERE"
	" run = (SELECT id" RUN_OF_TENANT
	" AND identifier = ?3 AND NOT " UNFINISHED ")"
	" AND path = ?4",
    [DB_ARTIFACT_LATEST] =
	"SELECT " ARTIFACT_COLUMNS ARTIFACT_APART " FROM artifact"
	" WHERE tenant = ?1"
	" AND identifier = ?2 AND path = ?3"
	" AND EXISTS (SELECT 1 FROM run"
	" WHERE id = artifact.run AND NOT " UNFINISHED ")"
	" ORDER BY run DESC LIMIT 1",
    [DB_BLOB_REF] = "INSERT INTO blob (tenant, sha256, size, refs)"
		    " VALUES (?1, ?2, ?3, 1)"
		    " ON CONFLICT DO UPDATE SET refs = refs + 1, lost_ms = 0",
    [DB_BLOB_LOSE] = "UPDATE blob SET lost_ms = ?3 WHERE tenant = ?1"
		     " AND sha256 = ?2 AND lost_ms = 0",

    [DB_LOG_LOSE] = "UPDATE kept SET lost_ms = ?2 WHERE run = ?1"
		    " AND evicted_ms = 0 AND lost_ms = 0",
    [DB_LOSSES_NEWEST] = "SELECT coalesce((SELECT created_ms FROM run"
			 " ORDER BY id DESC LIMIT 1), 0)",
    /* All are passed by, so that the next statement goes on behind them. */
    [DB_LOSSES_RUNS] =
	"SELECT k.run, k.tenant, run.uuid, k.log_files AND k.lost_ms = 0,"
	" run.spool_bytes, CASE k.evicted_ms WHEN 0 THEN run.ended_ms"
	" ELSE -9223372036854775807 END"
	" FROM (SELECT * FROM kept WHERE run > ?1 ORDER BY run LIMIT ?2) AS k"
	" JOIN run ON run.id = k.run ORDER BY k.run",
    [DB_LOSSES_ARTIFACTS] = "SELECT sha256, size FROM artifact"
			    " WHERE run = ?1 ORDER BY path LIMIT ?2 OFFSET ?3",

    [DB_KEPT_INSERT] = "INSERT INTO kept (run, tenant, log_files, log_bytes,"
		       " is_cut, evicted_ms, lost_ms)"
		       " VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6)",

    [DB_LOG_WANTED] = "SELECT 1 FROM run WHERE uuid = ?1 AND log IS NULL"
		      " AND NOT EXISTS (SELECT 1 FROM kept"
		      " WHERE kept.run = run.id AND evicted_ms <> 0)",
    [DB_BLOB_WANTED] = "SELECT 1 FROM blob WHERE tenant = ?1"
		       " AND sha256 = ?2",

    [DB_TRIM_KEPT] = "SELECT runs_kept, row_bytes FROM tenant WHERE id = ?1",
    [DB_TRIM_RUNS] = "SELECT id, uuid, log IS NULL FROM run WHERE tenant = ?1"
		     " AND NOT " UNFINISHED " ORDER BY created_ms, id LIMIT ?2",
    /* Created before they ended: what is due is at the index's beginning. */
    [DB_EXPIRE_RUNS] = "SELECT id, uuid, log IS NULL, spool_bytes FROM run"
		       " WHERE tenant = ?1 AND created_ms < ?2"
		       " AND ended_ms < ?2 AND NOT " UNFINISHED
		       " ORDER BY created_ms, id LIMIT ?3",
    [DB_EXPIRE_FILES] =
	"SELECT kept.run, run.uuid, log_files, log_bytes, run.created_ms,"
	" run.ended_ms FROM kept JOIN run ON run.id = kept.run"
	" WHERE kept.tenant = ?1 AND is_cut = ?2 AND evicted_ms = 0"
	" ORDER BY kept.run",
    [DB_FORGET_SIZE] = "SELECT coalesce(row_bytes, (SELECT bytes FROM run_size"
		       " WHERE run_size.run = run.id)) FROM run WHERE id = ?1",
    [DB_FORGET_RUN] = "DELETE FROM run WHERE id = ?1",
    [DB_FORGET_DIGESTS] = "SELECT sha256 FROM artifact WHERE run = ?1"
			  " AND NOT EXISTS (SELECT 1 FROM kept"
			  " WHERE kept.run = ?1 AND evicted_ms <> 0)",
    [DB_FORGET_BLOB_UNREF] = "UPDATE blob SET refs = refs - 1"
			     " WHERE tenant = ?1 AND sha256 = ?2",
    [DB_FORGET_BLOBS] = "DELETE FROM blob INDEXED BY blob_unused"
			" WHERE tenant = ?1 AND refs = 0"
			" RETURNING sha256, size",
    /* What ended before the oldest run that is left was made can have no run
     * any more; the last condition is for clocks that went backwards. */
    [DB_TRIM_SANDBOXES] =
	"DELETE FROM sandbox WHERE id IN (SELECT s.id FROM sandbox s"
	" WHERE s.tenant = ?1 AND s." SANDBOX_IS_DEAD
	" AND s.ended_ms < coalesce((SELECT created_ms FROM run"
	" WHERE tenant = ?1 ORDER BY created_ms, id LIMIT 1),"
	" 9223372036854775807)"
	" AND NOT EXISTS (SELECT 1 FROM run WHERE run.sandbox = s.id)"
	" ORDER BY s.ended_ms LIMIT 500)",
    [DB_FORGET_FIND] =
	"SELECT id, state, log IS NULL, spool_bytes, identifier" RUN_OF_TENANT,
    [DB_FORGET_COUNT] = "UPDATE tenant SET runs_kept = runs_kept - ?2,"
			" row_bytes = max(row_bytes - ?3, 0) WHERE id = ?1",

    [DB_EVICT_TENANT_OVER] =
	"SELECT id FROM tenant WHERE log_bytes + blob_bytes > ?1"
	" OR log_files + blob_files > ?2 LIMIT 1 OFFSET ?3",
    [DB_EVICT_QUOTA_OVER] =
	"SELECT tenant.id FROM tenant JOIN quota"
	" ON quota.tenant = tenant.id AND key = ?1 AND value > 0"
	" WHERE CASE key WHEN 'spool_mb' THEN log_bytes ELSE blob_bytes END"
	" > value * 1048576 LIMIT 1 OFFSET ?2",
    [DB_EVICT_TENANT_MOST] =
	"SELECT id FROM tenant WHERE log_files * ?1 + blob_files * ?2 > 0"
	" ORDER BY log_bytes * ?1 + blob_bytes * ?2 DESC LIMIT 1 OFFSET ?3",
    /* What was cut because the disk was full goes first. */
    [DB_EVICT_OLDEST] =
	"SELECT kept.run, run.uuid, log_files, log_bytes FROM kept"
	" JOIN run ON run.id = kept.run"
	" WHERE kept.tenant = ?1 AND evicted_ms = 0"
	" AND ((?2 AND log_files > 0) OR (?3 AND EXISTS"
	" (SELECT 1 FROM artifact WHERE artifact.run = kept.run)))"
	" ORDER BY is_cut DESC, kept.run LIMIT 1",
    [DB_EVICT_MARK] = "UPDATE kept SET evicted_ms = ?2 WHERE run = ?1",
    /* The newest of each stays. */
    [DB_EVICT_ROWS_MOST] = "SELECT id FROM tenant WHERE runs_kept > 1"
			   " ORDER BY row_bytes DESC LIMIT 1 OFFSET ?1",
    [DB_EVICT_USAGE] = "SELECT sum(log_files), sum(log_bytes),"
		       " sum(blob_files), sum(blob_bytes), sum(evicted),"
		       " sum(runs_kept), sum(row_bytes)"
		       " FROM tenant",

    [DB_SOURCE_RUN] = "SELECT " HISTORY_SOURCE " FROM run WHERE id = ?1",
    [DB_SOURCE_FIRST] = "SELECT substr(shell, 1, ?2), substr(argv, 1, ?2)"
			" FROM command WHERE run = ?1 AND idx = 0",
    [DB_SOURCE_COMMANDS] = "SELECT shell, argv FROM command WHERE run = ?1"
			   " ORDER BY idx",
    [DB_SOURCE_ARTIFACTS] = "SELECT path, sha256 FROM artifact"
			    " WHERE run = ?1 ORDER BY path LIMIT ?2",
    [DB_SOURCE_IDS] = "SELECT id FROM run WHERE id > ?1 ORDER BY id LIMIT ?2",
    [DB_SOURCE_KEPT] = "SELECT id, runs_kept FROM tenant"
		       " WHERE runs_kept <> 0 ORDER BY id",
    [DB_SOURCE_UUID] = "SELECT uuid FROM run WHERE id = ?1",
    [DB_SANDBOX_NAME] = "SELECT name FROM sandbox WHERE uuid = ?1"
			" AND tenant = ?2",

    [DB_INDEX_STATE] = "SELECT upto, is_dirty FROM state",
    [DB_INDEX_UPTO_PUT] = "UPDATE state SET upto = ?1",
    [DB_INDEX_DIRTY_PUT] = "UPDATE state SET is_dirty = ?1",
    [DB_INDEX_FIND] = "SELECT place, state FROM run WHERE id = ?1",
    [DB_INDEX_IS_TAKEN] = "SELECT 1 FROM run WHERE place = ?1",
    [DB_INDEX_INSERT] =
	"INSERT INTO run (" HISTORY_ROW ") VALUES (?1, ?2, ?3, ?4, ?5, ?6,"
	" ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,"
	" ?21, ?22, ?23, ?24, ?25, ?26)",
    [DB_INDEX_DELETE] = "DELETE FROM run WHERE place = ?1",
    [DB_INDEX_ARTIFACT_PUT] =
	"INSERT INTO artifact (place, path, tenant, name, sha256)"
	" VALUES (?1, ?2, ?3, ?4, ?5)",
    [DB_INDEX_ARTIFACTS_DROP] = "DELETE FROM artifact WHERE place = ?1",
    [DB_INDEX_TEXT_PUT] = "INSERT INTO text (place, body) VALUES (?1, ?2)",
    [DB_INDEX_TEXT_GET] = "SELECT body FROM text WHERE place = ?1",
    [DB_INDEX_TEXT_DROP] = "DELETE FROM text WHERE place = ?1",
    [DB_INDEX_CORPUS] = "SELECT coalesce(sum(bytes), 0),"
			" coalesce(max(first), 0) FROM corpus",
    [DB_INDEX_CORPUS_ADD] =
	"INSERT INTO corpus (tenant, bytes, first) VALUES (?1, max(?2, 0), 0)"
	" ON CONFLICT DO UPDATE SET bytes = max(bytes + ?2, 0)",
    [DB_INDEX_CORPUS_FIRST] = "SELECT first FROM corpus WHERE tenant = ?1",
    [DB_INDEX_CORPUS_MOST] = "SELECT tenant, first FROM corpus"
			     " WHERE bytes > 0 ORDER BY bytes DESC LIMIT 1",
    [DB_INDEX_CORPUS_OLDEST] =
	"SELECT r.place FROM run r INDEXED BY run_tenant"
	" CROSS JOIN text t ON t.place = r.place"
	" WHERE r.tenant = ?1 AND r.place >= ?2 ORDER BY r.place LIMIT ?3",
    [DB_INDEX_CORPUS_LEFT] = "UPDATE corpus SET first = ?2 WHERE tenant = ?1",
    [DB_INDEX_CORPUS_NONE] = "UPDATE corpus SET bytes = 0 WHERE tenant = ?1",
    [DB_INDEX_WORDS_PUT] = "INSERT INTO word (rowid, body) VALUES (?1, ?2)",
    [DB_INDEX_WORDS_DROP] =
	"INSERT INTO word (word, rowid, body) VALUES ('delete', ?1, ?2)",
    [DB_INDEX_WORDS_MERGE] =
	"INSERT INTO word (word, rank) VALUES ('merge', ?1)",
    [DB_INDEX_UNFINISHED] = "SELECT id FROM run INDEXED BY run_unfinished"
			    " WHERE state < 2 ORDER BY id",
    [DB_INDEX_GAP_PUT] = "INSERT OR IGNORE INTO gap (id) VALUES (?1)",
    [DB_INDEX_GAP_DROP] = "DELETE FROM gap WHERE id = ?1",
    [DB_INDEX_GAPS] = "SELECT id FROM gap ORDER BY id",
    [DB_INDEX_GAPS_TRIM] = "DELETE FROM gap WHERE id < ?1",
    [DB_INDEX_KEPT] = "SELECT tenant, count(*) FROM run INDEXED BY run_state"
		      " WHERE state >= 2 GROUP BY tenant ORDER BY tenant",
    [DB_INDEX_IDS] = "SELECT id FROM run INDEXED BY run_id WHERE id > ?1"
		     " AND id <= ?2 ORDER BY id",
    [DB_INDEX_NEWEST] = "SELECT id, uuid FROM run INDEXED BY run_id"
			" ORDER BY id DESC LIMIT 1",

    [DB_HISTORY_CORPUS_FIRST] =
	"SELECT first FROM corpus WHERE tenant = ?1 AND first > ?2"
	" AND EXISTS (SELECT 1 FROM run r INDEXED BY run_tenant"
	" WHERE r.tenant = ?1 AND r.place >= ?2 AND r.place <= ?3"
	" AND r.place < corpus.first)",
    [DB_HISTORY_LINE] = HISTORY_LINE("0") " FROM run r WHERE r.place = ?2"
					  " AND r.tenant = ?1",
    HISTORY_WAY_OF_RUN(WAY_TENANT, "run_tenant", ""),
    HISTORY_WAY_OF_RUN(
	WAY_IDENTIFIER, "run_identifier", " AND r.identifier = ?2"),
    HISTORY_WAY_OF_RUN(WAY_SANDBOX, "run_sandbox", " AND r.sandbox_name = ?2"),
    HISTORY_WAY_OF_RUN(WAY_PRINCIPAL, "run_principal", " AND r.principal = ?2"),
    HISTORY_WAY_OF_RUN(WAY_TOOL, "run_tool", " AND r.tool = ?2"),
    HISTORY_WAY_OF_RUN(WAY_LANGUAGE, "run_language", " AND r.language = ?2"),
    HISTORY_WAY_OF_RUN(WAY_STATE, "run_state", " AND r.state = ?2"),
    HISTORY_WAY_OF_RUN(WAY_REASON, "run_reason", " AND r.end_reason = ?2"),
    HISTORY_WAY_OF_RUN(WAY_EXIT, "run_exit", " AND r.exit_code = ?2"),
    HISTORY_WAY_OF_FILE(WAY_NAME, "artifact_name", " AND a.name = ?2"),
    HISTORY_WAY_OF_FILE(WAY_PATH, "artifact_path", " AND a.path = ?2"),
    HISTORY_WAY_OF_FILE(WAY_DIGEST, "artifact_digest", " AND a.sha256 = ?2"),
    HISTORY_WAY(WAY_TEXT, "0", HISTORY_TEXT, "word.rowid"),
    HISTORY_WAY_OF_RUN(
	WAY_LASTING, "run_tenant", " AND r.duration_ms BETWEEN ?2 AND ?21"),
    HISTORY_WAY(WAY_DURATION_IS, "r.duration_ms",
	HISTORY_RUN("run_duration") " AND r.duration_ms = ?2", "r.place"),
    HISTORY_WAY(WAY_BYTES_IS, "r.bytes",
	HISTORY_RUN("run_bytes") " AND r.bytes = ?2", "r.place"),
    HISTORY_WAY_SORTED(WAY_DURATION, "run_duration", "r.duration_ms"),
    HISTORY_WAY_SORTED(WAY_BYTES, "run_bytes", "r.bytes"),
    [DB_BACKUP_UNFINISHED] =
	"SELECT uuid FROM run WHERE state = '" RUN_STATE_RUNNING_WORD "'"
	" OR state = '" RUN_STATE_QUEUED_WORD "'",
    [DB_BACKUP_LOGS] =
	"SELECT run.id, uuid, spool_bytes, " UNFINISHED " FROM run"
	" LEFT JOIN kept ON kept.run = run.id"
	" WHERE run.id > ?1 AND log IS NULL"
	" AND coalesce(evicted_ms, 0) = 0 AND coalesce(lost_ms, 0) = 0"
	" ORDER BY run.id LIMIT 1",
    [DB_BACKUP_BLOBS] = "SELECT tenant, sha256, size FROM blob"
			" WHERE (tenant, sha256) > (?1, ?2) AND refs > 0"
			" AND lost_ms = 0"
			" ORDER BY tenant, sha256 LIMIT 1",
    [DB_BACKUP_NO_BLOB] =
	"UPDATE kept SET evicted_ms = ?3 WHERE evicted_ms = 0"
	" AND run IN (SELECT run FROM artifact WHERE tenant = ?1"
	" AND sha256 = ?2)",
    [DB_BACKUP_INTEGRITY] = "PRAGMA integrity_check(1)",
};
