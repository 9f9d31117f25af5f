-- A run by its id, below its tenant: the id of another's run leads no further
-- than one that nobody has, in time as in words.
CREATE UNIQUE INDEX run_of_tenant ON run (tenant, uuid);
