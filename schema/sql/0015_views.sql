-- Views for people with the sqlite3 command (docs/sqlite.md): ids as text, times
-- in UTC, NULL for what is not there.  The program reads none of them.  A
-- migration that makes a table anew drops the views of it first, and creates
-- them again.

-- Tenants; one that is gone has left its counters.
CREATE VIEW v_tenant AS
SELECT
    id,
    name,
    CASE WHEN created_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	created_ms / 1000.0, 'unixepoch') END AS created,
    CASE WHEN disabled_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	disabled_ms / 1000.0, 'unixepoch') END AS disabled,
    CASE WHEN deleted_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	deleted_ms / 1000.0, 'unixepoch') END AS deleted,
    CASE WHEN gone_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	gone_ms / 1000.0, 'unixepoch') END AS gone,
    runs_kept,
    runs_completed,
    runs_failed,
    runs_canceled,
    log_files,
    log_bytes,
    blob_files,
    blob_bytes
FROM tenant;

-- Sandboxes that are there, and those that ended and still have runs.
CREATE VIEW v_sandbox AS
SELECT
    lower(substr(hex(s.uuid), 1, 8) || '-' || substr(hex(s.uuid), 9, 4)
	|| '-' || substr(hex(s.uuid), 13, 4) || '-'
	|| substr(hex(s.uuid), 17, 4) || '-' || substr(hex(s.uuid), 21)) AS id,
    t.name AS tenant,
    s.identifier,
    s.generation,
    s.name,
    s.container_id,
    s.image,
    s.state,
    s.origin,
    s.memory_bytes,
    s.nano_cpus / 1e9 AS cpus,
    s.pids,
    s.ttl_s,
    CASE WHEN s.created_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	s.created_ms / 1000.0, 'unixepoch') END AS created,
    CASE WHEN s.expires_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	s.expires_ms / 1000.0, 'unixepoch') END AS expires,
    CASE WHEN s.ended_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	s.ended_ms / 1000.0, 'unixepoch') END AS ended,
    s.tenant AS tenant_id,
    s.uuid,
    s.created_ms,
    s.ended_ms
FROM sandbox s JOIN tenant t ON t.id = s.tenant;

-- Runs.  tenant_id, uuid and created_ms are what indices are of.
CREATE VIEW v_run AS
SELECT
    lower(substr(hex(r.uuid), 1, 8) || '-' || substr(hex(r.uuid), 9, 4)
	|| '-' || substr(hex(r.uuid), 13, 4) || '-'
	|| substr(hex(r.uuid), 17, 4) || '-' || substr(hex(r.uuid), 21)) AS id,
    t.name AS tenant,
    r.identifier,
    r.tool,
    nullif(r.language, '') AS language,
    r.state,
    nullif(r.end_reason, '') AS end_reason,
    CASE WHEN r.exit_code >= 0 THEN r.exit_code END AS exit_code,
    nullif(r.error, '') AS error,
    CASE WHEN r.created_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	r.created_ms / 1000.0, 'unixepoch') END AS created,
    CASE WHEN r.sent_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	r.sent_ms / 1000.0, 'unixepoch') END AS sent,
    CASE WHEN r.started_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	r.started_ms / 1000.0, 'unixepoch') END AS started,
    CASE WHEN r.ended_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	r.ended_ms / 1000.0, 'unixepoch') END AS ended,
    CASE WHEN r.sent_ms > 0 THEN r.sent_ms - r.created_ms END AS queue_ms,
    CASE WHEN r.started_ms > 0 AND r.ended_ms > 0
	THEN r.ended_ms - r.started_ms END AS run_ms,
    r.stdout_bytes,
    r.stderr_bytes,
    r.artifacts,
    r.artifact_bytes,
    r.cpu_us,
    r.memory_peak_bytes,
    nullif(r.principal, '') AS principal,
    nullif(r.client, '') AS client,
    nullif(r.address, '') AS address,
    nullif(r.session, '') AS session,
    nullif(r.request_id, '') AS request_id,
    nullif(r.trace, '') AS trace,
    nullif(r.span, '') AS span,
    nullif(r.parent_span, '') AS parent_span,
    CASE WHEN r.rerun_of IS NOT NULL THEN
	lower(substr(hex(r.rerun_of), 1, 8) || '-' || substr(hex(r.rerun_of), 9, 4)
	|| '-' || substr(hex(r.rerun_of), 13, 4) || '-'
	|| substr(hex(r.rerun_of), 17, 4) || '-' || substr(hex(r.rerun_of), 21)) END AS rerun_of,
    lower(substr(hex(s.uuid), 1, 8) || '-' || substr(hex(s.uuid), 9, 4)
	|| '-' || substr(hex(s.uuid), 13, 4) || '-'
	|| substr(hex(s.uuid), 17, 4) || '-' || substr(hex(s.uuid), 21)) AS sandbox_id,
    r.sandbox_name,
    r.container_id,
    r.id AS number,
    r.tenant AS tenant_id,
    r.uuid,
    r.created_ms,
    r.ended_ms
