/**
 * Runs a network's plugins in their order (CNI 1.1, section 3): ADD with prevResult from plugin to plugin, DEL
 * backwards and past failures, CHECK, GC and STATUS. The next one is started while one runs, and waits for its request
 * (docs/decisions/plugins-wait.md); the first may have been started before. Names plugin, network and pod in every failure.
 * Must not remember anything between calls.
 */
import type { CniConfList, CniPluginConf, PodNetwork } from '../../domain/model/cni.ts';
import { FailureError } from '../../domain/model/errors.ts';
import { sameJson } from '../../domain/values/json.ts';
import type { CallsAt } from '../../platform/linux/file-calls.ts';
import type { AttachmentEnv, CniCommand, PluginOutcome, StartedPlugin, StartPlugin } from './plugin.ts';
import { missesInVain } from './portmap-check.ts';
import { type AddResult, parseAddResult } from './result.ts';
import { cniArgsOf, runtimeConfigOf } from './runtime-config.ts';
import { CHECK_SINCE, GC_AND_STATUS_SINCE, isAtLeast } from './versions.ts';

/** f_type of the file system that namespaces live in (linux/magic.h). */
const NSFS_MAGIC = 0x6e736673;
/** What plugins answer to a command that they do not know: they have no GC, or no STATUS. */
const CODE_BAD_ENVIRONMENT = 4;
/** "Container unknown or does not exist": nothing is left to clean up (CNI 1.1, "Error"). */
const CODE_CONTAINER_UNKNOWN = 3;
/** "I/O failure" and "try again later": what a plugin does again when it is asked again. */
const PASSING_CODES: readonly number[] = [5, 11];
const RUNTIME_KEY_PREFIX = 'cni.dev/';
/**
 * What GC is told of: the first is in the library that plugins are made with, and in the specification since; the second is in
 * the text of version 1.1.0 as it was released. A plugin that finds neither takes it that nothing is valid.
 */
const VALID_ATTACHMENTS_KEYS = ['cni.dev/valid-attachments', 'cni.dev/attachments'];
/** When a pod is made, there is enough to do for all processors at first, and a plugin that is done by then needs no other one ahead. */
const AHEAD_AFTER_MS = 10;

/** One pod's attachment to a network, as GC names it. */
export interface Attachment {
  readonly containerID: string;
  readonly ifname: string;
}

export interface Chain {
  /** Starts the first plugin of an ADD, which waits; null: there is none. The pod's namespace need not be there yet. */
  readonly startFirst: (network: PodNetwork, signal: AbortSignal) => StartedPlugin | null;
  /** `first`: its first plugin, where that waits already. */
  readonly add: (network: PodNetwork, signal: AbortSignal, first: StartedPlugin | null) => Promise<AddResult>;
  /**
   * Where ADD never ended well and plugins are not installed, or refuse, `inForce` takes the place of the configuration that
   * they are named by: whatever an administrator mended, the pod could not go otherwise.
   */
  readonly del: (
    network: PodNetwork,
    result: unknown,
    inForce: CniConfList | null,
    signal: AbortSignal,
  ) => Promise<void>;
  /** Resolves with false when the network's version or disableCheck rules CHECK out. */
  readonly check: (network: PodNetwork, result: unknown) => Promise<boolean>;
  readonly gc: (confList: CniConfList, attachments: readonly Attachment[]) => Promise<void>;
  /** Why the network can't take pods now, null when it can (or its version knows no STATUS). */
  readonly status: (confList: CniConfList) => Promise<string | null>;
}

const isNetns = async (path: string, callsAt: CallsAt): Promise<boolean> => {
  try {
    return (await callsAt(path).fileSystem(path)) === NSFS_MAGIC;
  } catch {
    return false;
  }
};

const podText = (network: PodNetwork): string =>
  `pod ${network.namespace}/${network.name} (${network.podSandboxId.slice(0, 13)})`;

const failure = (command: CniCommand, networkName: string, pod: PodNetwork | null, problems: readonly string[]) => {
  const what = pod === null ? '' : ` of ${podText(pod)}`;
  return new FailureError(
    'CniFailed',
    `CNI ${command}${what} on network ${networkName} failed: ${problems.join('; ')}.`,
  );
};

