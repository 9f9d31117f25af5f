-- A task of the protocol stands for the result of a call whose run goes on,
-- for the principal that called.  What the run comes to is the run's to say;
-- here is what the call was besides, so that the result is the call's own.
-- Its key has whose it is: another's takes as long to look for as none.
CREATE TABLE task (
	uuid BLOB NOT NULL CHECK (length(uuid) = 16),
	tenant INTEGER NOT NULL REFERENCES tenant (id),
	subject TEXT NOT NULL,
	run BLOB NOT NULL CHECK (length(run) = 16), -- its uuid
	tool TEXT NOT NULL,
	wish TEXT NOT NULL, -- a JSON object, the tool's
	created_ms INTEGER NOT NULL,
	expires_ms INTEGER NOT NULL,
	cancelled_ms INTEGER NOT NULL, -- 0: it was not
	PRIMARY KEY (uuid, tenant, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_of_subject ON task (tenant, subject, created_ms, uuid);
CREATE INDEX task_by_end ON task (expires_ms);
