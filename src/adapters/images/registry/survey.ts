/**
 * Reads all that is configured of registries, for `scribe doctor`: a pull would find out about one of them, and only
 * when it is needed. Must read as a pull does; the daemon has no use for it.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { FailureError, messageOf } from '../../../domain/model/errors.ts';
import { readRegistryDirectory, unknownHostsKeys } from './hosts.ts';

export interface RegistrySurvey {
  readonly count: number;
  readonly problems: readonly string[];
  readonly unknownKeys: readonly { readonly path: string; readonly key: string }[];
}

const directoriesIn = async (root: string): Promise<readonly string[]> => {
  try {
    const entries = await readdir(root, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink()).map(({ name }) => name);
  } catch {
    // What is not there, or no directory, configures nothing: so it is with a pull.
    return [];
  }
};

/** Never rejects. `dirs` are directories of hosts.toml directories. */
export const surveyRegistries = async (dirs: readonly string[]): Promise<RegistrySurvey> => {
  const problems: string[] = [];
  const unknownKeys: { path: string; key: string }[] = [];
  let count = 0;
  for (const root of dirs) {
    for (const name of (await directoriesIn(root)).toSorted()) {
      const directory = join(root, name);
      count += 1;
      try {
        await readRegistryDirectory(directory, name.replace(/_(\d+)_$/, ':$1'));
        unknownKeys.push(...(await unknownHostsKeys(directory)));
      } catch (error) {
        problems.push(error instanceof FailureError ? error.failure.message : `${directory}: ${messageOf(error)}`);
      }
    }
  }
  return { count, problems, unknownKeys };
};
