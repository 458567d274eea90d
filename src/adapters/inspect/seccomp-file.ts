/**
 * Reads a Localhost seccomp profile. The domain checks its content when the spec is built; here it only has to be JSON
 * of a size that may go into the journal.
 */
import { isAbsolute } from 'node:path';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import { parseJson } from '../../domain/values/parse-json.ts';
import { errorCodeOf } from '../../platform/error-code.ts';
import { readBounded } from './bounded-file.ts';

/** Profiles that list every system call twice have some 30 KB; this one is recorded with every container it is for. */
const MAX_BYTES = 256 * 1024;

/** Rejects with InvalidField when there is no such file, it is too large, or no JSON. */
export async function readSeccompProfile(path: string): Promise<unknown> {
  const bad = (problem: string, cause?: unknown): FailureError =>
    new FailureError('InvalidField', `linux.security_context.seccomp.localhost_ref ${path} ${problem}`, { cause });
  if (!isAbsolute(path)) throw bad('is not an absolute path');
  const read = await readBounded(path, MAX_BYTES, true).catch((error: unknown) => {
    if (errorCodeOf(error) !== 'ENOENT') throw bad(`cannot be read: ${messageOf(error)}`, error);
    throw bad('is not there: put the profile there, or name one that is on this node', error);
  });
  if (read.kind === 'notRegular') throw bad('is no regular file');
  if (read.kind === 'tooLarge') throw bad(`has ${read.sizeBytes} bytes, more than the ${MAX_BYTES} that are read`);
  try {
    return parseJson(read.content.toString('utf8'));
  } catch (error) {
    throw bad(messageOf(error), error);
  }
}
