-- What was done to the server and by whom, in a chain: hash is the SHA-256 of
-- the row's content and of the hash before (supervisor/store/audit_chain.h).
CREATE TABLE audit (
	seq INTEGER PRIMARY KEY, -- from 1 on, without gaps
	at_ms INTEGER NOT NULL,
	times INTEGER NOT NULL,
	what TEXT NOT NULL,
	actor_tenant TEXT NOT NULL,
	actor TEXT NOT NULL,
	origin TEXT NOT NULL,
	request_id TEXT NOT NULL,
	tenant TEXT NOT NULL,
	subject TEXT NOT NULL,
	detail TEXT NOT NULL,
	digest BLOB, -- SHA-256 of the arguments
	hash BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;

-- The newest row, and the newest of those that were trimmed.
CREATE TABLE audit_ends (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	head_seq INTEGER NOT NULL,
	head_hash BLOB NOT NULL CHECK (length(head_hash) = 32),
	base_seq INTEGER NOT NULL,
	base_hash BLOB NOT NULL CHECK (length(base_hash) = 32)
) STRICT;
INSERT INTO audit_ends VALUES (1, 0, zeroblob(32), 0, zeroblob(32));
