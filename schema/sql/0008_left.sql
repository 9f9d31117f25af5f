-- How many processes a command left running when it ended: its log says which,
-- and may be evicted.
ALTER TABLE command ADD COLUMN left_running INTEGER NOT NULL DEFAULT 0;
