/**
 * The thread that parses what admins and vendors write about a node (CDI specs, block I/O classes): YAML of a megabyte
 * takes longer than the daemon's loop may stand still. Gets the texts, answers with content or a problem for each, and ends.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { parse } from 'yaml';
import { parseCdiSpec } from '../../domain/cdi/spec-file.ts';
import { parseBlockIOClasses } from '../../domain/classes/blockio-file.ts';
import { FailureError, messageOf } from '../../domain/errors.ts';
import type { FileContents, FileKind, FileText, ParsedFile, ParseRequest } from './parse-files.ts';

/** Every kind of a thing names it once or twice: a file with more is made to grow. */
const ALIASES_MAX = 100;

const readers: { readonly [K in FileKind]: (content: unknown, path: string) => FileContents[K] } = {
  cdi: parseCdiSpec,
  blockIO: parseBlockIOClasses,
};

/** JSON is YAML, but not to every parser; version 1.1 because vendors write modes like 0660 and mean octal. */
const contentOf = ({ path, text }: FileText): unknown =>
  path.endsWith('.json')
    ? JSON.parse(text)
    : parse(text, { version: '1.1', maxAliasCount: ALIASES_MAX, logLevel: 'error', stringKeys: true });

const parsed = (kind: FileKind, file: FileText): ParsedFile<FileKind> => {
  const { path } = file;
  try {
    return { path, content: readers[kind](contentOf(file), path) };
  } catch (error) {
    const message = error instanceof FailureError ? error.message : `${path}: ${messageOf(error)}`;
    // A parser's message shows where in the file it is, over several lines.
    return { path, problem: message.split('\n', 1)[0] ?? '' };
  }
};

const { kind, files } = workerData as ParseRequest;
parentPort?.postMessage(files.map((file) => parsed(kind, file)));
