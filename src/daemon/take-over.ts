/**
 * What a start finds and takes over, before anything is made of it:
 *
 *   own cgroup, lock ─┬──> check and fold the journal ──> who died, host facts, … ──┬──> taken over
 *                     └──> spawner (the old one has to be gone first) ──────────────┘
 *
 * Throws when another daemon is here. Decides nothing: recovery begins with what the engine is told of this.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { createSecretVault, type SecretVault } from '../adapters/bundle/secrets.ts';
import { readHostFacts } from '../platform/linux/host-facts.ts';
import { obstacleToUserNamespaces } from '../platform/linux/mapped-ids.ts';
import { installPause, pauseRootfsIn } from '../adapters/pause/install.ts';
import { startSpawner } from '../platform/spawner/client.ts';
import type { Spawner } from '../platform/spawner/types.ts';
import type { Config } from '../config/config.ts';
import { isFullDisk, messageOf } from '../domain/model/errors.ts';
import { namesIn } from '../platform/linux/files.ts';
import type { JournalDoubt } from '../domain/model/notes.ts';
import type { NodeFacts } from '../domain/model/node-facts.ts';
import { createDiskGuard, type DiskGuard, type DiskGuardOptions } from '../journal/disk-space.ts';
import { createDiskNews, type DiskNews } from './disk-news.ts';
import { claimPlaceOfPods } from './claim-places.ts';
import { findDead } from './find-dead.ts';
import { allSettled, type Opened } from './closing.ts';
import type { Findings, Report } from './findings.ts';
import { type OpenedNode, openNode } from './open-node.ts';
import { callsUnderWay, pidLeftIn, type Traces } from './silent-death/report.ts';
import { type OwnCgroup, joinOwnCgroup } from './own-cgroup.ts';

/** How long the previous daemon's spawner may take to end what it was running. */
const SPAWNER_WAIT_MS = 60_000;

export interface TakenOver extends OpenedNode {
  readonly journalPath: string;
  /** Of the daemon before. */
  readonly traces: Traces;
  readonly ownCgroup: OwnCgroup;
  readonly node: NodeFacts;
  /** What keeps pods from having users of their own; null: nothing does. */
  readonly obstacle: Awaited<ReturnType<typeof obstacleToUserNamespaces>>;
  /** Ids of tasks whose process is gone, and of pods that lack a namespace. */
  readonly dead: readonly string[];
  readonly pauseRootfs: string;
  readonly vault: SecretVault;
  readonly diskGuard: DiskGuard;
  readonly diskNews: DiskNews;
  readonly spawner: Spawner;
}

interface Surroundings {
  readonly opened: Opened;
  readonly findings: Findings;
  readonly report: Report;
  readonly log: Logger;
}

