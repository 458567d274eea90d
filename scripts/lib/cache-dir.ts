/** Where the programs lie that tests and benchmarks build, and what they keep beside them: as setup.sh has it. */
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** By the XDG Base Directory specification a path that is empty, or is relative, is as none. */
export const cacheDir = (asked = process.env['XDG_CACHE_HOME'] ?? ''): string =>
  join(isAbsolute(asked) ? asked : join(homedir(), '.cache'), 'scribe');
