/**
 * The adapters that perform effects, made and joined: which of them performs what is decided here and nowhere else. They
 * know the engine by what they may tell it (observe) only.
 */
import { setImmediate as repliesOut } from 'node:timers/promises';
import type { Logger } from 'pino';
import { createApparmor } from '../adapters/apparmor/loader.ts';
import { createBundleEffects } from '../adapters/bundle/container-files.ts';
import { createBundleWriter } from '../adapters/bundle/bundles.ts';
import { filledArg } from '../adapters/bundle/filled.ts';
import type { SecretVault } from '../adapters/bundle/secrets.ts';
import { createCniAdapter, type CniAdapter } from '../adapters/cni/adapter.ts';
import { createImagesAdapter, type ImagesAdapter } from '../adapters/images/adapter.ts';
import { defaultImageLimits } from '../adapters/images/types.ts';
import { createInspectBlockIOClass } from '../adapters/inspect/blockio-classes.ts';
import { createInspectCdiDevices } from '../adapters/inspect/cdi-devices.ts';
import { createCdiSpecs } from '../adapters/inspect/cdi-specs.ts';
import { createInspectContainer } from '../adapters/inspect/adapter.ts';
import { imageFileReader } from '../adapters/inspect/image-files.ts';
import { readSeccompProfile } from '../adapters/inspect/seccomp-file.ts';
import { callsWithin } from '../platform/linux/file-calls.ts';
import { createFiles, type Files } from '../platform/linux/files.ts';
import type { Relabel } from '../platform/linux/selinux.ts';
import { connectLogKeeper } from '../adapters/log-keeper/client.ts';
import type { LogKeeper } from '../adapters/log-keeper/types.ts';
import { createNriPlugins } from '../adapters/nri/adaptation.ts';
import { createNriEffects } from '../adapters/nri/effects.ts';
import type { NriPlugins } from '../adapters/nri/plugins.ts';
import { secretValues } from '../adapters/nri/secret-values.ts';
import { createPortForwarder, type PortForwarder } from '../adapters/port-forward/adapter.ts';
import { createSandboxEffects } from '../adapters/sandbox/files-and-netns.ts';
import { createPinEffects } from '../adapters/sandbox/pins.ts';
import { createShimAdapter, ownSearchPath, type ShimAdapter } from '../adapters/shim/adapter.ts';
import type { Spawner } from '../platform/spawner/types.ts';
import type { Config } from '../config/config.ts';
import { borrowedShimIds } from '../domain/deciding/shared-shim.ts';
import { messageOf } from '../domain/model/errors.ts';
import type { NodeFacts } from '../domain/model/node-facts.ts';
import type { NodeState } from '../domain/model/state.ts';
import type { Observe, PerformEffects } from '../engine/ports.ts';
import type { Opened } from './closing.ts';
import type { Credentials } from './credentials.ts';
import type { Report } from './findings.ts';
import type { OwnCgroup } from './own-cgroup.ts';
import type { Sessions } from './sessions/calls.ts';

interface Options {
  readonly config: Config;
  readonly version: string;
  readonly node: NodeFacts;
  readonly spawner: Spawner;
  readonly relabel: Relabel;
  readonly vault: SecretVault;
  /** As of the last life, before anything is decided. */
  readonly state: NodeState;
  readonly credentials: Pick<Credentials, 'find'>;
  readonly imageIsHere: (reference: string) => boolean;
  readonly sessions: Pick<Sessions, 'processClientOf' | 'portClientOf'>;
  readonly ownCgroup: OwnCgroup;
  readonly observe: Observe;
  /** Resolves when the engine runs: what is news before is observed then. */
  readonly whenRunning: Promise<void>;
  /** Resolves when clients can call, or that takes too long. */
  readonly whenServing: Promise<void>;
  readonly opened: Opened;
  readonly log: Logger;
  readonly report: Report;
  readonly settle: (about: string) => void;
}

export interface Performers {
  readonly perform: PerformEffects;
  readonly images: ImagesAdapter;
  readonly cni: CniAdapter;
  readonly shim: Pick<ShimAdapter, 'ended' | 'sandboxDetails' | 'taskFigures'>;
  readonly portForwarder: Pick<PortForwarder, 'endPod'>;
  /** null: NRI is off. */
  readonly nri: NriPlugins | null;
  /** Logs of containers that can't be written now. */
  readonly logTroubles: LogKeeper['troubles'];
  /** Rejects when there is no log keeper and none can be started: the daemon cannot do without. */
  readonly logKeeperThere: Promise<unknown>;
}

