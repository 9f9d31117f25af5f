-- What a tenant's sandboxes are made by and may write: rules, not quotas.
ALTER TABLE tenant ADD COLUMN runtime TEXT NOT NULL DEFAULT ''; -- '': any
ALTER TABLE tenant ADD COLUMN read_only_root INTEGER NOT NULL DEFAULT 0;
