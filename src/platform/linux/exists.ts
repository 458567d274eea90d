/** Whether there is a file at a path: asked leniently, or so that only a file that is certainly not there is taken for none. */
import { access } from 'node:fs/promises';
import { errorCodeOf } from '../error-code.ts';

/** What cannot be looked at counts as not there: nothing could be done with it. */
export const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/** What cannot be looked at is an error. For what would be made, or passed over, where nothing is. */
export const isThere = async (path: string): Promise<boolean> => {
  try {
    await access(path);
    return true;
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return false;
    throw error;
  }
};