/** What else may be in the answer of an ExecSync, which is one message: its fields, and what marks output as cut. */
const ANSWER_BESIDE_OUTPUT_BYTES = 64 * 1024;

type OwnLogKeeper = Pick<LogKeeper, 'open' | 'reopen' | 'close' | 'attach' | 'troubles'>;

/**
 * Reaches the one of an earlier life, or starts one, which takes as long as a process of Node does: whoever has something
 * for it waits until it is there, and nobody else does.
 */
const openLogKeeper = (options: Options, files: Files): OwnLogKeeper & { readonly there: Promise<LogKeeper> } => {
  const { config, spawner, ownCgroup, observe, whenRunning, opened, log } = options;
  const connecting = connectLogKeeper({
    stateDir: config.serve.stateDir,
    files,
    spawner,
    lineBytesMax: config.logs.lineBytesMax,
    log: (message) => log.info(message),
    tell: (news) =>
      void whenRunning
        .then(() => observe(news))
        .catch((error: unknown) => log.warn({ error: messageOf(error) }, 'news of the log keeper is not recorded')),
  });
  opened.defer(() =>
    connecting.then(
      ({ disconnect }) => disconnect(),
      () => undefined,
    ),
  );
  const there = connecting.then((logKeeper) => {
    // One of an earlier life was started where that was.
    ownCgroup.takeIn(logKeeper.pid);
    return logKeeper;
  });
  // The start fails of it, but not before it has come to waiting for it.
  there.catch(() => undefined);
  return {
    there,
    open: async (request) => (await there).open(request),
    reopen: async (containerId, logPath) => (await there).reopen(containerId, logPath),
    close: async (containerId, timeoutMs) => (await there).close(containerId, timeoutMs),
    attach: async (containerId, hear) => (await there).attach(containerId, hear),
    troubles: async () => (await there).troubles(),
  };
};

const openShim = async (
  { config, node, spawner, sessions, vault, state, observe, whenServing, opened, log }: Options,
  logKeeper: OwnLogKeeper,
  files: Files,
): Promise<ShimAdapter> => {
  const { execOutputBytesMax, execOutputTotalBytesMax, requestBytesMax } = config.limits;
  const shim = await createShimAdapter({
    spawner,
    logKeeper,
    observe,
    filledArg: (arg) => filledArg(arg, vault),
    processClientOf: sessions.processClientOf,
    execOutput: {
      bytesMax: Math.min(execOutputBytesMax, requestBytesMax - ANSWER_BESIDE_OUTPUT_BYTES),
      totalBytesMax: execOutputTotalBytesMax,
    },
    keptShims: config.runtime.keptShims,
    shimsInUse: borrowedShimIds(state),
    stateDir: config.serve.stateDir,
    files,
    cgroup: node.cgroup,
    whenServing,
    log,
  });
  opened.defer(shim.close);
  return shim;
};

const openNri = ({ config, version, spawner, opened, log, report, settle }: Options): NriPlugins | null => {
  if (!config.nri.enabled) return null;
  const plugins = createNriPlugins({
    settings: config.nri,
    version,
    stateDir: config.serve.stateDir,
    spawner,
    log: { info: (message) => log.info(message), warn: (message) => log.warn(message) },
    report,
    settle,
  });
  opened.defer(plugins.close);
  return plugins;
};

/** Where NRI is off, nothing is asked for. */
const nriEffects = (
  { config, vault, log }: Options,
  plugins: NriPlugins | null,
): Pick<PerformEffects, 'CallPlugins' | 'SynchronizePlugin'> => {
  if (plugins === null)
    return { CallPlugins: async () => ({ answers: [] }), SynchronizePlugin: async () => ({ answers: [] }) };
  const valuesOf = secretValues(vault.fill, config.serve.stateDir);
  return createNriEffects({ plugins, tokenOf: vault.tokenOf, valuesOf, warn: (message) => log.warn(message) });
};

