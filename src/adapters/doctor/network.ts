/**
 * Checks of the pod network: a configuration, its plugins and what they in turn need. The configuration is handed in
 * as the daemon reads it.
 */
import * as z from 'zod';
import type { CniConfList } from '../../domain/model/cni.ts';
import { readAs } from '../../platform/foreign-json.ts';
import { type DoctorResult, ok, problem, warning } from './result.ts';
import { findIn, findProgram } from '../../platform/linux/find-program.ts';
import { outputOf } from './tools.ts';

export interface NetworkSettings {
  /** The runtime handler whose pods have this network; absent for that of all others. */
  readonly handler?: string;
  readonly confDir: string;
  readonly binDirs: readonly string[];
  readonly confList: CniConfList | null;
  /** Why there is no confList. */
  readonly problem: string | null;
}

const VERSIONS_MAX = 100;

const CONFIGURATION = 'CNI configuration';
const PLUGINS = 'CNI plugins';
const IPTABLES = 'iptables';
const NFTABLES = 'nftables';
const PORTMAP = 'portmap';
const FIREWALL = 'firewall';

const named = (check: string, { handler }: NetworkSettings): string =>
  handler === undefined ? check : `${check} of ${handler}`;

export const checkCniConfiguration = (settings: NetworkSettings): DoctorResult => {
  const { confDir, confList, problem: why } = settings;
  const check = named(CONFIGURATION, settings);
  if (confList === null) {
    const remedy = `Put a network configuration (.conflist) into ${confDir}: your network add-on does, or see the README.`;
    return problem(check, why ?? `none in ${confDir}`, remedy);
  }
  const types = confList.plugins.map((plugin) => plugin.type).join(', ');
  return ok(check, `network ${confList.name}, CNI ${confList.cniVersion}: ${types}`);
};

const ipamSchema = z.object({ type: z.string() });

/** Plugins of the chain and those that they call for addresses. */
const pluginTypes = (confList: CniConfList): string[] => {
  const types = confList.plugins.flatMap((plugin) => {
    const ipam = ipamSchema.safeParse(plugin.ipam);
    return ipam.success ? [plugin.type, ipam.data.type] : [plugin.type];
  });
  return [...new Set(types)];
};

const versionsSchema = z.object({ supportedVersions: z.array(z.string()).max(VERSIONS_MAX) });

/** Versions of CNI that a plugin speaks, null when it does not say. */
const versionsOf = async (program: string, cniVersion: string): Promise<readonly string[] | null> => {
  try {
    const told = await outputOf(program, [], { CNI_COMMAND: 'VERSION' }, JSON.stringify({ cniVersion }));
    return readAs(versionsSchema, told)?.supportedVersions ?? null;
  } catch {
    return null;
  }
};

export const checkCniPlugins = async (settings: NetworkSettings): Promise<DoctorResult> => {
  const { binDirs, confList } = settings;
  const check = named(PLUGINS, settings);
  if (confList === null) return ok(check, 'none are needed without a configuration');
  const { cniVersion } = confList;
  const missing: string[] = [];
  const silent: string[] = [];
  const tooOld: string[] = [];
  const types = pluginTypes(confList);
  for (const type of types) {
    // A name that leads out of the directories is no plugin's.
    const program = type.includes('/') ? null : await findIn(type, binDirs);
    if (program === null) {
      missing.push(type);
      continue;
    }
    const versions = await versionsOf(program, cniVersion);
    if (versions === null) silent.push(program);
    else if (!versions.includes(cniVersion)) tooOld.push(program);
  }
  if (missing.length > 0) {
    const remedy = 'Install them (Debian: containernetworking-plugins), or set bin_dirs of [cni].';
    return problem(check, `${missing.join(', ')} not found as executables in ${binDirs.join(', ')}`, remedy);
  }
  if (tooOld.length > 0) {
    const remedy = 'Install newer plugins, or lower cniVersion in the network configuration.';
    return problem(check, `${tooOld.join(', ')} can't speak CNI ${cniVersion}`, remedy);
  }
  if (silent.length > 0) {
    return warning(check, `${silent.join(', ')} did not say what versions of CNI they speak`, 'Check that they run.');
  }
  return ok(check, `${types.join(', ')} speak CNI ${cniVersion}`);
};

/** Plugins of the chain that call iptables. */
const iptablesUsers = (confList: CniConfList): string[] =>
  confList.plugins
    .filter(({ type, backend, ipMasq, ipMasqBackend }) => {
      if (type === PORTMAP || type === FIREWALL) return backend !== NFTABLES && backend !== 'firewalld';
      return ipMasq === true && ipMasqBackend !== NFTABLES;
    })
    .map((plugin) => plugin.type);

export const checkIptables = async ({ confList }: NetworkSettings, path: string): Promise<DoctorResult> => {
  const users = confList === null ? [] : iptablesUsers(confList);
  if (users.length === 0) return ok(IPTABLES, 'no plugin needs it');
  const program = await findProgram(IPTABLES, path);
  if (program === null) {
    return problem(IPTABLES, `not found in PATH, but ${users.join(', ')} need it`, 'Install iptables.');
  }
  try {
    const told = await outputOf(program, ['--version'], { PATH: path });
    return ok(IPTABLES, `${program}, ${told.trim()}, for ${users.join(', ')}`);
  } catch (error) {
    return problem(IPTABLES, `${program} can't be run: ${(error as Error).message.trim()}`, 'Install it anew.');
  }
};
