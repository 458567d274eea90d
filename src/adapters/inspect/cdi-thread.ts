/**
 * The thread that parses CDI spec files: YAML of a megabyte takes longer than the daemon's loop may stand still. Gets the
 * texts, answers with a spec or a problem for each, and ends.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { parse } from 'yaml';
import { parseCdiSpec } from '../../domain/cdi/spec-file.ts';
import { FailureError, messageOf } from '../../domain/errors.ts';
import type { CdiText, ParsedCdiFile } from './cdi-parse.ts';

/** Every kind of a thing names it once or twice: a file with more is made to grow. */
const ALIASES_MAX = 100;

/** JSON is YAML, but not to every parser; version 1.1 because vendors write modes like 0660 and mean octal. */
const contentOf = ({ path, text }: CdiText): unknown =>
  path.endsWith('.json')
    ? JSON.parse(text)
    : parse(text, { version: '1.1', maxAliasCount: ALIASES_MAX, logLevel: 'error', stringKeys: true });

const parsed = (file: CdiText): ParsedCdiFile => {
  const { path } = file;
  try {
    return { path, spec: parseCdiSpec(contentOf(file), path) };
  } catch (error) {
    const message = error instanceof FailureError ? error.message : `the CDI spec ${path}: ${messageOf(error)}`;
    // A parser's message shows where in the file it is, over several lines.
    return { path, problem: message.split('\n', 1)[0] ?? '' };
  }
};

parentPort?.postMessage((workerData as readonly CdiText[]).map(parsed));
