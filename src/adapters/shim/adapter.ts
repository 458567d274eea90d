/**
 * The shim adapter: performs the effects on shims, tasks and execs by speaking to containerd shims over ttrpc, and tells
 * the engine of exits, kills for lack of memory and lost shims. Puts the parts together; decides nothing.
 */
import { mkdir, rm } from 'node:fs/promises';
import type { Logger } from 'pino';
import type { Observe, PerformEffects } from '../../engine/ports.ts';
import type { CgroupFacts } from '../../domain/model/node-facts.ts';
import type { Files } from '../../platform/linux/files.ts';
import { memoryHierarchy } from '../../platform/linux/memory-cgroup.ts';
import type { LogKeeper } from '../log-keeper/types.ts';
import type { Spawner } from '../../platform/spawner/types.ts';
import type { TaskFiguresOf } from '../stats/types.ts';
import { listenTtrpc } from '../../platform/ttrpc/server.ts';
import { checkpointTask, endCheckpoint } from './checkpoint.ts';
import { checkpointPod, endPodCheckpoint } from './pod-checkpoint.ts';
import { needCriu, readPodCheckpoint } from './read-checkpoint.ts';
import { createContainerIo } from './tasks/container-io.ts';
import type { ShimContext } from './context.ts';
import { createJoining, type Joining } from './joining.ts';
import { createDelivery } from './delivery.ts';
import { createEventsService } from './events.ts';
import { createOutputMemory } from './execs/exec-output.ts';
import { endExec, runExec } from './execs/run-exec.ts';
import type { LiveTask } from './tasks/live-task.ts';
import { createOomCounters } from './tasks/oom.ts';
import { createPace } from './process/spread-over-turns.ts';
import { shimPaths } from './paths.ts';
import { startShim, stopShim } from './process/start-and-stop.ts';
import { reconnectShim } from './process/reconnect.ts';
import { createTaskFigures } from './tasks/task-figures.ts';
import { createSandboxDetails, type SandboxDetails } from './sandbox/sandbox-details.ts';
import { startSandbox, stopSandbox } from './sandbox/sandbox-service.ts';
import { endConnected } from './process/end-shim.ts';
import { createKeptShims, type KeptShimsSettings } from './process/kept-shims.ts';
import { clearLeftShims } from './process/left-shims.ts';
import { createLiveShims } from './process/live-shims.ts';
import { createShimBinaries } from './process/shim-binary.ts';
import { streamAttach } from './execs/stream-attach.ts';
import { streamExec } from './execs/stream-exec.ts';
import { createTemporaryFiles } from './temporary-files.ts';
import { createTask, startTask } from './tasks/create-and-start.ts';
import { deleteTask, killTask } from './tasks/kill-and-delete.ts';
import { defaultTimings, type ShimTimings } from './timings.ts';
import { updateContainer } from './tasks/update.ts';

/** About 2 ms of work: a call of a client, which takes a dozen turns, gets in between. */
const RECONNECTS_PER_TURN = 1;

export type ShimEffects = Pick<
  PerformEffects,
  | 'StartShim'
  | 'StopShim'
  | 'ReconnectShim'
  | 'StartSandbox'
  | 'StopSandbox'
  | 'CreateTask'
  | 'StartTask'
  | 'KillTask'
  | 'DeleteTask'
  | 'RunExec'
  | 'EndExec'
  | 'StreamExec'
  | 'StreamAttach'
  | 'ReopenLog'
  | 'UpdateContainer'
  | 'CheckpointTask'
  | 'EndCheckpoint'
  | 'CheckpointPod'
  | 'EndPodCheckpoint'
  | 'ReadPodCheckpoint'
>;

export interface ShimAdapterOptions {
  readonly spawner: Pick<Spawner, 'run' | 'mount' | 'mountMapped' | 'unmount' | 'joinAhead'>;
  readonly logKeeper: Pick<LogKeeper, 'open' | 'reopen' | 'close' | 'attach'>;
  readonly processClientOf: ShimContext['processClientOf'];
  readonly observe: Observe;
  readonly filledArg: ShimContext['filledArg'];
  readonly execOutput: {
    /** Of one command that is run for an answer, both its streams together. */
    readonly bytesMax: number;
    /** Memory for the output of all of them. */
    readonly totalBytesMax: number;
  };
  readonly keptShims: KeptShimsSettings;
  /** Ids of shims in places of their own that pods have, by the journal: all others of the kind are ended. */
  readonly shimsInUse: ReadonlySet<string>;
  /** Ends with the boot; everything the adapter makes is below it, the shims' own sockets aside. */
  readonly stateDir: string;
  readonly files: Files;
  readonly log: Logger;
  readonly cgroup: CgroupFacts;
  /** Shims of an earlier life are asked from then on; absent: at once. */
  readonly whenServing?: Promise<void>;
  /** Where shims and OCI runtimes are looked up; the daemon's own PATH when not given. */
  readonly searchPath?: string;
  readonly timings?: Partial<ShimTimings>;
}

export interface ShimAdapter {
  readonly effects: ShimEffects;
  readonly sandboxDetails: SandboxDetails;
  readonly taskFigures: TaskFiguresOf;
  /** For work that a task is created after: what a creation waits for the kernel is then got over with. */
  readonly joining: Joining;
  /** Throws HostLacks where nothing can be restored; `what` begins the sentence. */
  readonly needCriu: (what: string) => Promise<void>;
  /** Path of the socket that shims report events to. */
  readonly eventsAddress: string;
  /** Rejects when the events server has broken down; settles on close. */
  readonly ended: Promise<void>;
  /** Lets go of all shims that pods have, which run on, ends all others, and stops listening. */
  readonly close: () => Promise<void>;
}

