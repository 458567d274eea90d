/**
 * The check of kubelets that run here: whether one that asks this daemon has its metrics of containers, too. Reads their
 * command lines and configuration files, as far as they can be read, and asks them nothing.
 */
import { readFile } from 'node:fs/promises';
import { basename, isAbsolute, join } from 'node:path';
import { parse } from 'yaml';
import * as z from 'zod';
import { namesIn } from '../../platform/linux/files.ts';
import { readArguments, readPids } from '../../platform/linux/processes.ts';
import { type DoctorResult, ok, warning } from './result.ts';

const CHECK = 'kubelet';
const PROGRAM = 'kubelet';
/** Has kubelet ask CRI for its metrics of containers, in place of the cAdvisor within it. */
const STATS_GATE = 'PodAndContainerStatsFromCRI';
/** Where kubelet, and the cAdvisor within it, ask when nobody names another place. */
const ENDPOINT_DEFAULT = 'unix:///run/containerd/containerd.sock';

/** What is read of a KubeletConfiguration (kubelet.config.k8s.io/v1beta1). */
const configurationSchema = z.object({
  containerRuntimeEndpoint: z.string().optional(),
  featureGates: z.record(z.string(), z.boolean()).optional(),
});
export type KubeletConfiguration = z.infer<typeof configurationSchema>;

export interface Kubelet {
  readonly pid: number;
  /** Its command line, the program first. */
  readonly args: readonly string[];
  /** Its configuration file and the files of its drop-in directory, in the order in which the later wins. */
  readonly configurations: readonly KubeletConfiguration[];
}

const lastSet = <T>(values: readonly (T | undefined)[]): T | undefined =>
  values.findLast((value) => value !== undefined);

/** The last value of a flag, given as --name=value or --name value; undefined when it is not there. */
const flagOf = (args: readonly string[], name: string): string | undefined => {
  const values = args.flatMap((word, index) => {
    if (word.startsWith(`--${name}=`)) return [word.slice(name.length + 3)];
    const next = args[index + 1];
    return word === `--${name}` && next !== undefined ? [next] : [];
  });
  return values.at(-1);
};

const pathOf = (endpoint: string): string => endpoint.replace(/^unix:\/\//, '');

const isGateOpen = ({ args, configurations }: Kubelet): boolean => {
  const word = flagOf(args, 'feature-gates')
    ?.split(',')
    .find((gate) => gate.startsWith(`${STATS_GATE}=`));
  if (word !== undefined) return word.toLowerCase() === `${STATS_GATE}=true`.toLowerCase();
  return lastSet(configurations.map(({ featureGates }) => featureGates?.[STATS_GATE])) ?? false;
};

export const checkKubelet = (kubelet: Kubelet, socketPath: string): DoctorResult => {
  const { pid, args, configurations } = kubelet;
  const endpoint =
    flagOf(args, 'container-runtime-endpoint') ??
    lastSet(configurations.map(({ containerRuntimeEndpoint }) => containerRuntimeEndpoint)) ??
    ENDPOINT_DEFAULT;
  if (pathOf(endpoint) !== socketPath) return ok(CHECK, `process ${pid} has its pods from ${endpoint}, not from here`);
  const asksHere = `process ${pid} has its pods from here`;
  const cadvisor = pathOf(flagOf(args, 'containerd') ?? ENDPOINT_DEFAULT);
  if (cadvisor === socketPath || isGateOpen(kubelet)) return ok(CHECK, `${asksHere}, and its metrics of containers`);
  return warning(
    CHECK,
    `${asksHere}, but its cAdvisor asks ${cadvisor} whose control groups are: /metrics/cadvisor has no container`,
    `Start it with the flag --containerd=${socketPath}.`,
  );
};

/** One that cannot be read says nothing: whether kubelet itself can use it is not what is looked at here. */
const readConfiguration = async (path: string): Promise<readonly KubeletConfiguration[]> => {
  try {
    return [configurationSchema.parse(parse(await readFile(path, 'utf8'), { logLevel: 'error' }))];
  } catch {
    return [];
  }
};

/** Its files are read as it sees them: it may have a root of its own, and names may be from where it was started. */
const readKubelet = async (pid: number, args: readonly string[]): Promise<Kubelet> => {
  const asItSees = (path: string): string => join(`/proc/${pid}`, isAbsolute(path) ? 'root' : 'cwd', path);
  const dropInsOf = async (dir: string): Promise<readonly string[]> => {
    const names = await namesIn(asItSees(dir)).catch(() => []);
    return names
      .filter((name) => name.endsWith('.conf'))
      .toSorted()
      .map((name) => join(dir, name));
  };
  const [file, dir] = [flagOf(args, 'config'), flagOf(args, 'config-dir')];
  const paths = [...(file === undefined ? [] : [file]), ...(dir === undefined ? [] : await dropInsOf(dir))];
  const configurations = await Promise.all(paths.map((path) => readConfiguration(asItSees(path))));
  return { pid, args, configurations: configurations.flat() };
};

const findKubelets = async (): Promise<readonly Kubelet[]> => {
  const found = await Promise.all(
    (await readPids()).map(async (pid) => {
      const args = await readArguments(pid);
      return basename(args[0] ?? '') === PROGRAM ? [await readKubelet(pid, args)] : [];
    }),
  );
  return found.flat();
};

export const checkKubelets = async (socketPath: string): Promise<readonly DoctorResult[]> => {
  const kubelets = await findKubelets();
  if (kubelets.length === 0) return [ok(CHECK, 'none runs here')];
  return kubelets.map((kubelet) => checkKubelet(kubelet, socketPath));
};
