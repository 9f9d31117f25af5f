-- What was in files and is not there any more as its rows say: a disk that
-- lost its power, or did not take it (docs/decisions/0087).

ALTER TABLE kept ADD COLUMN lost_ms INTEGER NOT NULL DEFAULT 0; -- the log
ALTER TABLE blob ADD COLUMN lost_ms INTEGER NOT NULL DEFAULT 0;
