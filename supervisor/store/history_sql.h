/*
 * history_sql.h - the index of runs (history_index.h): its tables, and pieces
 * of its statements for sql.c
 *
 * The place of a run is its row's number: created_ms << 20, and below that 20
 * bits of its number, so every index is in the order of creation by itself.
 * duration_ms, bytes and exit_code are NULL before the end.
 */
#ifndef STORE_HISTORY_SQL_H
#define STORE_HISTORY_SQL_H

#define HISTORY_VERSION 4 /* raise it when anything here changes */

#define HISTORY_PLACE_BITS 20
#define HISTORY_CREATED_MAX (((int64_t)1 << (63 - HISTORY_PLACE_BITS)) - 1)

#define HISTORY_SCHEMA                                                                                                               \
	"CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1),"                                                               \
	" upto INTEGER NOT NULL, is_dirty INTEGER NOT NULL) STRICT;"                                                                 \
	"INSERT INTO state VALUES (1, 0, 0);"                                                                                        \
	"CREATE TABLE gap (id INTEGER PRIMARY KEY) STRICT;"                                                                          \
	"CREATE TABLE run (place INTEGER PRIMARY KEY, id INTEGER NOT NULL,"                                                          \
	" tenant INTEGER NOT NULL, uuid BLOB NOT NULL,"                                                                              \
	" identifier TEXT NOT NULL, sandbox_name TEXT NOT NULL,"                                                                     \
	" principal TEXT NOT NULL, client TEXT NOT NULL, tool TEXT NOT NULL,"                                                        \
	" language TEXT NOT NULL, state INTEGER NOT NULL,"                                                                           \
	" end_reason INTEGER NOT NULL, exit_code INTEGER, error TEXT NOT "                                                           \
	"NULL,"                                                                                                                      \
	" created_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL,"                                                                 \
	" ended_ms INTEGER NOT NULL, duration_ms INTEGER, bytes INTEGER,"                                                            \
	" stdout_bytes INTEGER NOT NULL, stderr_bytes INTEGER NOT NULL,"                                                             \
	" artifacts INTEGER NOT NULL, artifact_bytes INTEGER NOT NULL,"                                                              \
	" cpu_us INTEGER NOT NULL, memory_peak_bytes INTEGER NOT NULL,"                                                              \
	" command TEXT NOT NULL) STRICT;"                                                                                            \
	"CREATE UNIQUE INDEX run_id ON run (id);"                                                                                    \
	"CREATE INDEX run_unfinished ON run (id) WHERE state < 2;"                                                                   \
	"CREATE INDEX run_tenant ON run (tenant, place, duration_ms);"                                                               \
	"CREATE INDEX run_identifier ON run (tenant, identifier);"                                                                   \
	"CREATE INDEX run_sandbox ON run (tenant, sandbox_name);"                                                                    \
	"CREATE INDEX run_principal ON run (tenant, principal);"                                                                     \
	"CREATE INDEX run_tool ON run (tenant, tool);"                                                                               \
	"CREATE INDEX run_language ON run (tenant, language);"                                                                       \
	"CREATE INDEX run_state ON run (tenant, state);"                                                                             \
	"CREATE INDEX run_reason ON run (tenant, end_reason);"                                                                       \
	"CREATE INDEX run_exit ON run (tenant, exit_code);"                                                                          \
	"CREATE INDEX run_duration ON run (tenant, duration_ms);"                                                                    \
	"CREATE INDEX run_bytes ON run (tenant, bytes);"                                                                             \
	"CREATE TABLE artifact (place INTEGER NOT NULL, path TEXT NOT NULL,"                                                         \
	" tenant INTEGER NOT NULL, name TEXT NOT NULL, sha256 BLOB NOT NULL,"                                                        \
	" PRIMARY KEY (place, path)) STRICT, WITHOUT ROWID;"                                                                         \
	"CREATE INDEX artifact_path ON artifact (tenant, path, place);"                                                              \
	"CREATE INDEX artifact_name ON artifact (tenant, name, place);"                                                              \
	"CREATE INDEX artifact_digest ON artifact (tenant, sha256, place);" /* FTS5 takes a text away only from who still has it. */ \
	"CREATE TABLE text (place INTEGER PRIMARY KEY,"                                                                              \
	" body TEXT NOT NULL) STRICT;"                                                                                               \
	"CREATE TABLE corpus (tenant INTEGER PRIMARY KEY,"                                                                           \
	" bytes INTEGER NOT NULL, first INTEGER NOT NULL) STRICT;"                                                                   \
	"CREATE VIRTUAL TABLE word USING fts5 (body, content = '',"                                                                  \
	" columnsize = 0, tokenize = 'tenant');"

