-- What a tenant used, a row per day of UTC (days since 1970).  A run counts in
-- the transaction of its end, its time in the days in which it went by.
CREATE TABLE usage (
	tenant INTEGER NOT NULL REFERENCES tenant (id),
	day INTEGER NOT NULL,
	runs INTEGER NOT NULL, -- that ended
	run_ms INTEGER NOT NULL,
	output_bytes INTEGER NOT NULL,
	artifact_bytes INTEGER NOT NULL,
	sandboxes INTEGER NOT NULL, -- that were begun
	refusals INTEGER NOT NULL, -- for a quota
	PRIMARY KEY (tenant, day)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER sandbox_comes AFTER INSERT ON sandbox BEGIN
	INSERT INTO usage (tenant, day, runs, run_ms, output_bytes,
	    artifact_bytes, sandboxes, refusals)
	VALUES (NEW.tenant, NEW.created_ms / 86400000, 0, 0, 0, 0, 1, 0)
	ON CONFLICT DO UPDATE SET sandboxes = sandboxes + 1;
END;
