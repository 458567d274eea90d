/**
 * The CNI adapter: performs AttachNetwork and DetachNetwork, and has the configuration directories watched. The journal
 * remembers attachments; all this adapter keeps is an empty file per begun ADD, so that an ADD that is performed again
 * after a crash first undoes what the first one left.
 */
import { constants } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { CniConfList, PodNetwork } from '../../domain/model/cni.ts';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import type { EffectOf, EffectResults } from '../../domain/model/effects.ts';
import type { EffectContext, Observe, Perform, PerformEffects } from '../../engine/ports.ts';
import type { Files } from '../../platform/linux/files.ts';
import { errorCodeOf } from '../../platform/error-code.ts';
import { closeDescriptor } from '../../platform/linux/syscalls.ts';
import type { Spawner } from '../../platform/spawner/types.ts';
import { type Attachment, createChain } from './chain.ts';
import { type CniLog, createNetworkWatch } from './network-watch.ts';
import { createOrder } from './order.ts';
import { createStartPlugin, type StartedPlugin } from './plugin.ts';
import { type IpPreference, orderIps } from './result.ts';
import { identifierProblem } from './runtime-config.ts';
import { createStartsFirst } from './starts-first.ts';

const ATTEMPTS_DIRECTORY = 'cni';
/** Made by this attempt, or by nobody. */
const BEGUN_FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;
/** A DEL takes 60 to 90 ms by itself; one that waits for something far away must not have others wait for it. */
const DEL_PLACE_MS = 500;

export interface CniAdapterOptions {
  readonly spawner: Pick<Spawner, 'run'>;
  readonly confDir: string;
  /** Runtime handlers whose pods have a network of their own. */
  readonly handlers?: readonly HandlerNetwork[];
  readonly binDirs: readonly string[];
  /** The daemon's state directory (gone after a reboot); <stateDir>/cni is this adapter's. */
  readonly stateDir: string;
  readonly files: Files;
  /** For each run of a plugin. */
  readonly pluginTimeoutMs: number;
  readonly ipPreference: IpPreference;
  /** Configuration files looked at until a valid one is found. */
  readonly maxConfFiles: number;
  readonly observe: Observe;
  readonly log: CniLog;
}

export interface HandlerNetwork {
  /** Its name. */
  readonly handler: string;
  readonly confDir: string;
  /** Name of the network in that directory; absent: the first valid one. */
  readonly networkName?: string;
}

export interface CniStatus {
  readonly networkName: string | null;
  /** Why pods can't be attached now; null when they can. */
  readonly problem: string | null;
}

export interface CniAdapter {
  readonly effects: Pick<PerformEffects, 'AttachNetwork' | 'DetachNetwork'>;
  /** Reads the configurations, observes them, and watches them from then on. Call once, before serving. */
  readonly start: () => Promise<void>;
  /** Asks the plugins whether an attachment still stands (CHECK): false when they can't be asked, rejects when not. */
  readonly check: (network: PodNetwork, result: unknown) => Promise<boolean>;
  /**
   * Has the current networks' plugins drop what belongs to no valid attachment (GC, CNI 1.1). `validAttachments` is
   * asked once no ADD or DEL is under way; it must name every pod whose ADD was ever intended and not undone.
   */
  readonly gc: (validAttachments: () => readonly Attachment[]) => Promise<void>;
  readonly status: () => Promise<CniStatus>;
  /** Resolves with the error that ended the watch of the configuration; never in a healthy life. */
  readonly failed: Promise<Error>;
  readonly close: () => void;
}

