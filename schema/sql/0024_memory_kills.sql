-- How many processes the sandbox's memory limit killed while a command ran
-- (docs/decisions/0090): a command may go on, and end well, without them.
ALTER TABLE command ADD COLUMN memory_kills INTEGER NOT NULL DEFAULT 0;

DROP VIEW v_command;
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
    c.memory_kills,
    c.left_running,
    c.run AS number
FROM command c JOIN run r ON r.id = c.run;