/** Of a plugin that is older than the command, whatever version its configuration names. */
const isUnknownCommand = ({ code, message }: { readonly code: number | null; readonly message: string }): boolean =>
  code === CODE_BAD_ENVIRONMENT && /unknown CNI_COMMAND/i.test(message);

/** The plugin's configuration as the plugin gets it, whatever the command. */
const baseRequest = (confList: CniConfList, plugin: CniPluginConf): Record<string, unknown> => ({
  ...Object.fromEntries(Object.entries(plugin).filter(([key]) => !key.startsWith(RUNTIME_KEY_PREFIX))),
  cniVersion: confList.cniVersion,
  name: confList.name,
});

const attachmentRequest = (network: PodNetwork, plugin: CniPluginConf, prevResult: unknown): object => {
  const { capabilities: _, ...request } = baseRequest(network.confList, plugin);
  const runtimeConfig = runtimeConfigOf(plugin, network);
  return {
    ...request,
    ...(runtimeConfig === null ? {} : { runtimeConfig }),
    ...(prevResult === null || prevResult === undefined ? {} : { prevResult }),
  };
};

const attachmentEnv = (network: PodNetwork, netnsPath: string): AttachmentEnv => ({
  CNI_CONTAINERID: network.podSandboxId,
  CNI_NETNS: netnsPath,
  CNI_IFNAME: network.ifName,
  CNI_ARGS: cniArgsOf(network),
});

type PluginFailure = Exclude<PluginOutcome, { readonly ok: true }>;

interface Trouble {
  readonly problem: string;
  /** Nothing else will come of asking again with the same configuration. */
  readonly lasting: boolean;
}

/** A plugin that gave no answer, as it took too long or was killed, may give one the next time. */
const isLasting = ({ missing, code }: PluginFailure): boolean =>
  missing || (code !== null && !PASSING_CODES.includes(code));

/** What a row of plugins is started with. */
interface Row {
  readonly command: CniCommand;
  readonly attachment: AttachmentEnv | null;
  readonly signal?: AbortSignal;
}

/**
 * Runs plugins one after the other, each on what `requestOf` makes when its turn has come. `heard` is told how each went; when it
 * throws, no more are run.
 */
const createRow =
  (startPlugin: StartPlugin) =>
  async (
    plugins: readonly CniPluginConf[],
    row: Row,
    requestOf: (plugin: CniPluginConf) => object,
    heard: (outcome: PluginOutcome, plugin: CniPluginConf) => void,
    first: StartedPlugin | null = null,
  ): Promise<void> => {
    const ahead: StartedPlugin[] = first === null ? [] : [first];
    const start = ({ type }: CniPluginConf): StartedPlugin => startPlugin({ ...row, plugin: type });
    try {
      for (const [at, plugin] of plugins.entries()) {
        const outcome = (ahead.pop() ?? start(plugin)).run(requestOf(plugin));
        const next = plugins[at + 1];
        const timer = next === undefined ? undefined : setTimeout(() => ahead.push(start(next)), AHEAD_AFTER_MS);
        try {
          heard(await outcome, plugin);
        } finally {
          clearTimeout(timer);
        }
      }
    } finally {
      ahead.pop()?.drop();
    }
  };

const createStartFirst =
  (startPlugin: StartPlugin): Chain['startFirst'] =>
  (network, signal) => {
    const plugin = network.confList.plugins[0]?.type;
    const attachment = attachmentEnv(network, network.netnsPath);
    return plugin === undefined ? null : startPlugin({ command: 'ADD', attachment, signal, plugin });
  };

