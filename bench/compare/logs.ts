/** The phase of logs: how much containers can write to theirs, what else is answered meanwhile, and at what peak of memory. */
import type { DaemonDirs } from '../../test/support/leftovers.ts';
import type { ClientFlags, ClientResult } from './client.ts';
import { peakOf } from './memory.ts';
import type { Figures, MetricKey } from './metrics.ts';
import { percentile } from './statistics.ts';

const mebibyte = 1024 * 1024;

/** What is written to logs, by the figure that it is for; so much in all that it takes about two seconds. */
const logLoads = {
  logsShortOne: { count: 1, 'line-bytes': 80, bytes: 64 * mebibyte },
  logsShortMany: { count: 20, 'line-bytes': 80, bytes: 4 * mebibyte },
  logsLongOne: { count: 1, 'line-bytes': 8192, bytes: 256 * mebibyte },
  logsLongMany: { count: 20, 'line-bytes': 8192, bytes: 16 * mebibyte },
} as const satisfies Readonly<Partial<Record<MetricKey, ClientFlags>>>;

/** @param write  has containers write so much, and reads it back */
export const measureLogs = async (
  daemonPid: number,
  dirs: DaemonDirs,
  write: (flags: ClientFlags) => Promise<ClientResult>,
) => {
  const raw: Partial<Record<MetricKey, ClientResult>> = {};
  for (const [key, flags] of Object.entries(logLoads)) raw[key as keyof typeof logLoads] = await write(flags);
  const all = Object.values(raw);
  const rates = Object.entries(raw).map(([key, { perSecond }]) => [key, perSecond?.['megabytes'] ?? Number.NaN]);
  const figures: Figures = {
    ...(Object.fromEntries(rates) as Figures),
    logsListContainers: percentile(
      all.flatMap(({ samplesMs }) => samplesMs?.['ListContainers'] ?? []),
      99,
    ),
    logsPeak: (await peakOf(daemonPid, dirs)) / mebibyte,
  };
  return { figures, errors: all.flatMap(({ errors = [] }) => errors), raw };
};
