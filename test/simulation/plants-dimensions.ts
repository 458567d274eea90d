/** Bugs that only show where a dimension of its own is simulated: deciders that throw, mute shims, what never ends. */
import type { EffectEnded, Input, Intent } from '../../src/domain/model/records.ts';
import { withEvents, withoutEffects } from './altered.ts';
import type { Plant } from './plant.ts';

const isRetry = (intent: Intent): boolean => intent.kind === 'WaitUntil' && intent.purpose === 'retry';

/** What threw was the turn of a timer. */
const isTimer = ({ body }: Extract<Input, { type: 'turn.failed' }>): boolean =>
  body.input.type === 'effect.ended' && (body.input.body as Partial<EffectEnded>).kind === 'WaitUntil';

export const DIMENSION_PLANTS: readonly Plant[] = [
  {
    name: 'nobody looks again after a turn that threw',
    about: ['turnsThrow'],
    decide: withoutEffects((intent, input) => isRetry(intent) && input.type === 'turn.failed'),
  },
  {
    name: 'a look that threw and is the last',
    about: ['turnsThrow'],
    target: 'effect StopShim half',
    decide: withoutEffects((intent, input) => isRetry(intent) && input.type === 'turn.failed' && isTimer(input)),
  },
  {
    name: 'a mute shim that is not asked again',
    about: ['shimsAreMute'],
    target: 'append daemon.started kept',
    decide: withoutEffects(
      (intent, input) => isRetry(intent) && input.type === 'effect.ended' && input.body.kind === 'ReconnectShim',
    ),
  },
  {
    name: 'a mute shim that holds up a removal',
    about: ['shimsAreMute'],
    decide: withEvents((event) =>
      event.type === 'container.lost' && event.body.message === 'its shim does not answer' ? null : event,
    ),
  },
  {
    name: 'EXITED when a start was not answered',
    about: ['effectsHang'],
    decide: withEvents((event, input, before) => {
      if (event.type !== 'container.lost' || input.type !== 'effect.ended' || input.body.kind !== 'StartTask')
        return event;
      const container = before.containers.get(event.stream.slice('container/'.length));
      if (container === undefined) return event;
      const { message } = event.body;
      const body = { exitStatus: 128, exitedAtNs: String(input.atNs), reason: 'StartError', message } as const;
      return { ...event, type: 'container.exited', body };
    }),
  },
  {
    name: 'who waits for a pod that others stop has no answer',
    about: ['clientsMeddle'],
    decide: withEvents((event) =>
      event.type === 'call.completed' && event.body.failure?.message.includes('was stopped while') === true
        ? null
        : event,
    ),
  },
  {
    name: 'an undo that is given up after five failures',
    about: ['failuresLast'],
    decide: withoutEffects((intent, input, { sandboxes, containers }) => {
      const id = input.stream.slice(input.stream.indexOf('/') + 1);
      return isRetry(intent) && ((sandboxes.get(id) ?? containers.get(id))?.undoFailures ?? 0) >= 5;
    }),
  },
  {
    name: 'a command that runs on when nobody waits for it',
    about: ['sessionsLast'],
    perform: (real) => ({
      ...real,
      RunExec: (effect, { signal, attach }) => real.RunExec(effect, { signal, attach }),
    }),
  },
  {
    name: 'a hook that plugins are asked twice',
    about: ['pluginsAreThere'],
    decide: withEvents((event) => {
      if (event.type !== 'effects.requested') return event;
      const effects = event.body.effects.flatMap((intent): Intent[] =>
        intent.kind === 'CallPlugins' ? [intent, intent] : [intent],
      );
      return { ...event, body: { effects } };
    }),
  },
  {
    name: 'a limit that plugins want beyond the words of CRI, and the task never gets',
    about: ['pluginsAreThere'],
    perform: (real) => ({
      ...real,
      UpdateContainer: ({ resources: { pids: _pids, ...resources }, ...effect }, context) =>
        real.UpdateContainer({ ...effect, resources }, context),
    }),
  },
  {
    name: 'a session of a pod that is gone and has no answer',
    about: ['sessionsLast'],
    decide: withEvents((event, input, { sandboxes }) => {
      const isOfGonePod = input.stream.startsWith('sandbox/') && !sandboxes.has(input.stream.slice('sandbox/'.length));
      return event.type === 'call.completed' && isOfGonePod ? null : event;
    }),
  },
];
