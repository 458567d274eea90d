/**
 * The last words of a daemon that could not go on (C7): a file the next start reads, records and removes. Written
 * synchronously, because the process ends right after.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { knownWordsOf } from '../domain/model/error-words.ts';

const CRASH_FILE = 'crash.txt';
const WORDS_MAX = 16_384;

export function writeCrashFile(stateDir: string, error: unknown): void {
  try {
    writeFileSync(join(stateDir, CRASH_FILE), knownWordsOf(error).slice(0, WORDS_MAX), { mode: 0o600 });
  } catch {
    // There is nobody left to tell; the log has it.
  }
}

/** What the last life left, if it did; the file is gone afterwards. */
export function takeCrashFile(stateDir: string): string | null {
  const path = join(stateDir, CRASH_FILE);
  try {
    const words = readFileSync(path, 'utf8').slice(0, WORDS_MAX);
    rmSync(path);
    return words;
  } catch {
    return null;
  }
}
