/** Bugs that only show on a node that changes: its configuration, its images, its content, its pids; or where pods share shims. */
import { decide } from '../../src/domain/turn/decide.ts';
import { pinsThatShouldBe, tasksThatShouldRun } from '../../src/domain/node/expected-tasks.ts';
import { withEvents } from './altered.ts';
import type { Plant } from './plant.ts';
import { isTaken } from './world.ts';

const withSharedShim =
  (isInUse: boolean): NonNullable<Plant['perform']> =>
  (real) => ({
    ...real,
    StopShim({ shared, ...effect }, context) {
      const changed = shared === undefined ? {} : { shared: { ...shared, isInUse } };
      return real.StopShim({ ...effect, ...changed }, context);
    },
  });

export const CHANGING_PLANTS: readonly Plant[] = [
  {
    name: 'a tag that two images have',
    about: ['tagsMove'],
    decide: withEvents((event) => (event.type === 'image.untagged' ? null : event)),
  },
  {
    name: 'damage that is acknowledged and not written down',
    about: ['contentIsDamaged'],
    observe: (real) => (observation) => (observation.kind === 'ContentDamaged' ? Promise.resolve() : real(observation)),
  },
  {
    name: "everybody's network for a pod whose handler has its own",
    decide: withEvents((event, _input, before) => {
      if (event.type !== 'sandbox.requested' || event.body.handler.cni === undefined) return event;
      const { network } = event.body;
      const { confList } = before.network;
      if (network === null || confList === null) return event;
      return { ...event, body: { ...event.body, network: { ...network, confList } } };
    }),
  },
  {
    name: 'a shim that is stopped by the handler of today',
    about: ['configurationChanges'],
    perform: (real, { changing }) => ({
      ...real,
      StopShim(effect, context) {
        const today = changing.facts.handlers.find(({ name }) => name === effect.handler.name);
        return real.StopShim({ ...effect, handler: today ?? effect.handler }, context);
      },
    }),
  },
  {
    name: 'a shim that is ended under pods that share it',
    perform: withSharedShim(false),
  },
  {
    name: 'a shim that pods share and nobody ends',
    perform: withSharedShim(true),
  },
  {
    name: "a dead task whose pid is another's",
    about: ['pidsAreReused'],
    deadTasks: (found, state, world) => {
      const pins = new Set(pinsThatShouldBe(state).map(({ id }) => id));
      const taken = tasksThatShouldRun(state).filter(({ task }) => isTaken(world, task.pid));
      return found.filter((id) => pins.has(id) || !taken.some((one) => one.id === id));
    },
  },
  {
    name: 'a sandbox image that goes from under a pause task',
    about: ['configurationChanges'],
    decide(state, input) {
      // Whoever looks for what still needs an image does not see pods.
      const standing = [...state.sandboxes.values()].filter(({ image, phase }) => image !== null && phase === 'ready');
      for (const one of standing) state.sandboxes.set(one.id, { ...one, image: null });
      const events = decide(state, input);
      for (const { id, image } of standing) {
        const now = state.sandboxes.get(id);
        if (now !== undefined) state.sandboxes.set(id, { ...now, image });
      }
      return events;
    },
  },
];
