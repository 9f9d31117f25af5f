-- A run is written with three indices beside its row, not with five
-- (docs/decisions/0070).

-- Who asks by identifier asks the index of runs.
DROP INDEX run_identifier;

-- Its id comes first: so whose it is need not be known, as for a log's file,
-- and what is new stands at the end, whoever's it is.
DROP INDEX run_of_tenant;
CREATE UNIQUE INDEX run_of_tenant ON run (uuid, tenant);

-- The one that came with the table can go only when it has a name.  Numbers
-- are given out by the program, which a row of sqlite_sequence for each run
-- cost a page.  Both are in texts alone, so the texts alone are changed, as by
-- 0003.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(replace(sql,
	'PRIMARY KEY AUTOINCREMENT', 'PRIMARY KEY'),
	'NOT NULL UNIQUE CHECK', 'NOT NULL CHECK')
WHERE type = 'table' AND name = 'run';
UPDATE sqlite_schema SET name = 'run_uuid',
    sql = 'CREATE UNIQUE INDEX run_uuid ON run (uuid)'
WHERE type = 'index' AND name = 'sqlite_autoindex_run_1';
-- So that every connection reads the texts again.
CREATE TABLE unused (x INTEGER) STRICT;
DROP TABLE unused;
PRAGMA writable_schema = RESET;
DROP INDEX run_uuid;

-- A number is never given out twice, not even after the newest row is gone.
CREATE TRIGGER run_number AFTER DELETE ON run
WHEN OLD.id > coalesce((SELECT max(id) FROM run), 0) BEGIN
	UPDATE sqlite_sequence SET seq = max(seq, OLD.id) WHERE name = 'run';
END;
INSERT INTO sqlite_sequence (name, seq)
SELECT 'run', 0 WHERE NOT EXISTS
    (SELECT 1 FROM sqlite_sequence WHERE name = 'run');

-- So a row takes less.  Those that were counted before there was a number in
-- them are counted as they will be when they go.
DROP VIEW run_size;
CREATE VIEW run_size AS
SELECT
    r.id AS run,
    200 + length(CAST(r.identifier AS BLOB))
	+ length(CAST(r.sandbox_name AS BLOB))
	+ length(CAST(r.container_id AS BLOB))
	+ length(CAST(r.error AS BLOB))
	+ length(CAST(r.artifacts_error AS BLOB))
	+ length(CAST(r.principal AS BLOB))
	+ length(CAST(r.client AS BLOB))
	+ length(CAST(r.address AS BLOB))
	+ length(CAST(r.session AS BLOB))
	+ length(CAST(r.request_id AS BLOB))
	+ length(CAST(r.trace AS BLOB))
	+ coalesce(length(r.digest), 0)
	+ coalesce(length(r.log), 0)
	+ (SELECT coalesce(sum(70
	    + length(CAST(c.shell AS BLOB))
	    + length(CAST(c.argv AS BLOB))
	    + length(CAST(c.cwd AS BLOB))
	    + length(CAST(c.env AS BLOB))
	    + length(CAST(c.error AS BLOB))), 0)
	    FROM command c WHERE c.run = r.id)
	+ (SELECT coalesce(sum(100 + 2 * length(CAST(r.identifier AS BLOB))
	    + 2 * length(CAST(a.path AS BLOB))), 0)
	    FROM artifact a WHERE a.run = r.id) AS bytes
FROM run r;

UPDATE tenant SET row_bytes = max(0, row_bytes - coalesce((SELECT
    sum(100 + length(CAST(identifier AS BLOB))) FROM run
    WHERE run.tenant = tenant.id AND run.row_bytes IS NULL
	AND run.state <> 'queued' AND run.state <> 'running'), 0));
