/** crictl and critest as setup builds them: the public clients that scribe has to please. */
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { cacheDir } from '../../scripts/lib/cache-dir.ts';

/** Absolute path of the tool; fails with the remedy where it has not been built. */
export const criTool = (name: 'crictl' | 'critest' | 'critest-nri'): string => {
  const path = join(cacheDir(), 'bin', name);
  try {
    accessSync(path, constants.X_OK);
    return path;
  } catch {
    throw new Error(`${name} is not at ${path}: run 'sh scripts/setup.sh cri-tools' (needs Go)`);
  }
};
