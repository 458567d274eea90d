/** Checks of how registries are configured: what hosts.toml files and certificates say, as they were read. */
import { type DoctorResult, ok, problem, warning } from './result.ts';

export interface RegistrySettings {
  /** Where directories of registries are looked for. */
  readonly dirs: readonly string[];
  /** Directories of registries that were read. */
  readonly count: number;
  /** Sentences about what can't be used: pulls from that registry fail. */
  readonly problems: readonly string[];
  /** Keys of hosts.toml files that say nothing to anybody. */
  readonly unknownKeys: readonly { readonly path: string; readonly key: string }[];
}

const REGISTRIES = 'registries';

export const checkRegistries = ({ dirs, count, problems, unknownKeys }: RegistrySettings): readonly DoctorResult[] => {
  const found = [
    ...problems.map((detail) =>
      problem(REGISTRIES, detail, 'Correct the file: pulls from this registry fail. It is read anew for each pull.'),
    ),
    ...unknownKeys.map(({ path, key }) =>
      warning(REGISTRIES, `${path}: ${JSON.stringify(key)} is no key of it and does nothing`, 'Correct its spelling.'),
    ),
  ];
  if (found.length > 0) return found;
  const where = dirs.length === 0 ? '' : ` in ${dirs.join(', ')}`;
  return [
    ok(REGISTRIES, count === 0 ? `none configured${where}: each is asked itself` : `${count} configured${where}`),
  ];
};
