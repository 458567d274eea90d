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
import { registerPlugin } from './connection.ts';
import { NO_FIGURES } from './health.ts';
import { discoverPlugins, type FoundPlugin } from './launch/discover.ts';
import { listenForPlugins } from './listen.ts';
import { keepLaunched, type Launcher } from './launch/launcher.ts';
import { startPlugin } from './launch/program.ts';
import { ownWords } from './messages/reading.ts';
import type { NriPluginChange, NriPlugins, NriPluginStatus, TakeNriUpdates } from './plugins.ts';
import { pluginName } from '../../domain/nri/plugins.ts';
import { policyOf } from './policy.ts';
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

export const createNriPlugins = (options: NriPluginsOptions): NriPlugins => {
  const { settings, version, stateDir, spawner, log, report, backoff = RESTART } = options;
  const sessions = new Map<string, Session>();
  const changes = new Subject<NriPluginChange>();
  const socketDir = join(stateDir, 'nri-launch');
  let launchers: readonly Launcher[] = [];
  let listener: UnixListener | null = null;
  let takeUpdates: TakeNriUpdates = () => Promise.resolve([]);
  let closing = false;

  const admit = async (socket: Duplex, launched: FoundPlugin | null, pidOf: () => number | null): Promise<Session> => {
    let session: Session | null = null;
    const registration = await registerPlugin(socket, {
      settings,
      version,
      launched,
      takeUpdates: async ({ update, evict }) => {
        if (session === null) throw new FailureError('WrongState', 'the plugin is not configured yet');
        return await takeUpdates({ pluginId: session.plugin.id, update, evict });
      },
    });
    const { index, name, events, nriVersion, wished } = registration;
    const policy = policyOf(settings, registration, wished);
    const { requestTimeoutMs, failurePolicy } = policy;
    const id = `${pluginName(registration)}@${randomBytes(6).toString('hex')}`;
    const plugin = {
      id,
      index,
      name,
      launched: launched !== null,
      pid: pidOf(),
      events,
      nriVersion,
      requestTimeoutMs,
      failurePolicy,
    };
    const opened = createSession(plugin, registration, policy, (message) => log.warn(message));
    session = opened;
    sessions.set(id, opened);
    void opened.closed.then((reason) => {
      sessions.delete(id);
      log.warn(`The NRI plugin ${pluginName(plugin)} is gone: ${reason}.`);
      changes.next({ kind: 'closed', pluginId: id, reason });
    });
    log.info(`The NRI plugin ${pluginName(plugin)} has registered.`);
    changes.next({ kind: 'registered', plugin });
    if (closing) await opened.shutDown(SHUTDOWN_MS);
    return opened;
  };

  const admitConnected = async (socket: Socket): Promise<void> => {
    try {
      const { pid } = peerCredentials(socket);
      await admit(socket, null, () => pid);
    } catch (error) {
      socket.destroy();
      log.warn(`What connected to NRI is no plugin that can be used: ${ownWords(messageOf(error))}.`);
    }
  };

  const launch = (found: FoundPlugin): Launcher =>
    keepLaunched(found, {
      start: (plugin) => startPlugin(plugin, { spawner, socketDir, timeoutMs: settings.registrationTimeoutMs }),
      admit: (plugin, { socket, pid }) => admit(socket, plugin, pid),
      backoff,
      report,
    });

  // By its name, as everywhere in what callers are told: which connection it was says nothing to them.
  const absent = (pluginId: string) =>
    notAsked(pluginId.replace(/@.*$/s, ''), 'closed', 'it is not connected any more');

  return {
    ask: async (pluginId, hook, request) => (await sessions.get(pluginId)?.ask(hook, request)) ?? absent(pluginId),
    synchronize: async (pluginId, pods, containers) =>
      (await sessions.get(pluginId)?.synchronize(pods, containers)) ?? absent(pluginId),
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
