/**
 * Up to where container events were delivered, kept over restarts of the daemon in a file of the state directory.
 * Written a little later than it moves: after a crash a client may be told of a few events again, which is harmless.
 */
import { readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { EventCursor } from '../adapters/cri/events.ts';

const CURSOR_FILE = 'events.cursor';
const WRITE_AFTER_MS = 1_000;

export interface KeptEventCursor extends EventCursor {
  /** Writes what is not written yet. */
  readonly close: () => Promise<void>;
}

/**
 * @param headSeq  the journal's last record: a cursor beyond it is of another journal
 * @param report  told when the file can't be written
 */
export function openEventCursor(stateDir: string, headSeq: number, report: (message: string) => void): KeptEventCursor {
  const path = join(stateDir, CURSOR_FILE);
  let delivered = read(path, headSeq);
  let written = delivered;
  let timer: NodeJS.Timeout | null = null;
  let writing: Promise<void> = Promise.resolve();

  async function write(): Promise<void> {
    timer = null;
    if (written === delivered) return;
    const seq = delivered;
    try {
      await writeFile(`${path}.new`, `${seq}\n`, { mode: 0o600 });
      await rename(`${path}.new`, path);
      written = seq;
    } catch (error) {
      report(`Where container events were delivered to could not be written down: ${String(error)}`);
    }
  }

  return {
    deliveredSeq: () => delivered,
    deliver(seq) {
      if (seq <= delivered) return;
      delivered = seq;
      timer ??= setTimeout(() => {
        writing = write();
      }, WRITE_AFTER_MS).unref();
    },
    async close() {
      if (timer !== null) clearTimeout(timer);
      await writing;
      await write();
    },
  };
}

/** 0 when there is none, or it says nothing: events of the last minutes are then told again. */
function read(path: string, headSeq: number): number {
  try {
    const seq = Number(readFileSync(path, 'utf8'));
    return Number.isSafeInteger(seq) && seq >= 0 && seq <= headSeq ? seq : 0;
  } catch {
    return 0;
  }
}