/* As history_take.c puts them. */
#define HISTORY_ROW                                                            \
	"place, id, tenant, uuid, identifier, sandbox_name, principal, "       \
	"client,"                                                              \
	" tool, language, state, end_reason, exit_code, error, created_ms,"    \
	" started_ms, ended_ms, duration_ms, bytes, stdout_bytes,"             \
	" stderr_bytes, artifacts, artifact_bytes, cpu_us, memory_peak_bytes," \
	" command"

/* What the database says of a run, as history_take.c gets it. */
#define HISTORY_SOURCE                                                         \
	"tenant, uuid, identifier, sandbox_name, principal, client, tool,"     \
	" language, state, end_reason, exit_code, error, created_ms,"          \
	" started_ms, ended_ms, stdout_bytes, stderr_bytes, artifacts,"        \
	" artifact_bytes, cpu_us, memory_peak_bytes, spool_bytes, log"

/* As history_list.c gets them: whether it passes the filters, its place, what
 * it is sorted by, and the line. */
#define HISTORY_PASSES                                                         \
	"CASE WHEN r.place BETWEEN ?19 AND ?20"                                \
	" AND (?5 IS NULL OR r.identifier = ?5)"                               \
	" AND (?6 IS NULL OR r.sandbox_name = ?6)"                             \
	" AND (?7 IS NULL OR r.principal = ?7)"                                \
	" AND (?8 IS NULL OR r.tool = ?8)"                                     \
	" AND (?9 IS NULL OR r.language = ?9)"                                 \
	" AND (?10 IS NULL OR (?10 >> r.state) & 1)"                           \
	" AND (?11 IS NULL OR r.end_reason = ?11)"                             \
	" AND (?12 IS NULL OR r.exit_code = ?12)"                              \
	" AND (?13 IS NULL OR r.duration_ms >= ?13)"                           \
	" AND (?14 IS NULL OR r.duration_ms <= ?14)"                           \
	" AND (?15 IS NULL OR EXISTS (SELECT 1 FROM artifact x"                \
	" WHERE x.tenant = ?1 AND x.name = ?15 AND x.place = r.place))"        \
	" AND (?16 IS NULL OR EXISTS (SELECT 1 FROM artifact x"                \
	" WHERE x.tenant = ?1 AND x.path = ?16 AND x.place = r.place))"        \
	" AND (?17 IS NULL OR EXISTS (SELECT 1 FROM artifact x"                \
	" WHERE x.tenant = ?1 AND x.sha256 = ?17 AND x.place = r.place))"      \
	" AND (?18 IS NULL OR EXISTS (SELECT 1 FROM word"                      \
	" WHERE word MATCH ?18 AND word.rowid = r.place))"                     \
	" THEN 1 ELSE 0 END"

#define HISTORY_LINE(value)                                                    \
	"SELECT " HISTORY_PASSES ", r.place, " value ", r.uuid,"               \
	" r.identifier, r.sandbox_name, r.principal, r.client, r.tool,"        \
	" r.language, r.state, r.end_reason, coalesce(r.exit_code, -1),"       \
	" r.error, r.created_ms, r.started_ms, r.ended_ms,"                    \
	" coalesce(r.duration_ms, -1), r.stdout_bytes, r.stderr_bytes,"        \
	" r.artifacts, r.artifact_bytes, r.cpu_us, r.memory_peak_bytes,"       \
	" r.command"

/* Where the runs of a way come from, and where they are on it. */
#define HISTORY_RUN(index)                                                     \
	" FROM run r INDEXED BY " index " WHERE r.tenant = ?1"
