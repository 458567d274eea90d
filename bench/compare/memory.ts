/**
 * How much memory a daemon and its helpers take. A page that several of them share counts once, as in PSS; one that they
 * share with others counts in full, since this benchmark itself may run on the same Node binary, and would make the
 * daemon look smaller than it is. Reads /proc only.
 */
import { open, readFile } from 'node:fs/promises';
import { processes, processesInCgroups, processesOf, type DaemonDirs } from '../../test/support/leftovers.ts';

const pageBytes = 4096;
const entryBytes = 8;
/** Of the upper half of a page map's entry: the page is in memory; which page it is. */
const presentBit = 0x80000000;
const upperFrameBits = 0x007fffff;

interface MappedRange {
  readonly start: number;
  readonly pages: number;
}

export interface ProcessMemory {
  readonly pid: number;
  readonly commandLine: string;
  /** The kernel's own PSS, for reference. */
  readonly pssBytes: number;
}

export interface Memory {
  /** Pages of all the processes together, each once. */
  readonly bytes: number;
  readonly processes: readonly ProcessMemory[];
}

/** The parts of a process's address space that have any memory, and the PSS of all of it. */
const mappingsOf = (smaps: string): { readonly ranges: readonly MappedRange[]; readonly pssBytes: number } => {
  const ranges: MappedRange[] = [];
  let pssBytes = 0;
  let range: MappedRange = { start: 0, pages: 0 };
  for (const line of smaps.split('\n')) {
    const [, from, to] = /^([0-9a-f]+)-([0-9a-f]+) /.exec(line) ?? [];
    if (from !== undefined && to !== undefined) {
      const start = Number.parseInt(from, 16) / pageBytes;
      range = { start, pages: Number.parseInt(to, 16) / pageBytes - start };
      continue;
    }
    const [, field, kib] = /^(Rss|Pss): +(\d+) kB/.exec(line) ?? [];
    if (field === 'Rss' && kib !== '0') ranges.push(range);
    if (field === 'Pss') pssBytes += Number(kib) * 1024;
  }
  return { ranges, pssBytes };
};

/** Adds the page frames of one process; a process that has ended meanwhile has none. */
const addFrames = async (pid: number, frames: Set<number>): Promise<number> => {
  const { ranges, pssBytes } = mappingsOf(await readFile(`/proc/${pid}/smaps`, 'utf8'));
  await using pagemap = await open(`/proc/${pid}/pagemap`);
  for (const { start, pages } of ranges) {
    const entries = Buffer.alloc(pages * entryBytes);
    const { bytesRead } = await pagemap.read(entries, 0, entries.length, start * entryBytes);
    for (let at = 0; at < bytesRead; at += entryBytes) {
      const upper = entries.readUInt32LE(at + 4);
      if ((upper & presentBit) === 0) continue;
      const frame = (upper & upperFrameBits) * 2 ** 32 + entries.readUInt32LE(at);
      if (frame === 0) throw new Error('the kernel does not say which pages are whose: run this as root');
      frames.add(frame);
    }
  }
  return pssBytes;
};

/** The daemon, all that descends from it and all that works in its directories, but for shims and containers. */
export const daemonProcesses = async (daemonPid: number, dirs: DaemonDirs) => {
  const [all, inCgroups, named] = await Promise.all([
    processes(),
    processesInCgroups(dirs.cgroupParent),
    processesOf(dirs),
  ]);
  const own = new Set([daemonPid, ...named.map(({ pid }) => pid)]);
  for (let before = 0; before < own.size; ) {
    before = own.size;
    for (const { pid, parent } of all) if (own.has(parent)) own.add(pid);
  }
  return all.filter(
    ({ pid, commandLine }) => own.has(pid) && !inCgroups.includes(pid) && !commandLine.includes('containerd-shim'),
  );
};

/** The shims of this daemon's pods. One that is in a pod's control group counts as part of the pod. */
export const shimsOf = async (dirs: DaemonDirs, inCgroups?: readonly number[]): Promise<number[]> => {
  const ofPods = inCgroups ?? (await processesInCgroups(dirs.cgroupParent));
  return (await processes())
    .filter(({ commandLine }) => commandLine.includes('containerd-shim') && commandLine.includes(dirs.state))
    .map(({ pid }) => pid)
    .filter((pid) => !ofPods.includes(pid));
};

/** Pages of what a runtime needs for its pods, each once; the parts share some, so that all is less than their sum. */
export interface NodeMemory {
  readonly runtimeBytes: number;
  readonly shimsBytes: number;
  readonly containersBytes: number;
  readonly allBytes: number;
  readonly shims: number;
}

/** Of a process that ends meanwhile nothing is counted. */
const framesOf = async (pids: readonly number[]): Promise<Set<number>> => {
  const frames = new Set<number>();
  for (const pid of pids) await addFrames(pid, frames).catch(() => 0);
  return frames;
};

/** Measures a whole node: the daemon and its helpers, its shims, and all that runs in its containers. */
export const nodeMemoryOf = async (daemonPid: number, dirs: DaemonDirs): Promise<NodeMemory> => {
  const inCgroups = await processesInCgroups(dirs.cgroupParent);
  const runtime = (await daemonProcesses(daemonPid, dirs)).map(({ pid }) => pid);
  const shims = await shimsOf(dirs, inCgroups);
  const parts = [await framesOf(runtime), await framesOf(shims), await framesOf(inCgroups)] as const;
  const [runtimeBytes, shimsBytes, containersBytes] = [
    parts[0].size * pageBytes,
    parts[1].size * pageBytes,
    parts[2].size * pageBytes,
  ];
  const all = parts[0].union(parts[1]).union(parts[2]);
  return { runtimeBytes, shimsBytes, containersBytes, allBytes: all.size * pageBytes, shims: shims.length };
};

/** Measures the daemon with this process id, which works in these directories. */
export const memoryOf = async (daemonPid: number, dirs: DaemonDirs): Promise<Memory> => {
  const frames = new Set<number>();
  const measured: ProcessMemory[] = [];
  for (const { pid, commandLine } of await daemonProcesses(daemonPid, dirs)) {
    measured.push({ pid, commandLine, pssBytes: await addFrames(pid, frames) });
  }
  return { bytes: frames.size * pageBytes, processes: measured };
};

const peakBytesOf = async (pid: number): Promise<number> => {
  const [, kib = '0'] = /^VmHWM:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) * 1024;
};

/** The most memory that any one of those processes has ever had at a time (peak RSS), in bytes. */
export const peakOf = async (daemonPid: number, dirs: DaemonDirs): Promise<number> => {
  const found = await daemonProcesses(daemonPid, dirs);
  return Math.max(...(await Promise.all(found.map(({ pid }) => peakBytesOf(pid)))));
};
