/** The adaptation as tests use it: in a directory of its own, with what it told so far. */
import { join } from 'node:path';
import { elementAt, filter, firstValueFrom, ReplaySubject, timeout } from 'rxjs';
import { createNriPlugins, type NriPluginsOptions } from '../../../src/adapters/nri/adaptation.ts';
import type {
  NriPlugin,
  NriPluginChange,
  NriPlugins,
  NriUpdatesAsked,
  TakeNriUpdates,
} from '../../../src/adapters/nri/plugins.ts';
import type { NriPluginSettings, NriSettings } from '../../../src/domain/model/nri-settings.ts';
import { startSpawner } from '../../../src/platform/spawner/client.ts';
import type { Spawner } from '../../../src/platform/spawner/types.ts';
import { type Owner, onCleanup } from '../../support/cleanup.ts';
import { tempDir } from '../../support/temp-dir.ts';

const WAIT_MS = 20_000;

export const pluginSettings = (more: Partial<NriPluginSettings>): NriPluginSettings => ({
  requestTimeoutMs: null,
  failurePolicy: null,
  missesMax: null,
  namespaces: null,
  labels: {},
  ...more,
});

const settingsIn = (dir: string): NriSettings => ({
  enabled: true,
  socketPath: join(dir, 'nri/nri.sock'),
  pluginDir: join(dir, 'plugins'),
  configDir: join(dir, 'conf.d'),
  disableConnections: false,
  registrationTimeoutMs: 5_000,
  requestTimeoutMs: 10_000,
  missesMax: 3,
  plugins: {},
  startupWaitMs: 0,
  defaultValidator: { enable: false, rules: {} },
});

export interface TestedPlugins extends NriPlugins {
  readonly dir: string;
  readonly settings: NriSettings;
  readonly reports: string[];
  readonly warnings: string[];
  /** What plugins asked for by themselves. */
  readonly asked: NriUpdatesAsked[];
  /** The first plugin of this name that registers, or has; the second is at 1. */
  readonly registered: (name: string, at?: number) => Promise<NriPlugin>;
  /** Why the plugin of this id is gone, once it is. */
  readonly gone: (id: string) => Promise<string>;
}

export interface TestedOptions {
  readonly settings?: Partial<NriSettings>;
  readonly takeUpdates?: TakeNriUpdates;
  readonly report?: NriPluginsOptions['report'];
  readonly settle?: NriPluginsOptions['settle'];
  /** Before it starts. */
  readonly prepare?: (settings: NriSettings) => Promise<void>;
}

export const startTested = async (owner: Owner, options: TestedOptions = {}): Promise<TestedPlugins> => {
  const dir = await tempDir(owner);
  const settings = { ...settingsIn(dir), ...options.settings };
  let spawner: Promise<Spawner> | null = null;
  const run: Spawner['run'] = async (request) => {
    spawner ??= startSpawner({ lockPath: join(dir, 'spawner.lock'), startTimeoutMs: 10_000 });
    return await (await spawner).run(request);
  };
  onCleanup(owner, async () => await (await spawner)?.close());
  const [reports, warnings, asked]: [string[], string[], NriUpdatesAsked[]] = [[], [], []];
  const plugins = createNriPlugins({
    settings,
    version: '1.2.3',
    stateDir: dir,
    spawner: { run },
    log: { info: () => undefined, warn: (message) => void warnings.push(message) },
    settle: options.settle ?? (() => undefined),
    steadyMs: 200,
    report: options.report ?? ((sentence) => void reports.push(sentence)),
    backoff: { firstMs: 20, lastMs: 100 },
  });
  onCleanup(owner, () => plugins.close());
  const changes = new ReplaySubject<NriPluginChange>();
  plugins.changes.subscribe(changes);
  await options.prepare?.(settings);
  await plugins.start(async (request) => {
    asked.push(request);
    return (await options.takeUpdates?.(request)) ?? [];
  });
  const nth = <K extends NriPluginChange['kind']>(
    kind: K,
    isMeant: (change: Extract<NriPluginChange, { kind: K }>) => boolean,
    at = 0,
  ): Promise<Extract<NriPluginChange, { kind: K }>> => {
    const isWanted = (change: NriPluginChange): change is Extract<NriPluginChange, { kind: K }> =>
      change.kind === kind && isMeant(change as Extract<NriPluginChange, { kind: K }>);
    return firstValueFrom(changes.pipe(filter(isWanted), elementAt(at), timeout(WAIT_MS)));
  };
  return {
    ...plugins,
    dir,
    settings,
    reports,
    warnings,
    asked,
    registered: async (name, at) => (await nth('registered', ({ plugin }) => plugin.name === name, at)).plugin,
    gone: async (id) => (await nth('closed', ({ pluginId }) => pluginId === id)).reason,
  };
};
