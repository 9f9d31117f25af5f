-- What the end of each run adds to stands in one row, its tenant's: a commit
-- writes one page for it, not three (docs/decisions/0077).

-- Of the day (of UTC, since 1970) of the tenant's newest ends, what is not yet
-- in usage; when a run ends on another day it is added there.
ALTER TABLE tenant ADD COLUMN day INTEGER NOT NULL DEFAULT -1; -- -1: none
ALTER TABLE tenant ADD COLUMN day_runs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN day_run_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN day_output_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN day_artifact_bytes INTEGER NOT NULL DEFAULT 0;

-- Of both; a day may have two rows.
CREATE VIEW usage_parts AS
SELECT tenant, day, runs, run_ms, output_bytes, artifact_bytes, sandboxes,
    refusals
FROM usage
UNION ALL
SELECT id, day, day_runs, day_run_ms, day_output_bytes, day_artifact_bytes, 0,
    0
FROM tenant WHERE day >= 0 AND gone_ms = 0;

DROP VIEW v_usage;
CREATE VIEW v_usage AS
SELECT
    t.name AS tenant,
    date(u.day * 86400, 'unixepoch') AS day,
    sum(u.runs) AS runs,
    sum(u.run_ms) AS run_ms,
    sum(u.output_bytes) AS output_bytes,
    sum(u.artifact_bytes) AS artifact_bytes,
    sum(u.sandboxes) AS sandboxes,
    sum(u.refusals) AS refusals
FROM usage_parts u JOIN tenant t ON t.id = u.tenant
GROUP BY u.tenant, u.day;

-- The two ends of the audit's chain, in the row of the first tenant, which is
-- always there: the newest row, and the newest of those that were trimmed.
ALTER TABLE tenant ADD COLUMN audit_head_seq INTEGER;
ALTER TABLE tenant ADD COLUMN audit_head_hash BLOB
    CHECK (audit_head_hash IS NULL OR length(audit_head_hash) = 32);
ALTER TABLE tenant ADD COLUMN audit_base_seq INTEGER;
ALTER TABLE tenant ADD COLUMN audit_base_hash BLOB
    CHECK (audit_base_hash IS NULL OR length(audit_base_hash) = 32);
UPDATE tenant SET (audit_head_seq, audit_head_hash, audit_base_seq,
    audit_base_hash) = (SELECT head_seq, head_hash, base_seq, base_hash
    FROM audit_ends) WHERE id = 1;
DROP TABLE audit_ends;
