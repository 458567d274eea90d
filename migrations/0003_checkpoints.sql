-- Signed points of the chain: whoever lacks the key can neither rewrite what is before one nor cut it off unseen.

CREATE TABLE checkpoints (
  seq INTEGER PRIMARY KEY,
  -- hash of the record with this seq.
  hash BLOB NOT NULL,
  -- Greatest `at` of all records up to this one: what a moment in time is looked up by.
  at_max INTEGER NOT NULL,
  -- Ed25519 over seq, hash and at_max.
  signature BLOB NOT NULL
);

CREATE TRIGGER checkpoints_insert BEFORE INSERT ON checkpoints
WHEN NEW.seq <= (SELECT max(seq) FROM checkpoints)
BEGIN SELECT raise(ABORT, 'checkpoints are appended in order of seq'); END;

CREATE TRIGGER checkpoints_update BEFORE UPDATE ON checkpoints
BEGIN SELECT raise(ABORT, 'checkpoints are never changed'); END;

CREATE TRIGGER checkpoints_delete BEFORE DELETE ON checkpoints
BEGIN SELECT raise(ABORT, 'checkpoints are never deleted'); END;