export const createChain = (startPlugin: StartPlugin, callsAt: CallsAt): Chain => {
  const inRow = createRow(startPlugin);

  const add = async (network: PodNetwork, signal: AbortSignal, first: StartedPlugin | null): Promise<AddResult> => {
    const { confList, netnsPath, ifName } = network;
    if (!(await isNetns(netnsPath, callsAt))) {
      throw failure('ADD', confList.name, network, [`${netnsPath} is no network namespace`]);
    }
    const attachment = attachmentEnv(network, netnsPath);
    const results: AddResult[] = [];
    await inRow(
      confList.plugins,
      { command: 'ADD', attachment, signal },
      (plugin) => attachmentRequest(network, plugin, results.at(-1)?.result),
      (outcome, { type }) => {
        if (!outcome.ok) throw failure('ADD', confList.name, network, [`plugin ${type} ${outcome.message}`]);
        try {
          results.push(parseAddResult(outcome.stdout, confList.cniVersion, ifName));
        } catch (error) {
          const problem = `plugin ${type} succeeded, but its result ${(error as Error).message}`;
          throw failure('ADD', confList.name, network, [problem]);
        }
      },
      first,
    );
    const last = results.at(-1);
    if (last === undefined || last.ips.length === 0) {
      throw failure('ADD', confList.name, network, [`the plugins gave ${ifName} no address`]);
    }
    return last;
  };

  const tryDel = async (network: PodNetwork, result: unknown, signal: AbortSignal): Promise<readonly Trouble[]> => {
    const { confList, netnsPath } = network;
    // A namespace that is gone took its interfaces along; the empty path tells plugins to clean up the rest.
    const attachment = attachmentEnv(network, (await isNetns(netnsPath, callsAt)) ? netnsPath : '');
    const prevResult = isAtLeast(confList.cniVersion, CHECK_SINCE) ? result : null;
    const troubles: Trouble[] = [];
    await inRow(
      confList.plugins.toReversed(),
      { command: 'DEL', attachment, signal },
      (plugin) => attachmentRequest(network, plugin, prevResult),
      (outcome, { type }) => {
        if (!outcome.ok && outcome.code !== CODE_CONTAINER_UNKNOWN)
          troubles.push({ problem: `plugin ${type} ${outcome.message}`, lasting: isLasting(outcome) });
      },
    );
    return troubles;
  };

  const del: Chain['del'] = async (network, result, inForce, signal) => {
    const troubles = await tryDel(network, result, signal);
    if (troubles.length === 0) return;
    const neverAttached = result === null || result === undefined;
    const mended = inForce !== null && !sameJson(inForce, network.confList);
    if (neverAttached && mended && troubles.every(({ lasting }) => lasting)) {
      const others = await tryDel({ ...network, confList: inForce }, null, signal);
      if (others.length === 0) return;
    }
    const problems = troubles.map(({ problem }) => problem);
    throw failure('DEL', network.confList.name, network, problems);
  };

  const check = async (network: PodNetwork, result: unknown): Promise<boolean> => {
    const { confList, netnsPath } = network;
    if (confList.disableCheck === true || !isAtLeast(confList.cniVersion, CHECK_SINCE)) return false;
    const attachment = attachmentEnv(network, netnsPath);
    await inRow(
      confList.plugins,
      { command: 'CHECK', attachment },
      (plugin) => attachmentRequest(network, plugin, result),
      (outcome, { type }) => {
        if (outcome.ok || missesInVain(type, outcome.message, result)) return;
        throw failure('CHECK', confList.name, network, [`plugin ${type} ${outcome.message}`]);
      },
    );
    return true;
  };

  /** What is asked of a network and not of a pod: of all plugins that know the command. */
  const problemsOf = async (
    { plugins }: CniConfList,
    command: 'GC' | 'STATUS',
    requestOf: (plugin: CniPluginConf) => object,
  ): Promise<readonly string[]> => {
    const problems: string[] = [];
    await inRow(plugins, { command, attachment: null }, requestOf, (outcome, { type }) => {
      if (!outcome.ok && !isUnknownCommand(outcome)) problems.push(`plugin ${type} ${outcome.message}`);
    });
    return problems;
  };

  const gc = async (confList: CniConfList, attachments: readonly Attachment[]): Promise<void> => {
    if (!isAtLeast(confList.cniVersion, GC_AND_STATUS_SINCE)) return;
    const requestOf = (plugin: CniPluginConf): object => ({
      ...baseRequest(confList, plugin),
      ...Object.fromEntries(VALID_ATTACHMENTS_KEYS.map((key) => [key, attachments])),
    });
    const problems = await problemsOf(confList, 'GC', requestOf);
    if (problems.length > 0) throw failure('GC', confList.name, null, problems);
  };

  const status = async (confList: CniConfList): Promise<string | null> => {
    if (!isAtLeast(confList.cniVersion, GC_AND_STATUS_SINCE)) return null;
    const problems = await problemsOf(confList, 'STATUS', (plugin) => baseRequest(confList, plugin));
    return problems.length === 0 ? null : failure('STATUS', confList.name, null, problems).message;
  };

  return { startFirst: createStartFirst(startPlugin), add, del, check, gc, status };
};
