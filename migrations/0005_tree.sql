-- The records as a Merkle tree of RFC 6962 beside the chain: leaf n is the body_hash of record n + 1. Kept is one hash for
-- each full tile of 256; the leaves are the records' own hashes, which pruning keeps. Always rebuildable from them.

CREATE TABLE tree_nodes (
  -- 1: the root over 256 leaves, 2: over 256 of those, and so on.
  level INTEGER NOT NULL,
  -- Which of its level, from 0.
  n INTEGER NOT NULL,
  hash BLOB NOT NULL,
  PRIMARY KEY (level, n)
);

CREATE TRIGGER tree_nodes_insert BEFORE INSERT ON tree_nodes
WHEN NEW.n <> (SELECT coalesce(max(n), -1) + 1 FROM tree_nodes WHERE level = NEW.level)
BEGIN SELECT raise(ABORT, 'tree nodes are appended in order of n'); END;

CREATE TRIGGER tree_nodes_update BEFORE UPDATE ON tree_nodes
BEGIN SELECT raise(ABORT, 'tree nodes are never changed'); END;

CREATE TRIGGER tree_nodes_delete BEFORE DELETE ON tree_nodes
BEGIN SELECT raise(ABORT, 'tree nodes are never deleted'); END;