/** The daemon's own PATH, or the usual one where it has none: in it shims and OCI runtimes are looked up. */
export const ownSearchPath = process.env['PATH'] ?? '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const makeDirectories = async (dirs: readonly string[]): Promise<void> => {
  for (const dir of dirs) await mkdir(dir, { recursive: true, mode: 0o700 });
};

/** Prepares the adapter's directories and serves events. Knows no shim yet: ReconnectShim makes known those that run. */
export const createShimAdapter = async (options: ShimAdapterOptions): Promise<ShimAdapter> => {
  const { spawner, logKeeper, observe, stateDir, files, log, searchPath = ownSearchPath } = options;
  const timings = { ...defaultTimings, ...options.timings };
  const paths = shimPaths(stateDir);
  // Execs of an earlier daemon lost their readers with it.
  await rm(paths.execRoot, { recursive: true, force: true });
  const temporaryFiles = createTemporaryFiles(paths.temporaryDir, timings.launchMs, log);
  await temporaryFiles.removeForgotten();
  await makeDirectories([paths.ioRoot, paths.execRoot, paths.runtimeRoot, paths.shimsDir, paths.temporaryDir]);

  const delivery = createDelivery(observe, timings.retry, log);
  const pace = createPace(RECONNECTS_PER_TURN);
  const shims = createLiveShims(delivery, log);
  const tasks = new Map<string, LiveTask>();
  const counters = createOomCounters(options.cgroup);
  const left = (await files.namesIn(paths.shimsDir)).filter((id) => !options.shimsInUse.has(id));
  // Last of what may fail: nobody could close it.
  const listener = await listenTtrpc(paths.eventsSocket, createEventsService(tasks, log));
  const context: ShimContext = {
    paths,
    timings,
    log,
    shims,
    kept: createKeptShims({
      ...options.keptShims,
      answerMs: timings.keptAnswerMs,
      end: async (live) => {
        await endConnected(context, live);
        live.close();
        if (live.shim.origin !== undefined) await rm(live.shim.origin.dir, { recursive: true, force: true });
      },
      log,
    }),
    temporaryFiles,
    swept: clearLeftShims({ timings, log }, paths.shimsDir, left),
    delivery,
    tasks,
    created: new Map(),
    dumps: new Map(),
    mounts: spawner,
    reconnectTurn: async () => {
      await options.whenServing;
      await pace();
    },
    counters,
    files,
    joining: createJoining(spawner, memoryHierarchy(options.cgroup)),
    filledArg: options.filledArg,
    processClientOf: options.processClientOf,
    execOutput: { bytesMax: options.execOutput.bytesMax, memory: createOutputMemory(options.execOutput.totalBytesMax) },
    attachOutput: logKeeper.attach,
    io: createContainerIo(paths, logKeeper, files, log),
    binaries: createShimBinaries({
      spawner,
      timings,
      eventsAddress: paths.eventsSocket,
      daemonAddress: paths.eventsSocket,
      environment: { PATH: searchPath, XDG_RUNTIME_DIR: paths.temporaryDir },
      log,
    }),
  };

  return {
    effects: {
      StartShim: (effect) => startShim(context, effect),
      StopShim: (effect) => stopShim(context, effect),
      ReconnectShim: (effect) => reconnectShim(context, effect),
      StartSandbox: (effect) => startSandbox(context, effect),
      StopSandbox: (effect) => stopSandbox(context, effect),
      CreateTask: (effect) => createTask(context, effect),
      StartTask: (effect) => startTask(context, effect),
      KillTask: (effect) => killTask(context, effect),
      DeleteTask: (effect) => deleteTask(context, effect),
      RunExec: (effect, effectContext) => runExec(context, effect, effectContext),
      EndExec: (effect) => endExec(context, effect),
      StreamExec: (effect, effectContext) => streamExec(context, effect, effectContext),
      StreamAttach: (effect, effectContext) => streamAttach(context, effect, effectContext),
      CheckpointTask: (effect) => checkpointTask(context, { spawner, searchPath }, effect),
      EndCheckpoint: (effect) => endCheckpoint(context, effect),
      CheckpointPod: (effect) => checkpointPod(context, { spawner, searchPath }, effect),
      EndPodCheckpoint: (effect) => endPodCheckpoint(context, effect),
      ReadPodCheckpoint: (effect) => readPodCheckpoint({ spawner, searchPath }, effect),
      UpdateContainer: (effect) => updateContainer(context, effect),
      ReopenLog: async ({ containerId, log: { path } }) => {
        if (path !== null) await logKeeper.reopen(containerId, path);
        return {};
      },
    },
    sandboxDetails: createSandboxDetails(context),
    taskFigures: createTaskFigures(context),
    joining: context.joining,
    needCriu: (what) => needCriu({ spawner, searchPath }, what),
    eventsAddress: paths.eventsSocket,
    ended: listener.ended,
    close: async () => {
      delivery.close();
      for (const task of tasks.values()) task.discard();
      shims.close();
      temporaryFiles.close();
      await context.kept.close();
      await listener.close();
    },
  };
};
