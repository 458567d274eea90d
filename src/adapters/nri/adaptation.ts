/**
 * All plugins that there are: those that were launched and those that connected, each in a session of its own. Knows who
 * is there, and neither what they are told nor in which order.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { join } from 'node:path';
import { Subject } from 'rxjs';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import type { NriSettings } from '../../domain/model/nri-settings.ts';
import type { Backoff } from '../../platform/rpc/retry.ts';
import { peerCredentials } from '../../platform/linux/syscalls.ts';
import type { UnixListener } from '../../platform/linux/unix-listener.ts';
import type { Spawner } from '../../platform/spawner/types.ts';
import { type Registration, registerPlugin } from './connection.ts';
import { NO_FIGURES } from './health.ts';
import { discoverPlugins, type FoundPlugin } from './launch/discover.ts';
import { listenForPlugins } from './listen.ts';
import { keepLaunched, type Launcher, STEADY_MS, wordsFor } from './launch/launcher.ts';
import { startPlugin } from './launch/program.ts';
import { ownWords } from './messages/reading.ts';
import type { NriPlugin, NriPluginChange, NriPlugins, NriPluginStatus, TakeNriUpdates } from './plugins.ts';
import { pluginName, pluginOfId } from '../../domain/nri/plugins.ts';
import { bare } from '../../domain/values/sentence.ts';
import type { PluginName } from './plugin-names.ts';
import { type PluginPolicy, policyOf } from './policy.ts';
import { notAsked } from './request.ts';
import { createSession, type Session } from './session.ts';

export interface NriPluginsOptions {
  readonly settings: NriSettings;
  /** scribe's. */
  readonly version: string;
  readonly stateDir: string;
  readonly spawner: Pick<Spawner, 'run'>;
  readonly log: { readonly info: (message: string) => void; readonly warn: (message: string) => void };
  /** Told in a sentence what nobody may miss; what is said again and again, in other words, says what it is about. */
  readonly report: (sentence: string, about?: string) => void;
  /** Told that what was said about it is so no more. */
  readonly settle: (about: string) => void;
  /** How long a plugin has to stay for that. */
  readonly steadyMs?: number;
  /** Between the starts of a launched plugin that does not stay. */
  readonly backoff?: Backoff;
}

const SHUTDOWN_MS = 1_000;
const RESTART: Backoff = { firstMs: 1_000, lastMs: 60_000 };

const statusOf = ({ found, state, lastFailure }: Launcher): NriPluginStatus => ({
  id: null,
  index: found.index,
  name: found.name,
  launched: true,
  pid: null,
  state: state() === 'waiting' ? 'waiting' : 'starting',
  events: [],
  nriVersion: '',
  registeredNs: null,
  ...NO_FIGURES,
  lastFailure: lastFailure(),
});

const connected = (
  registration: Registration,
  { requestTimeoutMs, failurePolicy }: PluginPolicy,
  { launched, pid }: Pick<NriPlugin, 'launched' | 'pid'>,
): NriPlugin => {
  const { index, name, events, nriVersion } = registration;
  const id = `${pluginName(registration)}@${randomBytes(6).toString('hex')}`;
  return { id, index, name, launched, pid, events, nriVersion, requestTimeoutMs, failurePolicy };
};

/** What was wrong with it is told until it has stayed for a while: one that is dropped again and again is not well. */
const follow = (
  { plugin, closed, wasDropped }: Session,
  launched: FoundPlugin | null,
  { report, settle, steadyMs = STEADY_MS }: Pick<NriPluginsOptions, 'report' | 'settle' | 'steadyMs'>,
): void => {
  const words = wordsFor(launched?.path ?? pluginName(plugin));
  const timer = setTimeout(() => settle(words), steadyMs).unref();
  void closed.then((reason) => {
    clearTimeout(timer);
    // Of one that was launched the end of its program is told, with this reason.
    if (launched === null && wasDropped())
      report(`${words} was disconnected: ${reason}. It is asked nothing until it connects again.`, words);
  });
};

/** `name`: null where it did not come to saying it. */
const tellUnusable = (
  { pid, name }: { readonly pid: number | null; readonly name: string | null },
  error: unknown,
  { log, report }: Pick<NriPluginsOptions, 'log' | 'report'>,
): void => {
  const why = bare(ownWords(messageOf(error)));
  const who = `process ${pid ?? 'unknown'}`;
  if (name === null) log.warn(`What connected to NRI (${who}) is no plugin that can be used: ${why}.`);
  else report(`${wordsFor(name)} (${who}) connected, and can not be used: ${why}.`, wordsFor(name));
};

/** Those who wait for one that goes ask after it is gone; a node has some plugins, of which some connect again and again. */
const PARTED_MAX = 100;

