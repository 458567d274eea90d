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

/** What the last life left; null: nothing. */
export function readCrashFile(stateDir: string): string | null {
  try {
    return readFileSync(join(stateDir, CRASH_FILE), 'utf8').slice(0, WORDS_MAX);
  } catch {
    return null;
  }
}

/** Once these words are recorded. What this life has left meanwhile stays. */
export function removeCrashFile(stateDir: string, words: string | null): void {
  if (words === null || readCrashFile(stateDir) !== words) return;
  try {
    rmSync(join(stateDir, CRASH_FILE));
  } catch {
    // It is told of once more by the next start.
  }
}
