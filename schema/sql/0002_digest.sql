-- What a long log says in short (docs/decisions/0008): so that nobody walks
-- it again once its run has ended.  NULL for short logs.
ALTER TABLE run ADD COLUMN digest BLOB;
