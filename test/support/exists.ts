/** Whether there is a file of a path, as tests ask for what should be there or gone. */
import { access } from 'node:fs/promises';

export const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