FROM run r JOIN tenant t ON t.id = r.tenant JOIN sandbox s ON s.id = r.sandbox;

-- What runs were asked to do, and how that went.
CREATE VIEW v_command AS
SELECT
    lower(substr(hex(r.uuid), 1, 8) || '-' || substr(hex(r.uuid), 9, 4)
	|| '-' || substr(hex(r.uuid), 13, 4) || '-'
	|| substr(hex(r.uuid), 17, 4) || '-' || substr(hex(r.uuid), 21)) AS run,
    c.idx AS idx,
    c.status,
    nullif(c.end_reason, '') AS end_reason,
    CASE WHEN c.exit_code >= 0 THEN c.exit_code END AS exit_code,
    nullif(c.signal, 0) AS signal,
    CASE WHEN c.shell <> '' THEN c.shell ELSE c.argv END AS command,
    c.cwd,
    c.env,
    nullif(c.error, '') AS error,
    c.timeout_ms,
    CASE WHEN c.started_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	c.started_ms / 1000.0, 'unixepoch') END AS started,
    CASE WHEN c.ended_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	c.ended_ms / 1000.0, 'unixepoch') END AS ended,
    c.stdout_bytes,
    c.stderr_bytes,
    c.cpu_us,
    c.memory_peak_bytes,
    c.left_running,
    c.run AS number
FROM command c JOIN run r ON r.id = c.run;

-- Files that runs left; evicted: since when they cannot be had any more.
CREATE VIEW v_artifact AS
SELECT
    lower(substr(hex(r.uuid), 1, 8) || '-' || substr(hex(r.uuid), 9, 4)
	|| '-' || substr(hex(r.uuid), 13, 4) || '-'
	|| substr(hex(r.uuid), 17, 4) || '-' || substr(hex(r.uuid), 21)) AS run,
    t.name AS tenant,
    a.identifier,
    a.path,
    a.size,
    printf('%04o', a.mode) AS mode,
    strftime('%Y-%m-%dT%H:%M:%fZ',
	a.mtime_ns / 1000000 / 1000.0, 'unixepoch') AS modified,
    lower(hex(a.sha256)) AS sha256,
    CASE WHEN k.evicted_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	k.evicted_ms / 1000.0, 'unixepoch') END AS evicted,
    a.run AS number
FROM artifact a JOIN run r ON r.id = a.run JOIN tenant t ON t.id = a.tenant
    LEFT JOIN kept k ON k.run = a.run;

-- What happened, oldest first by id.
CREATE VIEW v_event AS
SELECT
    e.id,
    t.name AS tenant,
    CASE WHEN e.at_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	e.at_ms / 1000.0, 'unixepoch') END AS at,
    e.kind,
    e.subject,
    e.data,
    e.tenant AS tenant_id,
    e.at_ms
FROM event e LEFT JOIN tenant t ON t.id = e.tenant;

-- Tokens, without what would let somebody in.
CREATE VIEW v_token AS
SELECT
    k.id,
    t.name AS tenant,
    k.role,
    k.name,
    CASE WHEN k.created_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	k.created_ms / 1000.0, 'unixepoch') END AS created,
    CASE WHEN k.expires_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	k.expires_ms / 1000.0, 'unixepoch') END AS expires,
    CASE WHEN k.used_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	k.used_ms / 1000.0, 'unixepoch') END AS used,
    CASE WHEN k.revoked_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	k.revoked_ms / 1000.0, 'unixepoch') END AS revoked
FROM token k LEFT JOIN tenant t ON t.id = k.tenant;

-- What is set for one tenant other than for all.
CREATE VIEW v_quota AS
SELECT
    t.name AS tenant,
    q.key,
    q.value
FROM quota q JOIN tenant t ON t.id = q.tenant;

-- What tenants used, by days of UTC.
CREATE VIEW v_usage AS
SELECT
    t.name AS tenant,
    date(u.day * 86400, 'unixepoch') AS day,
    u.runs,
    u.run_ms,
    u.output_bytes,
    u.artifact_bytes,
    u.sandboxes,
    u.refusals
FROM usage u JOIN tenant t ON t.id = u.tenant;

-- The audit; whether its chain is whole says "sandboxctl audit verify".
CREATE VIEW v_audit AS
SELECT
    seq,
    CASE WHEN at_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	at_ms / 1000.0, 'unixepoch') END AS at,
    times,
    what,
    actor_tenant,
    actor,
    origin,
    request_id,
    tenant,
    subject,
    detail,
    nullif(lower(hex(digest)), '') AS digest,
    lower(hex(hash)) AS hash
FROM audit;
