/** What a journal says of the daemon that wrote it last. */
import type { DaemonFacts } from '../domain/model/daemon-facts.ts';
import { NODE_STREAM } from '../domain/model/records.ts';
import { openReader } from '../journal/open.ts';
import { knownAs } from './history/entries.ts';
import { recordOf } from './history/names.ts';

/** As its start recorded them; null when no daemon wrote it. */
export const newestFacts = (journalPath: string): DaemonFacts | null => {
  const reader = openReader(journalPath);
  try {
    for (const { seq } of reader.placesOfStream(NODE_STREAM).toReversed()) {
      const record = recordOf(reader, seq);
      const started = record === undefined ? null : knownAs('daemon.started', record);
      if (started !== null) return started.event.body.facts;
    }
    return null;
  } finally {
    reader.close();
  }
};
