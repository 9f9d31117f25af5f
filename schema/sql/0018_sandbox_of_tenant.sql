-- A tenant's sandboxes, those that ended too, newest first.
CREATE INDEX sandbox_of_tenant ON sandbox (tenant, id);
