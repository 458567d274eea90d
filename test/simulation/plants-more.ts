/** More bugs to be found: of liveness, order, restarts and acknowledging. Those that clients hear of are in model/. */
import { isClosedStream } from '../../src/domain/turn/closed-streams.ts';
import { altered, withEvents, withoutEffects } from './altered.ts';
import type { Plant } from './plant.ts';
import { containerExitOf, isRunning } from '../../src/domain/model/container-state.ts';

const LIVENESS: readonly Plant[] = [
  {
    name: 'an undo that is not tried again',
    decide: withoutEffects((intent) => intent.kind === 'WaitUntil' && intent.purpose === 'retry'),
  },
  {
    name: 'a creation that nobody claims and nobody undoes',
    decide: withoutEffects((intent) => intent.kind === 'WaitUntil' && intent.purpose === 'claim'),
  },
  {
    name: 'a grace period that does not end',
    decide: withoutEffects((intent) => intent.kind === 'WaitUntil' && intent.purpose === 'grace'),
  },
  {
    name: 'a killed task whose end nobody asks for',
    decide: withoutEffects((intent) => intent.kind === 'WaitUntil' && intent.purpose === 'exit'),
  },
  {
    name: 'a call that joined another and has no answer',
    decide: withEvents((event, _input, before) => {
      if (event.type !== 'call.completed' || event.call === null) return event;
      const call = before.calls.get(event.call);
      const first = [...before.calls.values()].find(({ target }) => target !== '' && target === call?.target);
      return first === undefined || first.seq === event.call ? event : null;
    }),
  },
  {
    name: 'commands of an earlier life that run on',
    target: 'effect EndExec before',
    decide: withoutEffects(({ kind }) => kind === 'EndExec'),
  },
  {
    name: 'a removed image that stays when its last container goes',
    decide: withoutEffects(({ kind }, input) => kind === 'DeleteImageContent' && input.type !== 'call.received'),
  },
];

const ORDER: readonly Plant[] = [
  {
    name: 'a network namespace that goes before its DEL',
    perform: (real) => ({
      ...real,
      async DetachNetwork(effect, context) {
        const { podSandboxId, network } = effect;
        await real.RemoveNetns({ kind: 'RemoveNetns', podSandboxId, path: network.netnsPath }, context);
        return await real.DetachNetwork(effect, context);
      },
    }),
  },
  {
    name: 'a DEL for another network than the ADD',
    perform: (real) => ({
      ...real,
      DetachNetwork: (effect, context) =>
        real.DetachNetwork({ ...effect, network: { ...effect.network, netnsPath: '/elsewhere' } }, context),
    }),
  },
  {
    name: 'a deletion that does not know what is fetched meanwhile',
    perform: (real) => ({
      ...real,
      DeleteImageContent: ({ fetching: _, ...effect }, context) => real.DeleteImageContent(effect, context),
    }),
  },
  {
    name: 'EXITED at the kill and not at the exit',
    decide: altered((events, input, before) => {
      if (input.type !== 'effect.ended' || input.body.kind !== 'KillTask' || input.body.failure !== undefined)
        return events;
      const container = before.containers.get(input.stream.slice('container/'.length));
      if (container === undefined || !isRunning(container)) return events;
      if (events.some(({ type }) => type === 'container.exited')) return events;
      const body = { exitStatus: 137, exitedAtNs: String(input.atNs), reason: 'Error', message: '' } as const;
      const { stream, atNs, monoNs, seq } = input;
      return [...events, { type: 'container.exited', body, stream, atNs, monoNs, seq, cause: seq, call: null }];
    }),
  },
];

const RESTARTS: readonly Plant[] = [
  {
    name: 'a snapshot of what is not durable yet',
    target: 'append effect.ended lost',
    snapshotOf: ({ engine, view }) => ({ state: engine.state, seq: view.seq() }),
  },
  {
    name: 'a stream that is pruned before it is closed',
    isClosed: ({ view }, stream) =>
      isClosedStream(view.state, stream) ||
      containerExitOf(view.state.containers.get(stream.slice('container/'.length))) !== null,
  },
  { name: 'tasks that died with nobody looking', deadTasks: () => [] },
  {
    name: 'shims that a restart does not ask',
    decide: withoutEffects(({ kind }, input) => kind === 'ReconnectShim' && input.type === 'daemon.started'),
  },
  {
    name: 'a removal that a restart forgets',
    decide: withEvents((event, input, before) => {
      if (input.type !== 'daemon.started' || event.type === 'call.completed') return event;
      const container = before.containers.get(event.stream.slice('container/'.length));
      return container?.goal === 'remove' ? null : event;
    }),
  },
];

const ACKNOWLEDGING: readonly Plant[] = [
  {
    name: 'an exit that is acknowledged before it is durable',
    observe: (real) => (observation) => {
      void real(observation).catch(() => undefined);
      return Promise.resolve();
    },
  },
  {
    name: 'a batch that is acknowledged with the one before',
    journal(real) {
      let before = Promise.resolve();
      return {
        ...real,
        append(records) {
          const answered = before;
          before = real.append(records);
          return answered;
        },
      };
    },
  },
];

const DISK: readonly Plant[] = [
  {
    name: 'a commit that failed and is acknowledged all the same',
    journal: (real) => ({ ...real, append: (records) => real.append(records).catch(() => undefined) }),
  },
];

export const MORE_PLANTS: readonly Plant[] = [...LIVENESS, ...ORDER, ...RESTARTS, ...ACKNOWLEDGING, ...DISK];
