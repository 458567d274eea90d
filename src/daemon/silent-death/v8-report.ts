/**
 * What V8 leaves when it ends the daemon (out of memory, a broken invariant): Node's diagnostic report, which bin/scribe
 * asks for on the command line, without environment and network: told here to leave those out, Node writes them all the same.
 * Says where it goes, and takes from it what tells of the end. Nothing else of it is kept: it has command lines and names of hosts.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** How V8 ended a daemon. */
export interface V8End {
  readonly atMs: number;
  /** V8's words for it: "Allocation failed - JavaScript heap out of memory". */
  readonly event: string;
  /** Frames alone; none when V8 had no memory left to look. */
  readonly frames: readonly string[];
  readonly heap: { readonly usedBytes: number; readonly limitBytes: number };
}

const FILE = 'v8-fatal.json';
const EVENT_CHARACTERS_MAX = 200;
const FRAMES_MAX = 100;
const FRAME = /^at /;

export const v8ReportIn = (rootDir: string): string => join(rootDir, FILE);

/** From here on V8's report is written there; before, nowhere. */
export function writeV8ReportIn(rootDir: string): void {
  process.report.directory = rootDir;
  process.report.filename = FILE;
}

type Json = Readonly<Record<string, unknown>>;
const partOf = (of: unknown, key: string): Json => {
  const value = (of as Json | null | undefined)?.[key];
  return typeof value === 'object' && value !== null ? (value as Json) : {};
};

/** null: there is none, or Node was cut off while it wrote it. */
export async function readV8Report(path: string): Promise<V8End | null> {
  try {
    return v8EndIn(JSON.parse(await readFile(path, 'utf8')));
  } catch {
    return null;
  }
}

/** Of a report of Node's, parsed. */
function v8EndIn(report: unknown): V8End {
  const { event, dumpEventTimeStamp } = partOf(report, 'header');
  const { stack } = partOf(report, 'javascriptStack');
  const { usedMemory, memoryLimit } = partOf(report, 'javascriptHeap');
  const lines = Array.isArray(stack) ? stack.map((line) => String(line).trim()) : [];
  return {
    atMs: Number(dumpEventTimeStamp),
    event: String(event).slice(0, EVENT_CHARACTERS_MAX),
    frames: lines.filter((line) => FRAME.test(line)).slice(0, FRAMES_MAX),
    heap: { usedBytes: Number(usedMemory), limitBytes: Number(memoryLimit) },
  };
}
