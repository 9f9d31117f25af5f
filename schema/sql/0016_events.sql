-- Nothing was ever written to it.  Each tenant has its own numbers, without a
-- gap: what one sees of them says nothing of the others.  tenant 0 is the
-- server itself, which is no row of the table tenant.
DROP VIEW v_event;

DROP TABLE event;

CREATE TABLE event (
	tenant INTEGER NOT NULL,
	seq INTEGER NOT NULL CHECK (seq > 0),
	at_ms INTEGER NOT NULL,
	kind TEXT NOT NULL, -- schema/events.txt
	identifier TEXT NOT NULL, -- of the sandbox; '': none
	run BLOB CHECK (run IS NULL OR length(run) = 16), -- its uuid
	data TEXT NOT NULL, -- a JSON object, or ''
	PRIMARY KEY (tenant, seq)
) STRICT, WITHOUT ROWID;

-- What happened; tenant is NULL for what happened to the server.
CREATE VIEW v_event AS
SELECT
    e.seq,
    t.name AS tenant,
    CASE WHEN e.at_ms > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ',
	e.at_ms / 1000.0, 'unixepoch') END AS at,
    e.kind,
    e.identifier,
    lower(substr(hex(e.run), 1, 8) || '-' || substr(hex(e.run), 9, 4)
	|| '-' || substr(hex(e.run), 13, 4) || '-'
	|| substr(hex(e.run), 17, 4) || '-' || substr(hex(e.run), 21)) AS run,
    e.data,
    e.tenant AS tenant_id,
    e.at_ms
FROM event e LEFT JOIN tenant t ON t.id = e.tenant;
