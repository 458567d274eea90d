-- Calls that only read (C10): compact rows in chunks, one chunk per commit. A segment is a run of chunks; once its
-- `reads.closed` record is committed it has a row in read_segments, and from then on its chunks may be
-- dropped, all at once; the row stays.

-- id = segment * 2^24 + chunk, chunks counted from 0.
CREATE TABLE read_chunks (
  id INTEGER PRIMARY KEY,
  rows BLOB NOT NULL,
  -- SHA-256 over the previous chunk's root, segment, chunk and rows.
  root BLOB NOT NULL
);

CREATE TABLE read_segments (
  segment INTEGER PRIMARY KEY,
  -- seq of its reads.closed record, which has the count, the times and the root.
  closed INTEGER NOT NULL
);

CREATE TRIGGER read_chunks_insert BEFORE INSERT ON read_chunks
WHEN NEW.id <= (SELECT max(id) FROM read_chunks)
BEGIN SELECT raise(ABORT, 'read chunks are appended in order of id'); END;

CREATE TRIGGER read_chunks_update BEFORE UPDATE ON read_chunks
BEGIN SELECT raise(ABORT, 'read chunks are never changed'); END;

CREATE TRIGGER read_chunks_delete BEFORE DELETE ON read_chunks
WHEN NOT EXISTS (SELECT 1 FROM pruning)
BEGIN SELECT raise(ABORT, 'read chunks are deleted by pruning only'); END;

CREATE TRIGGER read_segments_insert BEFORE INSERT ON read_segments
WHEN EXISTS (SELECT 1 FROM read_segments WHERE segment = NEW.segment)
BEGIN SELECT raise(ABORT, 'a read segment is closed once'); END;

CREATE TRIGGER read_segments_update BEFORE UPDATE ON read_segments
BEGIN SELECT raise(ABORT, 'read segments are never changed'); END;

CREATE TRIGGER read_segments_delete BEFORE DELETE ON read_segments
BEGIN SELECT raise(ABORT, 'read segments are never deleted'); END;