export const createCniAdapter = (options: CniAdapterOptions): CniAdapter => {
  const { confDir, handlers = [], files, maxConfFiles, observe, log } = options;
  const chain = createChain(
    createStartPlugin({ spawner: options.spawner, binDirs: options.binDirs, timeoutMs: options.pluginTimeoutMs }),
    files.callsAt,
  );
  const order = createOrder();
  const startsFirst = createStartsFirst(availableParallelism(), DEL_PLACE_MS);
  const attemptsDir = join(options.stateDir, ATTEMPTS_DIRECTORY);
  const calls = files.callsAt(attemptsDir);
  const { promise: failed, resolve: fail } = Promise.withResolvers<Error>();

  /** Resolves with whether this pod's ADD was begun before and not undone since. */
  const beginAttempt = async (podSandboxId: string): Promise<boolean> => {
    try {
      closeDescriptor(await calls.open(join(attemptsDir, podSandboxId), BEGUN_FLAGS, 0o600));
      return false;
    } catch (error) {
      if (errorCodeOf(error) === 'EEXIST') return true;
      throw new FailureError('HostFailed', `Can't note the start of a CNI ADD in ${attemptsDir}: ${messageOf(error)}`);
    }
  };

  const endAttempt = async (podSandboxId: string): Promise<void> => {
    try {
      await calls.unlink(join(attemptsDir, podSandboxId));
    } catch (error) {
      if (errorCodeOf(error) !== 'ENOENT') throw error;
    }
  };

  /** The network that a pod of this one would get today: the one of that name, where handlers have their own. */
  const inForce = ({ confList: { name } }: PodNetwork): CniConfList | null => {
    const networks = watches.flatMap((watch) => watch.current().network?.confList ?? []);
    return networks.find((confList) => confList.name === name) ?? main.current().network?.confList ?? null;
  };

  /** `first`: the first plugin, where it waits already. */
  const attach = async (
    { network }: EffectOf<'AttachNetwork'>,
    { signal }: EffectContext,
    first: StartedPlugin | null,
  ): Promise<EffectResults['AttachNetwork']> => {
    const problem = identifierProblem(network);
    if (problem !== null) throw new FailureError('InvalidField', `The pod can't be given to CNI plugins: ${problem}.`);
    return order.perKey(network.podSandboxId, async () => {
      try {
        const isBegun = (await beginAttempt(network.podSandboxId)) || first?.hasActed() === true;
        if (isBegun) await chain.del(network, null, inForce(network), signal);
        const { result, ips } = await startsFirst.add(() => chain.add(network, signal, isBegun ? null : first));
        return { ips: orderIps(ips, options.ipPreference), result };
      } finally {
        first?.drop();
      }
    });
  };

  /** The first plugin waits until the pod's namespace is there. */
  const getReadyToAttach: Perform<'AttachNetwork'>['getReady'] = (effect, signal) => {
    const first = identifierProblem(effect.network) === null ? chain.startFirst(effect.network, signal) : null;
    return first && { perform: (context) => attach(effect, context, first), drop: first.drop };
  };

  const effects: CniAdapter['effects'] = {
    AttachNetwork: Object.assign(
      (effect: EffectOf<'AttachNetwork'>, context: EffectContext) => attach(effect, context, null),
      { getReady: getReadyToAttach },
    ),
    DetachNetwork: async ({ network, result }, { signal }) => {
      // No plugin was ever run with such identifiers: AttachNetwork refuses them.
      if (identifierProblem(network) !== null) return {};
      await order.perKey(network.podSandboxId, async () => {
        await startsFirst.del(() => chain.del(network, result, inForce(network), signal));
        await endAttempt(network.podSandboxId);
      });
      return {};
    },
  };

  const shared = { maxConfFiles, observe, log, fail };
  const main = createNetworkWatch({ ...shared, confDir });
  const watches = [main, ...handlers.map((own) => createNetworkWatch({ ...shared, ...own }))];

  return {
    effects,
    start: async () => {
      await files.makeDirectory(attemptsDir, 0o700);
      await Promise.all(watches.map((watch) => watch.start()));
    },
    check: (network, result) => order.perKey(network.podSandboxId, () => chain.check(network, result)),
    gc: async (validAttachments) => {
      const networks = watches.flatMap((watch) => watch.current().network ?? []);
      const named = new Map(
        networks.filter(({ disableGC }) => !disableGC).map(({ confList }) => [confList.name, confList]),
      );
      for (const confList of named.values()) await order.alone(() => chain.gc(confList, validAttachments()));
    },
    status: async () => {
      const { network, problem } = main.current();
      if (network === null) return { networkName: null, problem };
      const { confList } = network;
      return { networkName: confList.name, problem: await chain.status(confList) };
    },
    failed,
    close: () => {
      for (const watch of watches) watch.close();
    },
  };
};
