-- What ended runs have in files, so that it can be counted, bounded, and given
-- up: a row per run with a log in a file or with artifacts.  The totals are
-- kept by triggers, whoever writes.
ALTER TABLE tenant ADD COLUMN log_files INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN log_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN blob_files INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN blob_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN evicted INTEGER NOT NULL DEFAULT 0; -- runs

CREATE TABLE kept (
	run INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
	tenant INTEGER NOT NULL,
	log_files INTEGER NOT NULL, -- 0 or 1
	log_bytes INTEGER NOT NULL,
	is_cut INTEGER NOT NULL, -- it ended because the disk was full
	evicted_ms INTEGER NOT NULL -- 0: its files are there
) STRICT;

CREATE INDEX kept_here ON kept (tenant, is_cut DESC, run)
WHERE evicted_ms = 0;

CREATE TRIGGER kept_comes AFTER INSERT ON kept BEGIN
	UPDATE tenant SET log_files = log_files + NEW.log_files,
	    log_bytes = log_bytes + NEW.log_bytes WHERE id = NEW.tenant;
END;

CREATE TRIGGER kept_is_evicted AFTER UPDATE OF evicted_ms ON kept
WHEN OLD.evicted_ms = 0 AND NEW.evicted_ms <> 0 BEGIN
	UPDATE tenant SET log_files = log_files - OLD.log_files,
	    log_bytes = log_bytes - OLD.log_bytes,
	    evicted = evicted + 1 WHERE id = OLD.tenant;
END;

CREATE TRIGGER kept_goes AFTER DELETE ON kept
WHEN OLD.evicted_ms = 0 BEGIN
	UPDATE tenant SET log_files = log_files - OLD.log_files,
	    log_bytes = log_bytes - OLD.log_bytes WHERE id = OLD.tenant;
END;

CREATE TRIGGER blob_comes AFTER INSERT ON blob BEGIN
	UPDATE tenant SET blob_files = blob_files + 1,
	    blob_bytes = blob_bytes + NEW.size WHERE id = NEW.tenant;
END;

CREATE TRIGGER blob_goes AFTER DELETE ON blob BEGIN
	UPDATE tenant SET blob_files = blob_files - 1,
	    blob_bytes = blob_bytes - OLD.size WHERE id = OLD.tenant;
END;

INSERT INTO kept (run, tenant, log_files, log_bytes, is_cut, evicted_ms)
SELECT id, tenant, log IS NULL AND spool_bytes > 16384,
    CASE WHEN log IS NULL AND spool_bytes > 16384 THEN spool_bytes ELSE 0 END,
    0, 0
FROM run
WHERE state NOT IN ('queued', 'running')
    AND (log IS NULL AND spool_bytes > 16384
	OR EXISTS (SELECT 1 FROM artifact WHERE artifact.run = run.id));

UPDATE tenant SET
    blob_files = (SELECT count(*) FROM blob WHERE blob.tenant = tenant.id),
    blob_bytes = (SELECT coalesce(sum(size), 0) FROM blob
	WHERE blob.tenant = tenant.id);
