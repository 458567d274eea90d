/**
 * The thread that parses what admins and vendors write about a node (CDI specs, block I/O classes): YAML of a megabyte
 * takes longer than the daemon's loop may stand still. Gets the texts, answers with content or a problem for each as soon
 * as it is parsed, and ends.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { parse, YAMLError } from 'yaml';
import { parseCdiSpec } from '../../domain/oci/cdi/spec-file.ts';
import { parseBlockIOClasses } from '../../domain/oci/classes/blockio-file.ts';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import { placeIn } from '../../domain/values/parse-json.ts';
import type { FileContents, FileKind, FileText, ParsedFile, ParseRequest } from './parse-files.ts';

/** Every kind of a thing names it once or twice: a file with more is made to grow. */
const ALIASES_MAX = 100;

const readers: { readonly [K in FileKind]: (content: unknown, path: string) => FileContents[K] } = {
  cdi: parseCdiSpec,
  blockIO: parseBlockIOClasses,
};

/** Where the text is wrong and how. A parser's own message may quote the text, and there may be secrets in it (C12). */
const problemIn = (path: string, format: string, error: unknown): FailureError => {
  const found = error instanceof YAMLError ? error.linePos?.[0] : undefined;
  const where = found === undefined ? placeIn(messageOf(error)) : ` at line ${found.line}, column ${found.col}`;
  const how = error instanceof YAMLError ? ` (${error.code})` : '';
  return new FailureError('HostFailed', `${path} is not valid ${format}${where}${how}`);
};

/** JSON is YAML, but not to every parser; version 1.1 because vendors write modes like 0660 and mean octal. */
const contentOf = ({ path, text }: FileText): unknown => {
  const format = path.endsWith('.json') ? 'JSON' : 'YAML';
  try {
    if (format === 'JSON') return JSON.parse(text);
    return parse(text, { version: '1.1', maxAliasCount: ALIASES_MAX, logLevel: 'error', stringKeys: true });
  } catch (error) {
    throw problemIn(path, format, error);
  }
};

const parsed = (kind: FileKind, file: FileText): ParsedFile<FileKind> => {
  const { path } = file;
  try {
    return { path, content: readers[kind](contentOf(file), path) };
  } catch (error) {
    return { path, problem: messageOf(error) };
  }
};

const { kind, files } = workerData as ParseRequest;
for (const file of files) parentPort?.postMessage(parsed(kind, file));
