-- How a run is run beside its commands, so that it can be run once more; of
-- those that are there nobody knows.
ALTER TABLE run ADD COLUMN options INTEGER NOT NULL DEFAULT 0;
