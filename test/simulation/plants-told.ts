/** Bugs that clients hear of: replies, codes, reasons, events, signals and times that are wrong. */
import type { Event, Sequenced } from '../../src/domain/model/records.ts';
import { altered, withEvents } from './altered.ts';
import type { Plant } from './plant.ts';

type Completed = Extract<Event, { type: 'call.completed' }>['body'];

/** Answers calls of this method as soon as they are taken up. */
const answeredAtOnce = (method: Completed['method']) =>
  altered((events, input) => {
    if (input.type !== 'call.received' || input.body.request.method !== method) return events;
    if (events.length === 0 || events.some(({ type }) => type === 'call.completed')) return events;
    const { stream, seq, atNs, monoNs } = input;
    const body: Completed = { method, code: 0, durationNs: '0' };
    const answer: Sequenced<Event> = { type: 'call.completed', body, stream, seq, atNs, monoNs, cause: seq, call: seq };
    return [...events, answer];
  });

export const TOLD_PLANTS: readonly Plant[] = [
  { name: 'a start that is answered before it', decide: answeredAtOnce('StartContainer') },
  { name: 'a stop that is answered before the exit', decide: answeredAtOnce('StopContainer') },
  { name: 'a removal that is answered before it', decide: answeredAtOnce('RemoveContainer') },
  {
    name: 'OK for a pod that could not be removed',
    decide: withEvents((event) => {
      if (event.type !== 'call.completed' || event.body.method !== 'RemovePodSandbox') return event;
      const { failure: _failure, ...body } = event.body;
      return { ...event, body: { ...body, code: 0 } };
    }),
  },
  {
    name: 'a wrong code',
    decide: withEvents((event) =>
      event.type === 'call.completed' && event.body.failure?.reason === 'WrongState'
        ? { ...event, body: { ...event.body, code: 2 } }
        : event,
    ),
  },
  {
    name: 'a failure of another kind',
    decide: withEvents((event) =>
      event.type === 'call.completed' && event.body.failure?.reason === 'WrongState'
        ? { ...event, body: { ...event.body, failure: { reason: 'NameTaken', message: '' }, code: 6 } }
        : event,
    ),
  },
  {
    name: 'a lack of memory that is shown as an error',
    decide: withEvents((event) =>
      event.type === 'container.exited' && event.body.reason === 'OOMKilled'
        ? { ...event, body: { ...event.body, reason: 'Error' } }
        : event,
    ),
  },
  {
    name: 'an exit of what never began',
    perform: (real) => ({
      ...real,
      async ReconnectShim(effect, context) {
        const { gone, tasks } = await real.ReconnectShim(effect, context);
        return { gone, tasks: tasks.map(({ neverBegan: _neverBegan, ...task }) => task) };
      },
    }),
  },
  {
    name: 'an exit at the time when it was noticed',
    decide: withEvents((event) =>
      event.type === 'container.exited'
        ? { ...event, body: { ...event.body, exitedAtNs: String(event.atNs + 1n) } }
        : event,
    ),
  },
  {
    name: 'a start that is told of twice',
    decide: altered((events) =>
      events.flatMap((event): Sequenced<Event>[] => (event.type === 'container.started' ? [event, event] : [event])),
    ),
  },
  {
    name: 'a stop signal that is sent twice',
    decide: altered((events) =>
      events.map((event): Sequenced<Event> => {
        if (event.type !== 'effects.requested') return event;
        const effects = event.body.effects.flatMap((intent) =>
          intent.kind === 'KillTask' && !intent.all ? [intent, intent] : [intent],
        );
        return { ...event, body: { effects } };
      }),
    ),
  },
  {
    name: 'a grace period that nobody gets',
    decide: withEvents((event) =>
      event.type === 'container.stopping' ? { ...event, body: { ...event.body, killAtNs: null } } : event,
    ),
  },
  {
    name: "a command's exit code that is lost",
    decide: withEvents((event) =>
      event.type === 'call.completed' && event.body.response?.exitCode !== undefined
        ? { ...event, body: { ...event.body, response: { ...event.body.response, exitCode: 0 } } }
        : event,
    ),
  },
  {
    name: 'a pull that names no image',
    decide: withEvents((event) =>
      event.type === 'call.completed' && event.body.method === 'PullImage' && event.body.response !== undefined
        ? { ...event, body: { ...event.body, response: { imageRefs: [] } } }
        : event,
    ),
  },
];
