/** A check of the NRI plugins that would be launched, as they were looked for. Starts none. */
import { type DoctorResult, ok, problem } from './result.ts';

export interface NriPluginsFound {
  readonly enabled: boolean;
  /** Where they are launched from. */
  readonly dir: string;
  /** By index and name. */
  readonly names: readonly string[];
  /** Sentences about what is not launched. */
  readonly problems: readonly string[];
}

const NRI_PLUGINS = 'NRI plugins';

export const checkNriPlugins = ({ enabled, dir, names, problems }: NriPluginsFound): readonly DoctorResult[] => {
  if (!enabled) return [ok(NRI_PLUGINS, 'off: nri.enable is false')];
  const found = problems.map((detail) =>
    problem(NRI_PLUGINS, detail, 'Then restart scribe, which looks for plugins when it starts.'),
  );
  if (found.length > 0) return found;
  return [ok(NRI_PLUGINS, names.length === 0 ? `none to launch in ${dir}` : `${names.join(', ')} in ${dir}`)];
};
