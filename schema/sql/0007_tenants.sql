-- Tenants that come and go, the tokens by which they are known, and what is
-- set for one tenant other than for all.
ALTER TABLE tenant ADD COLUMN disabled_ms INTEGER NOT NULL DEFAULT 0;
-- It is being deleted: its name is taken until nothing of it is left (gone_ms),
-- and then it is ".gone-<id>".  The row stays: a number is never given out
-- twice, and totals do not fall.
ALTER TABLE tenant ADD COLUMN deleted_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN gone_ms INTEGER NOT NULL DEFAULT 0;

CREATE TABLE token (
	id TEXT PRIMARY KEY, -- its public part
	tenant INTEGER NOT NULL, -- 0: of none
	role TEXT NOT NULL CHECK (role = 'user' OR role = 'admin'
	    OR role = 'metrics'),
	name TEXT NOT NULL,
	sha256 BLOB NOT NULL CHECK (length(sha256) = 32), -- of the secret
	created_ms INTEGER NOT NULL,
	expires_ms INTEGER NOT NULL, -- 0: never
	used_ms INTEGER NOT NULL, -- to a minute
	revoked_ms INTEGER NOT NULL,
	CHECK (tenant <> 0 OR role <> 'user')
) STRICT, WITHOUT ROWID;

CREATE TABLE quota (
	tenant INTEGER NOT NULL REFERENCES tenant (id),
	key TEXT NOT NULL,
	value INTEGER NOT NULL,
	PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
