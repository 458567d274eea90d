/**
 * All checks of a node in one call, for `scribe doctor`. Reads, runs programs for their versions, tries one mount and
 * joins a control group of its own; changes nothing. Must run in a process of its own, not in the daemon: it forks. Findings of the journal and owed
 * work are not its business.
 */
import { type RuntimeHandler, takesRuncOptions } from '../../domain/model/runtime-handler.ts';
import type { NodeFacts } from '../../domain/model/node-facts.ts';
import type { CgroupDriver } from '../../domain/model/spec-settings.ts';
import { checkCapabilities, checkCgroupDriver, checkCgroups, checkClock, checkKernel } from './host.ts';
import { checkKubelets } from './kubelet.ts';
import { checkCniConfiguration, checkCniPlugins, checkIptables, type NetworkSettings } from './network.ts';
import { checkNriPlugins, type NriPluginsFound } from './nri-plugins.ts';
import { checkOciRuntime, checkShim, findShim } from './programs.ts';
import { checkRegistries, type RegistrySettings } from './registries.ts';
import type { DoctorResult } from './result.ts';
import { createIsalInflater } from '../../platform/linux/inflate/isal.ts';
import { checkInflatingSpeed, checkJoining, checkRuntimeSpeed, checkStartSpeed } from './speed.ts';
import { checkOverlayfs, checkSpace } from './storage.ts';
import { checkApparmor, checkSelinux } from './security-modules.ts';
import { checkUserNamespaces } from './user-namespaces.ts';

export interface DoctorOptions {
  readonly node: NodeFacts;
  readonly rootDir: string;
  readonly stateDir: string;
  /** Where the daemon listens. */
  readonly socketPath: string;
  /** Free space that is kept for what has to be recorded. */
  readonly diskReserveBytes: number;
  readonly handlers: readonly RuntimeHandler[];
  /** Of the default handler. */
  readonly cgroupDriver: CgroupDriver;
  /** systemd is this machine's init. */
  readonly systemdRuns: boolean;
  readonly restrictOomScoreAdj: boolean | 'auto';
  readonly enableSelinux: boolean;
  readonly network: NetworkSettings;
  /** Of runtime handlers with a network of their own. */
  readonly handlerNetworks: readonly NetworkSettings[];
  readonly registries: RegistrySettings;
  readonly nriPlugins: NriPluginsFound;
  /** Wall clock of the journal's newest record in ms since the epoch; null when there is no journal. */
  readonly lastRecordAtMs: number | null;
  readonly nowMs: number;
  /** The PATH that the daemon runs with. */
  readonly path: string;
}

const checkHandler = async (
  handler: RuntimeHandler,
  node: NodeFacts,
  path: string,
): Promise<readonly DoctorResult[]> => {
  // What runs behind another shim is not said by binary_name.
  const takesOptions = takesRuncOptions(handler);
  const [shim, ...ofRuntime] = await Promise.all([
    findShim(handler, path),
    ...(takesOptions ? [checkOciRuntime(handler, path), checkRuntimeSpeed(handler, node, path)] : []),
  ]);
  return [checkShim(handler, shim), ...ofRuntime, ...(takesOptions ? [checkStartSpeed(handler, shim)] : [])];
};

/** The results of all checks, always in the same order. Never rejects: what can't be looked at is a problem. */
export const runDoctor = async (options: DoctorOptions): Promise<readonly DoctorResult[]> => {
  const { node, rootDir, stateDir, diskReserveBytes, handlers, network, path } = options;
  const [overlayfs, userNamespaces, apparmor, selinux, networks, iptables, space, programs, joining, kubelets] =
    await Promise.all([
      checkOverlayfs(rootDir),
      checkUserNamespaces({ rootDir, stateDir }),
      checkApparmor(node, path),
      checkSelinux(node, options.enableSelinux),
      Promise.all(
        [network, ...options.handlerNetworks].map(async (one) => [
          checkCniConfiguration(one),
          await checkCniPlugins(one),
        ]),
      ),
      checkIptables(network, path),
      Promise.all([checkSpace(rootDir, diskReserveBytes), checkSpace(stateDir, null)]),
      Promise.all(handlers.map((handler) => checkHandler(handler, node, path))),
      checkJoining(node),
      checkKubelets(options.socketPath),
    ]);
  return [
    checkKernel(node),
    checkCapabilities(node, options.restrictOomScoreAdj),
    checkCgroups(node),
    checkCgroupDriver(node, options.cgroupDriver, options.systemdRuns),
    joining,
    checkInflatingSpeed(createIsalInflater !== null),
    overlayfs,
    userNamespaces,
    apparmor,
    selinux,
    ...space,
    ...programs.flat(),
    ...networks.flat(),
    iptables,
    ...checkRegistries(options.registries),
    ...checkNriPlugins(options.nriPlugins),
    ...kubelets,
    checkClock(options.nowMs, options.lastRecordAtMs),
  ];
};
