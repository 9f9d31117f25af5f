-- Whom a tenant wants told of its events, over HTTP.  Its place among them
-- (seq) is the queue: what is behind it waits.
CREATE TABLE webhook (
	uuid BLOB NOT NULL CHECK (length(uuid) = 16) PRIMARY KEY,
	tenant INTEGER NOT NULL REFERENCES tenant (id),
	url TEXT NOT NULL,
	kinds TEXT NOT NULL, -- words of schema/events.txt, with commas between
	enabled INTEGER NOT NULL,
	disabled_why TEXT NOT NULL, -- '': by a person
	sealed BLOB NOT NULL, -- what is signed with (supervisor/core/seal.h)
	created_ms INTEGER NOT NULL,
	changed_ms INTEGER NOT NULL,
	seq INTEGER NOT NULL, -- of the event that is done with
	seq_ms INTEGER NOT NULL,
	delivered INTEGER NOT NULL,
	lost INTEGER NOT NULL,
	success_ms INTEGER NOT NULL, -- the last; 0: none
	failing_ms INTEGER NOT NULL, -- since; 0: it is not
	attempts INTEGER NOT NULL, -- that failed, in a row
	waited_ms INTEGER NOT NULL, -- between them
	next_ms INTEGER NOT NULL, -- the next one
	why TEXT NOT NULL -- the last failed
) STRICT;
CREATE INDEX webhook_of_tenant ON webhook (tenant);
