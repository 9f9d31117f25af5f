-- What the rows of ended runs take, so that it can be bounded for one tenant
-- (docs/decisions/0066).  NULL: the run ended before there was this column; it is
-- counted when it goes, as it is counted here.
ALTER TABLE run ADD COLUMN row_bytes INTEGER;
ALTER TABLE tenant ADD COLUMN row_bytes INTEGER NOT NULL DEFAULT 0;

-- The texts and blobs of a run, its commands and artifacts, as often as tables
-- and indexes have them, and for the rest of a row what it takes at a mean.
CREATE VIEW run_size AS
SELECT
    r.id AS run,
    300 + 2 * length(CAST(r.identifier AS BLOB))
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

UPDATE tenant SET row_bytes = coalesce((SELECT sum(bytes)
    FROM run JOIN run_size ON run_size.run = run.id
    WHERE run.tenant = tenant.id
	AND run.state <> 'queued' AND run.state <> 'running'), 0);