/** Starts what they need. */
export const startPerformers = async (options: Options): Promise<Performers> => {
  const { config, node, spawner, relabel, vault, credentials, sessions, observe, opened, log } = options;
  const { rootDir, stateDir } = config.serve;
  const roots = [rootDir, stateDir];
  const files = createFiles(await callsWithin(stateDir));
  const logKeeper = openLogKeeper(options, files);
  const images = await createImagesAdapter({
    root: rootDir,
    registryConfigDirs: config.images.registryConfigDirs,
    mirrorCredentials: config.images.mirrorCredentials,
    maxConcurrentDownloads: config.images.maxConcurrentDownloads,
    maxConcurrentDownloadsPerRegistry: config.images.maxConcurrentDownloadsPerRegistry,
    progress: {
      timeoutMs: config.images.pullProgressTimeoutMs ?? Number.POSITIVE_INFINITY,
      bytesMin: config.images.pullProgressBytesMin,
    },
    platform: config.images.platform ?? { os: 'linux', architecture: node.architecture },
    bootId: node.bootId,
    spawner,
    credentials: credentials.find,
    isHere: options.imageIsHere,
    log,
    trustedKeyPaths: config.checkpoint.trustedKeyPaths,
    limits: config.limits,
  });
  opened.defer(images.close);
  const cni = createCniAdapter({
    spawner,
    stateDir,
    files,
    confDir: config.cni.confDir,
    handlers: config.runtime.handlers.flatMap(({ name, cni: own }) =>
      own === undefined ? [] : [{ handler: name, ...own }],
    ),
    binDirs: config.cni.binDirs,
    pluginTimeoutMs: config.cni.pluginTimeoutMs,
    ipPreference: config.cni.ipPreference,
    maxConfFiles: config.cni.maxConfFiles,
    observe,
    log,
  });
  opened.defer(cni.close);
  const shim = await openShim(options, logKeeper, files);
  const portForwarder = createPortForwarder(sessions.portClientOf);
  const nri = openNri(options);
  const writeBundle = createBundleWriter(vault, files);
  const apparmor = createApparmor({ spawner, searchPath: ownSearchPath });
  // Nobody waits for it but containers that are to run under it, and only they can fail of it.
  if (node.apparmor)
    void apparmor.loadDefault().then((fact) => log[fact.loaded ? 'info' : 'warn'](fact, 'AppArmor profile'));
  const bundles = createBundleEffects({
    writeBundle,
    snapshots: images.snapshots,
    unpackCheckpoint: images.checkpointArchives.unpack,
    spawner,
    relabel,
    roots,
    files,
    reservedBytes: defaultImageLimits.reservedBytes,
  });
  const perform: PerformEffects = {
    ...createSandboxEffects({ spawner, writeBundle, snapshots: images.snapshots, roots, files, readSeccompProfile }),
    ...bundles,
    // Its task is created right after.
    PrepareContainer: (effect, context) => shim.joining.during(() => bundles.PrepareContainer(effect, context)),
    ...createPinEffects({ spawner, roots }),
    ...cni.effects,
    ...shim.effects,
    // It begins with the reply to CreateContainer, and starts programs that would take the processors from whoever hears that.
    CreateTask: async (effect, context) => {
      await repliesOut();
      return shim.effects.CreateTask(effect, context);
    },
    ReadCheckpoint: async ({ location, knownDigests }, { signal }) => {
      await shim.needCriu(`The checkpoint ${location}`);
      return { image: await images.checkpointArchives.readImage({ path: location, knownDigests }, signal) };
    },
    ...portForwarder.effects,
    ...nriEffects(options, nri),
    ...images.effects,
    InspectContainer: createInspectContainer({
      readImageFile: imageFileReader(images.snapshots.layerDirs),
      layerDirs: images.snapshots.layerDirs,
      inspectCdiDevices: createInspectCdiDevices({
        specs: createCdiSpecs({ dirs: config.runtime.cdiSpecDirs, log }),
        tokenOf: vault.tokenOf,
      }),
      inspectBlockIOClass: createInspectBlockIOClass(config.runtime.blockIOConfigFile),
      inspectApparmorProfile: apparmor.inspect,
    }),
  };
  const { troubles: logTroubles, there: logKeeperThere } = logKeeper;
  return { perform, images, cni, shim, portForwarder, nri, logTroubles, logKeeperThere };
};
