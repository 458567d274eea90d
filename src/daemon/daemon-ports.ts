/** What scribe's own Daemon service is given: the read model as a snapshot writes it, and what is known beside it. */
import type { DaemonPorts } from '../adapters/cri/services/scribe-daemon.ts';
import { writeState } from '../domain/snapshot.ts';
import type { Engine } from '../engine/engine.ts';
import type { Clock } from '../engine/ports.ts';
import { hashOfState } from '../journal/snapshots.ts';
import type { View } from '../projections/view.ts';
import { workOwed } from '../projections/work-owed.ts';
import type { Findings } from './findings.ts';

export interface DaemonPortsSources {
  readonly rootDir: string;
  readonly engine: Pick<Engine, 'underWay'>;
  readonly view: View;
  readonly clock: Pick<Clock, 'monoNs'>;
  readonly findings: Findings;
  /** The daemon's logger. */
  readonly log: { level: string };
}

export function daemonPorts({ rootDir, engine, view, clock, findings, log }: DaemonPortsSources): DaemonPorts {
  return {
    rootDir,
    stateNow: () => ({ seq: view.seq(), hash: hashOfState(writeState(view.state)) }),
    owed: () => workOwed(view.state),
    findings() {
      const { handlers = {}, ...main } = view.state.network;
      const problems = [main, ...Object.values(handlers)].flatMap(({ problem }) => problem ?? []);
      return [...findings.list(), ...problems];
    },
    underWay: () =>
      engine.underWay().map(({ id, kind, sinceMonoNs }) => ({
        id,
        kind,
        stream: view.state.effects.get(id)?.stream ?? '',
        ageNs: clock.monoNs() - sinceMonoNs,
      })),
    setLogLevel(level) {
      const previous = log.level;
      log.level = level;
      return previous;
    },
  };
}
