/** NRI of one daemon on the simulated node: what plugins want is carried out as in the daemon, and the model hears of it. */
import { filter, NEVER, Subject } from 'rxjs';
import type { Sequenced } from '../../src/domain/model/records.ts';
import type { NriUpdate } from '../../src/domain/model/nri-views.ts';
import type { NodeState } from '../../src/domain/model/state.ts';
import { startNri } from '../../src/daemon/nri.ts';
import { updateToWire } from '../../src/adapters/nri/messages/to-wire.ts';
import type { TakeNriUpdates } from '../../src/adapters/nri/plugins.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { RecordOf } from '../../src/engine/ports.ts';
import type { History } from './history.ts';
import { askedOf, replyOf } from './seen.ts';

export interface SimulatedNri {
  /** Every published record. */
  readonly published: (records: readonly Sequenced[]) => void;
  /** A plugin wants it without having been asked. */
  readonly take: (updates: readonly NriUpdate[]) => void;
}

type Ended = RecordOf<'effect.ended'>;
const isEnd = (record: Sequenced): record is Ended => record.type === 'effect.ended';

export function startSimulatedNri(
  history: History,
  engine: Pick<Engine, 'call' | 'observe'>,
  state: Readonly<NodeState>,
  isDead: () => boolean,
): SimulatedNri {
  const { model, scheduler } = history;
  const records = new Subject<Sequenced>();
  const wanted: { take: TakeNriUpdates } = { take: () => Promise.resolve([]) };
  const log = { warn: () => undefined };
  void startNri({
    plugins: {
      ask: () => Promise.reject(new Error('effects are simulated')),
      synchronize: () => Promise.reject(new Error('effects are simulated')),
      dismiss: () => undefined,
      changes: NEVER,
      start: (take) => {
        wanted.take = take;
        return Promise.resolve();
      },
      status: () => [],
      close: () => Promise.resolve(),
    },
    observe: engine.observe,
    async submit(draft, options) {
      // Nobody calls in quiet periods, nor of a daemon that has died.
      if (history.held !== null) await new Promise<void>((resolve) => history.held?.push(resolve));
      if (isDead()) return await new Promise(() => undefined);
      const call = model.called(askedOf(draft), scheduler.nowNs());
      const reply = await engine.call(draft, options);
      if (isDead()) return await new Promise(() => undefined);
      history.guard(() => model.replied(call, replyOf(reply)))();
      return reply;
    },
    // Of all records, those of this one type are asked for.
    view: { state, recordsOf: () => records.pipe(filter(isEnd)) as never },
    log: log as never,
  });
  return {
    published: (all) => {
      for (const record of all) records.next(record);
    },
    take: (updates) =>
      void wanted
        .take({ pluginId: 'first', update: updates.map(updateToWire), evict: [] })
        .catch((error: unknown) => history.violate(error)),
  };
}
