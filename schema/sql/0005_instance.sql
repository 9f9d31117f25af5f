-- Whose database this is (DATA_DIR/instance).  It is written when the start
-- has seen that nothing on the engine is missing here: a database without it
-- was made in the place of another.
CREATE TABLE instance (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	id TEXT NOT NULL
) STRICT;
