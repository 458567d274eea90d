/** Whether the kernel shows a file of its own. */
import { access } from 'node:fs/promises';

/** What cannot be looked at counts as not there: nothing could be done with it. */
export const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
