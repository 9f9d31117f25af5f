-- What is recorded of a run (docs/decisions/0054): who asked for it, by what
-- and from where, where it stands in a trace, and what it came to.  The table
-- is made anew, so that what is small stands before log, which is large.
ALTER TABLE command ADD COLUMN cpu_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE command ADD COLUMN memory_peak_bytes INTEGER NOT NULL DEFAULT 0;

CREATE TABLE run_anew (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	uuid BLOB NOT NULL UNIQUE CHECK (length(uuid) = 16),
	tenant INTEGER NOT NULL REFERENCES tenant (id),
	sandbox INTEGER NOT NULL REFERENCES sandbox (id),
	identifier TEXT NOT NULL,
	sandbox_name TEXT NOT NULL,
	container_id TEXT NOT NULL,
	tool TEXT NOT NULL,
	language TEXT NOT NULL,
	state TEXT NOT NULL CHECK (state = 'completed' OR state = 'queued'
	    OR state = 'running' OR state = 'failed' OR state = 'canceled'),
	end_reason TEXT NOT NULL,
	error TEXT NOT NULL,
	artifacts_error TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	sent_ms INTEGER NOT NULL,
	started_ms INTEGER NOT NULL,
	ended_ms INTEGER NOT NULL,
	exit_code INTEGER NOT NULL,
	stdout_bytes INTEGER NOT NULL,
	stderr_bytes INTEGER NOT NULL,
	artifacts INTEGER NOT NULL,
	artifact_bytes INTEGER NOT NULL,
	cpu_us INTEGER NOT NULL,
	memory_peak_bytes INTEGER NOT NULL,
	spool_bytes INTEGER NOT NULL,
	stdout_max INTEGER NOT NULL,
	stderr_max INTEGER NOT NULL,
	rerun_of BLOB CHECK (rerun_of IS NULL OR length(rerun_of) = 16),
	principal TEXT NOT NULL,
	client TEXT NOT NULL,
	address TEXT NOT NULL,
	session TEXT NOT NULL,
	request_id TEXT NOT NULL,
	trace TEXT NOT NULL,
	span TEXT NOT NULL,
	parent_span TEXT NOT NULL,
	digest BLOB,
	log BLOB -- last, so that a scan for the others need not pass it
) STRICT;

-- Of the numbers that were given out, not only of those that are left.
INSERT INTO sqlite_sequence (name, seq)
SELECT 'run_anew', seq FROM sqlite_sequence WHERE name = 'run';

-- What can be said of runs that are there: sums over their commands and files.
INSERT INTO run_anew
SELECT id, uuid, tenant, sandbox, identifier, sandbox_name, container_id, tool,
    '', state, end_reason, error, artifacts_error, created_ms,
    started_ms, started_ms, ended_ms,
    coalesce((SELECT exit_code FROM command
	WHERE command.run = run.id AND command.end_reason <> ''
	ORDER BY idx DESC LIMIT 1), -1),
    coalesce((SELECT sum(stdout_bytes) FROM command
	WHERE command.run = run.id), 0),
    coalesce((SELECT sum(stderr_bytes) FROM command
	WHERE command.run = run.id), 0),
    CASE WHEN state = 'queued' OR state = 'running' THEN 0 ELSE
	(SELECT count(*) FROM artifact WHERE artifact.run = run.id) END,
    CASE WHEN state = 'queued' OR state = 'running' THEN 0 ELSE
	(SELECT coalesce(sum(size), 0) FROM artifact
	WHERE artifact.run = run.id) END,
    0, 0, spool_bytes, stdout_max, stderr_max, NULL,
    '', '', '', '', '', '', '', '', digest, log
FROM run ORDER BY id;

DROP TABLE run;
ALTER TABLE run_anew RENAME TO run;

CREATE INDEX run_latest ON run (tenant, created_ms DESC, id DESC);
CREATE INDEX run_unfinished ON run (id) WHERE state IN ('queued', 'running');
CREATE INDEX run_sandbox ON run (sandbox);
CREATE INDEX run_identifier
ON run (tenant, identifier, created_ms DESC, id DESC);
CREATE UNIQUE INDEX run_of_tenant ON run (tenant, uuid);
