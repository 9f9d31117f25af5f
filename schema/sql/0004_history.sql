-- The history of one identifier, as run_latest is that of a tenant.
CREATE INDEX run_identifier
ON run (tenant, identifier, created_ms DESC, id DESC);
