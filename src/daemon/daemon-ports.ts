/** What scribe's own Daemon service is given: the read model as a snapshot writes it, and what is known beside it. */
import { realpathSync } from 'node:fs';
import type { NriPlugins } from '../adapters/nri/plugins.ts';
import type { DaemonPorts } from '../adapters/cri/services/scribe-daemon.ts';
import type { Engine } from '../engine/engine.ts';
import type { Clock } from '../engine/ports.ts';
import type { PublishedView } from '../engine/published-view.ts';
import type { SqliteJournal } from '../journal/sqlite-journal.ts';
import { workOwed } from '../projections/work-owed.ts';
import type { Findings } from './findings.ts';
import type { LogKeeper } from '../adapters/log-keeper/types.ts';
import type { JournalReads } from './journal-reads.ts';
import { logTroubles } from './log-troubles.ts';
import { nriPluginsReply } from './nri-status.ts';
import type { Reload } from './reload.ts';
import { type HasStates, takeSettledStates } from './live-states.ts';

/** How long a question for the state waits on a busy node for both states to be one. */
const SETTLED_WAIT_MS = 2_000;

export interface DaemonPortsSources {
  readonly rootDir: string;
  readonly engine: Pick<Engine, 'underWay'> & HasStates;
  readonly view: PublishedView;
  readonly clock: Pick<Clock, 'monoNs'>;
  readonly findings: Findings;
  readonly askLogTroubles: LogKeeper['troubles'];
  /** null: NRI is off. */
  readonly nri: Pick<NriPlugins, 'status'> | null;
  readonly journal: Pick<SqliteJournal, 'giveBack'>;
  readonly reload: Reload;
  readonly recordJournalRead: JournalReads['record'];
  /** The daemon's logger. */
  readonly log: { level: string };
}

const realOf = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
};

export function daemonPorts({
  rootDir,
  engine,
  view,
  clock,
  findings,
  askLogTroubles,
  nri,
  journal,
  reload,
  recordJournalRead,
  log,
}: DaemonPortsSources): DaemonPorts {
  const doubts = (): readonly string[] => (view.state.journalDoubts ?? []).map(({ what }) => what);
  return {
    rootDir,
    realRootDir: realOf(rootDir),
    async stateNow() {
      const { seq, shown, decidedFrom } = await takeSettledStates(view, engine, SETTLED_WAIT_MS);
      return { seq, hash: await shown, decidedFromHash: await decidedFrom };
    },
    owed: () => workOwed(view.state),
    async findings() {
      const { handlers = {}, ...main } = view.state.network;
      const problems = [main, ...Object.values(handlers)].flatMap(({ problem }) => problem ?? []);
      return [...findings.list(), ...(await logTroubles(askLogTroubles)), ...problems, ...doubts()];
    },
    doubts,
    underWay: () =>
      engine.underWay().map(({ id, kind, sinceMonoNs }) => ({
        id,
        kind,
        stream: view.state.effects.get(id)?.stream ?? '',
        ageNs: clock.monoNs() - sinceMonoNs,
      })),
    nriPlugins: () => nriPluginsReply(nri?.status() ?? null, view.state),
    compactJournal: journal.giveBack,
    reloadConfig: reload,
    recordJournalRead,
    setLogLevel(level) {
      const previous = log.level;
      log.level = level;
      return previous;
    },
  };
}