#define HISTORY_FILE(index)                                                    \
	" FROM artifact a INDEXED BY " index                                   \
	" CROSS JOIN run r ON r.place = a.place WHERE a.tenant = ?1"
#define HISTORY_TEXT                                                           \
	" FROM word CROSS JOIN run r ON r.place = word.rowid"                  \
	" WHERE r.tenant = ?1 AND word MATCH ?2"
#define HISTORY_SPAN(place) " AND " place " <= ?3 AND " place " >= ?4"

/* What history_stats.c adds up, of ended runs. */
#define HISTORY_SUMMED                                                         \
	"SELECT " HISTORY_PASSES " AND r.duration_ms IS NOT NULL, r.place,"    \
	" r.created_ms, r.identifier, r.end_reason, r.tool, r.principal,"      \
	" r.state, r.duration_ms, r.cpu_us, r.stdout_bytes + r.stderr_bytes,"  \
	" r.artifact_bytes"

/* Both directions of each way, and how many there are on it, as far as it is
 * worth counting. */
#define HISTORY_WAY(way, value, from, place)                                   \
	[DB_HISTORY_DOWN +                                                     \
	    (way)] =                                                           \
	    HISTORY_LINE(value) from HISTORY_SPAN(place) " ORDER BY " place    \
							 " DESC",              \
	    [DB_HISTORY_UP + (way)] = HISTORY_LINE(value) from HISTORY_SPAN(   \
		place) " ORDER BY " place,                                     \
	    [DB_HISTORY_STATS + (way)] = HISTORY_SUMMED from HISTORY_SPAN(     \
		place) " ORDER BY " place " DESC",                             \
	    [DB_HISTORY_COUNT + (way)] =                                       \
		"SELECT count(*) FROM (SELECT DISTINCT " place from            \
		HISTORY_SPAN(place) " LIMIT ?5)",                              \
	    [DB_HISTORY_KEYS + (way)] =                                        \
		"SELECT r.place, r.duration_ms, r.bytes" from HISTORY_SPAN(    \
		    place) " AND r.duration_ms >= 0 LIMIT ?5"

// NOLINTBEGIN(bugprone-macro-parentheses): pieces of texts
#define HISTORY_WAY_OF_RUN(way, index, is)                                     \
	HISTORY_WAY(way, "0", HISTORY_RUN(index) is, "r.place")
#define HISTORY_WAY_OF_FILE(way, index, is)                                    \
	HISTORY_WAY(way, "0", HISTORY_FILE(index) is, "a.place")

/* By a value, then by place; ?3 and ?4: where it begins and ends.  A value is
 * the text of a column. */
#define HISTORY_WAY_SORTED(way, index, value)                                  \
	[DB_HISTORY_DOWN +                                                     \
	    (way)] = HISTORY_LINE(value)                                       \
	    HISTORY_RUN(index) " AND " value " < ?3 AND " value " >= ?4"       \
			       " ORDER BY " value " DESC, r.place DESC",       \
	    [DB_HISTORY_UP + (way)] = HISTORY_LINE(value)                      \
		HISTORY_RUN(index) " AND " value " > ?3 AND " value " <= ?4"   \
				   " ORDER BY " value ", r.place",             \
	    [DB_HISTORY_STATS + (way)] = HISTORY_SUMMED HISTORY_RUN(           \
		index) " AND " value " > ?3 AND " value " <= ?4",              \
	    [DB_HISTORY_COUNT + (way)] =                                       \
		"SELECT count(*) FROM (SELECT 1" HISTORY_RUN(                  \
		    index) " AND " value " >= ?2 AND " value                   \
			   " <= ?6" HISTORY_SPAN("r.place") " LIMIT ?5)",      \
	    [DB_HISTORY_KEYS + (way)] =                                        \
		"SELECT r.place, " value ", " value HISTORY_RUN(               \
		    index) " AND " value " >= ?2 AND " value                   \
			   " <= ?6" HISTORY_SPAN("r.place") " LIMIT ?5"
// NOLINTEND(bugprone-macro-parentheses)

#endif
