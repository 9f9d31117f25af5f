-- Tenants' secrets, sealed with a key that is not in the database
-- (supervisor/core/seal.h).
CREATE TABLE secret (
	tenant INTEGER NOT NULL REFERENCES tenant (id),
	name TEXT NOT NULL,
	sealed BLOB NOT NULL,
	created_ms INTEGER NOT NULL,
	changed_ms INTEGER NOT NULL,
	used_ms INTEGER NOT NULL, -- to a minute; 0: never
	PRIMARY KEY (tenant, name)
) STRICT;
