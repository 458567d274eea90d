-- Folded states (C14): what a start reads instead of the records up to seq. Always rebuildable from the records.

CREATE TABLE snapshots (
  seq INTEGER NOT NULL,
  evolver_version INTEGER NOT NULL,
  -- hash of the record with this seq: the state belongs to this chain and no other.
  record_hash BLOB NOT NULL,
  -- SHA-256 over seq, evolver_version, record_hash and state.
  state_hash BLOB NOT NULL,
  state BLOB NOT NULL,
  PRIMARY KEY (seq, evolver_version)
);

CREATE TRIGGER snapshots_insert BEFORE INSERT ON snapshots
WHEN EXISTS (SELECT 1 FROM snapshots WHERE seq = NEW.seq AND evolver_version = NEW.evolver_version)
BEGIN SELECT raise(ABORT, 'snapshots are never replaced'); END;

CREATE TRIGGER snapshots_update BEFORE UPDATE ON snapshots
BEGIN SELECT raise(ABORT, 'snapshots are never changed'); END;

CREATE TRIGGER snapshots_delete BEFORE DELETE ON snapshots
WHEN NOT EXISTS (SELECT 1 FROM pruning)
BEGIN SELECT raise(ABORT, 'snapshots are deleted by pruning only'); END;
