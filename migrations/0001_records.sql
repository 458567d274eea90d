-- The chain of records, and what every table needs: which migrations ran, and the guard that pruning raises.

PRAGMA application_id = 0x73637262; -- 'scrb'

-- One row per migration that ran; sha256 is that of the file.
CREATE TABLE schema (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  sha256 BLOB NOT NULL
);

-- Holds a row only within a transaction that prunes: what the triggers below look at.
CREATE TABLE pruning (active INTEGER PRIMARY KEY);

-- Texts that many records share (boot ids, types, streams but call/...), stored once.
-- digest: first 8 bytes of SHA-256 over id (8 bytes, big-endian) and name.
CREATE TABLE names (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  digest BLOB NOT NULL
);

-- boot, type and stream are ids in names; a stream of its own call (call/...) is the text itself.
-- A pruned record keeps seq and body_hash; everything else is NULL.
CREATE TABLE records (
  seq INTEGER PRIMARY KEY,
  at INTEGER,
  mono INTEGER,
  boot INTEGER,
  type INTEGER,
  v INTEGER,
  stream,
  cause INTEGER,
  call INTEGER,
  body_hash BLOB NOT NULL,
  hash BLOB,
  body TEXT
);

-- Call streams are as many as calls: their records are found by `call`, whose values grow, so that it costs little.
CREATE INDEX records_by_stream ON records (stream) WHERE typeof(stream) = 'integer';
CREATE INDEX records_by_call ON records (call) WHERE call IS NOT NULL;

-- The records as docs/journal-format.md names their columns, for people with a SQL shell.
CREATE VIEW journal AS
SELECT
  r.seq, r.at, r.mono, b.name AS boot, t.name AS type, r.v,
  CASE typeof(r.stream) WHEN 'integer' THEN s.name ELSE r.stream END AS stream,
  r.cause, r.call, r.body, lower(hex(r.body_hash)) AS body_hash, lower(hex(r.hash)) AS hash
FROM records r
LEFT JOIN names b ON b.id = r.boot
LEFT JOIN names t ON t.id = r.type
LEFT JOIN names s ON s.id = r.stream AND typeof(r.stream) = 'integer';

-- Gapless by construction; also what stops INSERT OR REPLACE, which fires no delete trigger. Pruning deletes a row and
-- puts back what is kept of it: SQLite joins pages that have become empty on DELETE, but not on UPDATE.
CREATE TRIGGER records_insert BEFORE INSERT ON records
WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM records)
  AND (
    NOT EXISTS (SELECT 1 FROM pruning)
    OR EXISTS (SELECT 1 FROM records WHERE seq = NEW.seq)
    OR coalesce(NEW.at, NEW.mono, NEW.boot, NEW.type, NEW.v, NEW.stream, NEW.cause, NEW.call, NEW.hash, NEW.body)
      IS NOT NULL
  )
BEGIN SELECT raise(ABORT, 'records are appended in order of seq'); END;

CREATE TRIGGER records_update BEFORE UPDATE ON records
BEGIN SELECT raise(ABORT, 'records are never changed'); END;

CREATE TRIGGER records_delete BEFORE DELETE ON records
WHEN NOT EXISTS (SELECT 1 FROM pruning)
BEGIN SELECT raise(ABORT, 'records are deleted by pruning only'); END;

CREATE TRIGGER names_insert BEFORE INSERT ON names
WHEN EXISTS (SELECT 1 FROM names WHERE id = NEW.id OR name = NEW.name)
BEGIN SELECT raise(ABORT, 'names are never replaced'); END;

CREATE TRIGGER names_update BEFORE UPDATE ON names
BEGIN SELECT raise(ABORT, 'names are never changed'); END;

CREATE TRIGGER names_delete BEFORE DELETE ON names
WHEN NOT EXISTS (SELECT 1 FROM pruning)
BEGIN SELECT raise(ABORT, 'names are deleted by pruning only'); END;

CREATE TRIGGER schema_insert BEFORE INSERT ON schema
WHEN NEW.version <> (SELECT coalesce(max(version), 0) + 1 FROM schema)
BEGIN SELECT raise(ABORT, 'migrations run in order'); END;

CREATE TRIGGER schema_update BEFORE UPDATE ON schema
BEGIN SELECT raise(ABORT, 'migrations are never changed'); END;

CREATE TRIGGER schema_delete BEFORE DELETE ON schema
BEGIN SELECT raise(ABORT, 'migrations are never undone'); END;