/** Root and state directory are there already. */
export async function takeOver(config: Config, surroundings: Surroundings): Promise<TakenOver> {
  const { opened, findings, report, log } = surroundings;
  const { rootDir, stateDir } = config.serve;
  const journalPath = join(rootDir, 'journal.db');
  const pidPath = join(stateDir, 'scribe.pid');
  const ownCgroup = await joinOwnCgroup(config.serve, log);
  const spawning = Promise.withResolvers<Spawner>();
  // Waited for further down; until then nobody hears it fail.
  spawning.promise.catch(() => undefined);
  const reservePath = join(rootDir, 'reserve');
  const diskNews = createDiskNews(rootDir, findings, log);
  const disk: { guard: DiskGuard | null; wasFull: boolean } = { guard: null, wasFull: false };
  const folded = openNode({
    path: journalPath,
    // This is the one daemon here from now on; the spawner's process starts while the journal is checked and folded.
    onLocked: () => spawning.resolve(openSpawner(stateDir, opened)),
    refuseReads: () => disk.guard?.isFull() ?? false,
    reservePath,
    markPath: join(stateDir, 'journal.seq'),
    onDiskFull() {
      disk.wasFull = true;
      disk.guard?.noteFull();
    },
    findings,
    log,
  });
  opened.defer(folded.journal.close);
  const doubts = [...folded.doubts, ...(folded.seq === 0 ? await doubtOfNew(rootDir) : [])];
  const traces = { lastSeq: folded.seq, pid: pidLeftIn(pidPath), underWay: callsUnderWay(folded.state) };
  opened.defer(() => rmSync(pidPath, { force: true }));
  writePid(pidPath, report);

  const [node, obstacle, dead, pauseRootfs, vault, diskGuard] = await allSettled([
    readHostFacts(),
    obstacleToUserNamespaces(config.serve),
    findDead(folded.state),
    pauseIn(join(rootDir, 'pause'), report),
    openVault(join(rootDir, 'secrets.key'), { opened, report }),
    openDiskGuard(
      {
        reservePath,
        reserveBytes: config.journal.diskReserveBytes,
        minFreeBytes: config.journal.diskReserveBytes,
        onChange: diskNews.changed,
      },
      opened,
    ),
    mkdir(join(stateDir, 'netns'), { recursive: true, mode: 0o711 }),
    // ImageFsInfo names it, and kubelet looks for it before the first image is pulled.
    mkdir(join(rootDir, 'images'), { recursive: true, mode: 0o700 }).catch((error: unknown) =>
      report(`The image store ${join(rootDir, 'images')} cannot be used: ${messageOf(error)}`),
    ),
  ]);
  claimPlaceOfPods(folded.state, config.serve, node, opened);
  disk.guard = diskGuard;
  if (disk.wasFull) diskGuard.noteFull();
  const spawner = await spawning.promise;
  log.info({ records: folded.seq, spawner: spawner.pid }, 'journal folded');
  return {
    ...folded,
    doubts,
    journalPath,
    traces,
    ownCgroup,
    node,
    obstacle,
    dead,
    pauseRootfs,
    vault,
    diskGuard,
    diskNews,
    spawner,
  };
}

/** For whoever looks for the daemon; one that nobody finds there is better than none, on a disk that others have filled. */
function writePid(path: string, report: Report): void {
  try {
    writeFileSync(path, `${process.pid}\n`);
  } catch (error) {
    if (!isFullDisk(error)) throw error;
    report(`${path} does not say which process the daemon is, for its disk is full: make room there.`);
  }
}

/** Closed at once when it is closed before it has started: what it waits for may take its time. */
async function openSpawner(stateDir: string, opened: Opened): Promise<Spawner> {
  const unwanted = new AbortController();
  const starting = startSpawner({
    lockPath: join(stateDir, 'spawner.lock'),
    startTimeoutMs: SPAWNER_WAIT_MS,
    signal: unwanted.signal,
  });
  opened.defer(async () => {
    unwanted.abort();
    const spawner = await starting.catch(() => null);
    await spawner?.close();
  });
  return starting;
}

async function openVault(
  keyPath: string,
  { opened, report }: Pick<Surroundings, 'opened' | 'report'>,
): Promise<SecretVault> {
  const vault = await createSecretVault(keyPath, { report });
  opened.defer(vault.close);
  return vault;
}

async function openDiskGuard(options: DiskGuardOptions, opened: Opened): Promise<DiskGuard> {
  const guard = await createDiskGuard(options);
  opened.defer(guard.close);
  return guard;
}

/** Without it pods that need a pause task fail, each by itself; the others and the daemon do not (C20). */
const pauseIn = (dir: string, report: (message: string) => void): Promise<string> =>
  installPause(dir).catch((error: unknown) => {
    report(`The pause program cannot be put into ${dir}, so pods that need it fail: ${messageOf(error)}`);
    return pauseRootfsIn(dir);
  });

/** A journal that begins where pods or images are already: another one was here. */
async function doubtOfNew(rootDir: string): Promise<JournalDoubt[]> {
  const traces = ['images/blobs/sha256', 'containers'];
  const left = await Promise.all(traces.map((trace) => namesIn(join(rootDir, trace)).catch(() => [])));
  if (left.every((names) => names.length === 0)) return [];
  return [{ what: `The journal began anew, but ${rootDir} has images or containers of an earlier one.` }];
}
