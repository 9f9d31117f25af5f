-- The first schema.  See schema/README.md for the rules.
PRAGMA application_id = 1296257107; -- "MCPS"

-- The totals are kept by the writes themselves, so that they need no scan at
-- start and do not fall when old runs are forgotten.
CREATE TABLE tenant (
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,
	created_ms INTEGER NOT NULL,
	runs_kept INTEGER NOT NULL DEFAULT 0, -- ended ones, still in run
	events_kept INTEGER NOT NULL DEFAULT 0,
	runs_completed INTEGER NOT NULL DEFAULT 0,
	runs_failed INTEGER NOT NULL DEFAULT 0,
	runs_canceled INTEGER NOT NULL DEFAULT 0,
	commands_completed INTEGER NOT NULL DEFAULT 0,
	commands_failed INTEGER NOT NULL DEFAULT 0,
	commands_timed_out INTEGER NOT NULL DEFAULT 0
) STRICT;

INSERT INTO tenant (id, name, created_ms)
VALUES (1, 'default', CAST(strftime('%s', 'now') AS INTEGER) * 1000);

-- AUTOINCREMENT here and below: a number is never given out twice, not even
-- after the newest row is gone.
CREATE TABLE sandbox (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	uuid BLOB NOT NULL UNIQUE CHECK (length(uuid) = 16),
	tenant INTEGER NOT NULL REFERENCES tenant (id),
	identifier TEXT NOT NULL,
	generation INTEGER NOT NULL,
	name TEXT NOT NULL,
	container_id TEXT NOT NULL,
	image TEXT NOT NULL,
	state TEXT NOT NULL CHECK (state IN
	    ('creating', 'ready', 'removing', 'removed', 'lost')),
	origin TEXT NOT NULL,
	memory_bytes INTEGER NOT NULL,
	nano_cpus INTEGER NOT NULL,
	pids INTEGER NOT NULL,
	ttl_s INTEGER NOT NULL,
	created_ms INTEGER NOT NULL,
	expires_ms INTEGER NOT NULL,
	ended_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX sandbox_live ON sandbox (id)
WHERE state IN ('creating', 'ready', 'removing');

-- One that is being removed has given its identifier up already.
CREATE UNIQUE INDEX sandbox_identifier ON sandbox (tenant, identifier)
WHERE state IN ('creating', 'ready');

CREATE INDEX sandbox_dead ON sandbox (tenant, ended_ms)
WHERE state IN ('removed', 'lost');

CREATE TABLE run (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	uuid BLOB NOT NULL UNIQUE CHECK (length(uuid) = 16),
	tenant INTEGER NOT NULL REFERENCES tenant (id),
	sandbox INTEGER NOT NULL REFERENCES sandbox (id),
	identifier TEXT NOT NULL,
	sandbox_name TEXT NOT NULL,
	container_id TEXT NOT NULL,
	tool TEXT NOT NULL,
	state TEXT NOT NULL CHECK (state IN
	    ('queued', 'running', 'completed', 'failed', 'canceled')),
	end_reason TEXT NOT NULL,
	error TEXT NOT NULL,
	artifacts_error TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	started_ms INTEGER NOT NULL,
	ended_ms INTEGER NOT NULL,
	spool_bytes INTEGER NOT NULL,
	stdout_max INTEGER NOT NULL,
	stderr_max INTEGER NOT NULL,
	log BLOB -- last, so that a scan for the others need not pass it
) STRICT;

CREATE INDEX run_latest ON run (tenant, created_ms DESC, id DESC);
CREATE INDEX run_unfinished ON run (id) WHERE state IN ('queued', 'running');
CREATE INDEX run_sandbox ON run (sandbox);

-- What to run, environment values and all: only while unfinished.  A table
-- of its own because secure_delete wipes a deleted row, but not the copies
-- that a growing row leaves behind in a page when it is moved.
CREATE TABLE spec (
	run INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
	data BLOB NOT NULL
) STRICT;

CREATE TABLE command (
	run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
	idx INTEGER NOT NULL,
	shell TEXT NOT NULL,
	argv TEXT NOT NULL,
	cwd TEXT NOT NULL,
	env TEXT NOT NULL, -- names; the values are "***"
	status TEXT NOT NULL,
	end_reason TEXT NOT NULL,
	error TEXT NOT NULL,
	exit_code INTEGER NOT NULL,
	signal INTEGER NOT NULL,
	timeout_ms INTEGER NOT NULL,
	allow_failure INTEGER NOT NULL,
	started_ms INTEGER NOT NULL,
	ended_ms INTEGER NOT NULL,
	stdout_bytes INTEGER NOT NULL,
	stderr_bytes INTEGER NOT NULL,
	PRIMARY KEY (run, idx)
) STRICT, WITHOUT ROWID;

-- tenant and identifier again, for "the latest that left this path".
CREATE TABLE artifact (
	run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
	path TEXT NOT NULL,
	tenant INTEGER NOT NULL,
	identifier TEXT NOT NULL,
	size INTEGER NOT NULL,
	mode INTEGER NOT NULL,
	mtime_ns INTEGER NOT NULL,
	sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
	PRIMARY KEY (run, path)
) STRICT, WITHOUT ROWID;

CREATE INDEX artifact_latest ON artifact (tenant, identifier, path, run DESC);

-- refs: rows of artifact with this tenant and digest.
CREATE TABLE blob (
	tenant INTEGER NOT NULL REFERENCES tenant (id),
	sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
	size INTEGER NOT NULL,
	refs INTEGER NOT NULL CHECK (refs >= 0),
	PRIMARY KEY (tenant, sha256)
) STRICT, WITHOUT ROWID;

CREATE INDEX blob_unused ON blob (tenant) WHERE refs = 0;

CREATE TABLE event (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	tenant INTEGER NOT NULL REFERENCES tenant (id),
	at_ms INTEGER NOT NULL,
	kind TEXT NOT NULL,
	subject TEXT NOT NULL,
	data TEXT NOT NULL
) STRICT;

CREATE INDEX event_tenant ON event (tenant, id);