/** Why those that went last went, for those who still want to ask them. */
const createParted = () => {
  const reasons = new Map<string, string>();
  return {
    note: (pluginId: string, reason: string): void => {
      reasons.set(pluginId, reason);
      const [oldest] = reasons.keys();
      if (reasons.size > PARTED_MAX && oldest !== undefined) reasons.delete(oldest);
    },
    /** By its name, as everywhere in what callers are told: which connection it was says nothing to them. */
    absent: (pluginId: string) => {
      const reason = reasons.get(pluginId);
      const why = reason === undefined ? '' : ` (${reason})`;
      return notAsked(pluginOfId(pluginId), 'closed', `it is not connected any more${why}`);
    },
  };
};

export const createNriPlugins = (options: NriPluginsOptions): NriPlugins => {
  const { settings, version, stateDir, spawner, log, report, backoff = RESTART } = options;
  const sessions = new Map<string, Session>();
  const parted = createParted();
  const changes = new Subject<NriPluginChange>();
  const socketDir = join(stateDir, 'nri-launch');
  let launchers: readonly Launcher[] = [];
  let listener: UnixListener | null = null;
  let takeUpdates: TakeNriUpdates = () => Promise.resolve([]);
  let closing = false;

  const admit = async (
    socket: Duplex,
    launched: FoundPlugin | null,
    pidOf: () => number | null,
    onNamed: (plugin: PluginName) => void = () => undefined,
  ): Promise<Session> => {
    let session: Session | null = null;
    const registration = await registerPlugin(socket, {
      settings,
      version,
      launched,
      onNamed,
      takeUpdates: async ({ update, evict }) => {
        if (session === null) throw new FailureError('WrongState', 'the plugin is not configured yet');
        return await takeUpdates({ pluginId: session.plugin.id, update, evict });
      },
    });
    const policy = policyOf(settings, registration, registration.wished);
    const plugin = connected(registration, policy, { launched: launched !== null, pid: pidOf() });
    const { id } = plugin;
    const opened = createSession(plugin, registration, policy, (message) => log.warn(message));
    session = opened;
    sessions.set(id, opened);
    follow(opened, launched, options);
    void opened.closed.then((reason) => {
      sessions.delete(id);
      parted.note(id, reason);
      log.warn(`The NRI plugin ${pluginName(plugin)} is gone: ${reason}.`);
      changes.next({ kind: 'closed', pluginId: id, reason });
    });
    log.info(`The NRI plugin ${pluginName(plugin)} has registered.`);
    changes.next({ kind: 'registered', plugin });
    if (closing) await opened.shutDown(SHUTDOWN_MS);
    return opened;
  };

  const admitConnected = async (socket: Socket): Promise<void> => {
    let pid: number | null = null;
    let name: string | null = null;
    try {
      ({ pid } = peerCredentials(socket));
      await admit(
        socket,
        null,
        () => pid,
        (plugin) => {
          name = pluginName(plugin);
        },
      );
    } catch (error) {
      socket.destroy();
      tellUnusable({ pid, name }, error, options);
    }
  };

  const launch = (found: FoundPlugin): Launcher =>
    keepLaunched(found, {
      start: (plugin) => startPlugin(plugin, { spawner, socketDir, timeoutMs: settings.registrationTimeoutMs }),
      admit: (plugin, { socket, pid }) => admit(socket, plugin, pid),
      backoff,
      report,
    });

  return {
    ask: async (pluginId, hook, request) =>
      (await sessions.get(pluginId)?.ask(hook, request)) ?? parted.absent(pluginId),
    synchronize: async (pluginId, pods, containers) =>
      (await sessions.get(pluginId)?.synchronize(pods, containers)) ?? parted.absent(pluginId),
    dismiss: (pluginId, reason) => sessions.get(pluginId)?.close(reason),
    changes,
    start: async (take) => {
      takeUpdates = take;
      if (!settings.disableConnections)
        listener = await listenForPlugins(settings.socketPath, (socket) => void admitConnected(socket), report);
      // What an earlier daemon was about to launch has ended with it.
      await rm(socketDir, { recursive: true, force: true });
      await mkdir(socketDir, { recursive: true, mode: 0o700 });
      launchers = (await discoverPlugins(settings, report)).map(launch);
      await Promise.all(launchers.map(({ tried }) => tried));
    },
    status: () => [
      ...[...sessions.values()].map((session) => session.status()),
      ...launchers.filter((launcher) => launcher.state() !== 'registered').map(statusOf),
    ],
    close: async () => {
      closing = true;
      const ended = launchers.map((launcher) => launcher.stop());
      await Promise.all([...sessions.values()].map((session) => session.shutDown(SHUTDOWN_MS)));
      await listener?.close();
      await Promise.all(ended);
      changes.complete();
    },
  };
};
