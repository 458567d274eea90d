-- What calls have recorded on their own streams, beside their beginning: how they ended, and what they did that no object's
-- stream tells of. So what a history of chosen objects has to look at is found without reading every record. The kind of the
-- stream is in the index, though always the same, so that SQLite need not look it up in the table.

CREATE INDEX records_of_calls ON records (call, typeof(stream)) WHERE typeof(stream) = 'text' AND call <> seq;
