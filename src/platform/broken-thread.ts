/** Why a thread or child of this program broke, in a sentence for whoever called, and what helps. Must not hide what it was. */
import { errorCodeOf } from './error-code.ts';
import { messageOf } from '../domain/model/errors.ts';

const MISSING: readonly unknown[] = ['MODULE_NOT_FOUND', 'ERR_MODULE_NOT_FOUND'];

const isMissing = (error: unknown): boolean => MISSING.includes(errorCodeOf(error));

/** Without a stop at its end. Node tells of a missing module in several lines: which one it is stands in the first. */
export const whyBroke = (error: unknown): string => {
  const [what = ''] = messageOf(error).split('\n');
  return isMissing(error) ? `${what}: the files of scribe were replaced or taken away while it runs; restart it` : what;
};
