/**
 * Bugs to be found: each replaces one piece by a faulty one. That every one of them is found, and soon, is what makes
 * a clean run of the simulator mean something.
 */
import { decide } from '../../src/domain/turn/decide.ts';
import { evolve } from '../../src/domain/turn/evolve.ts';
import type { Event, Sequenced } from '../../src/domain/model/records.ts';
import type { Plant } from './plant.ts';
import { isCreated } from '../../src/domain/model/container-state.ts';

export const PLANTS: readonly Plant[] = [
  {
    name: 'reply before commit',
    journal: (real) => ({
      ...real,
      append(records) {
        void real.append(records);
        return Promise.resolve();
      },
    }),
  },
  {
    name: 'undo from successes instead of intents',
    perform(real) {
      const attached = new Set<string>();
      return {
        ...real,
        async AttachNetwork(effect, context) {
          const result = await real.AttachNetwork(effect, context);
          attached.add(effect.podSandboxId);
          return result;
        },
        DetachNetwork: (effect, context) =>
          attached.has(effect.podSandboxId) ? real.DetachNetwork(effect, context) : Promise.resolve({}),
      };
    },
  },
  { name: 'task Delete before its exit is durable', deleteAtExit: true },
  {
    name: 'name released before its resources',
    decide(state, input) {
      const events = decide(state, input);
      for (const { id, goal, name } of state.sandboxes.values())
        if (goal !== 'run' && state.names.get(name) === id) state.names.delete(name);
      return events;
    },
  },
  {
    name: 'an exit counted twice',
    decide(state, input) {
      const events = [...decide(state, input)];
      const exited = events.find((event) => event.type === 'container.exited');
      if (exited === undefined || input.type !== 'task.exited') return events;
      const again = { ...exited, seq: input.seq + events.length + 1 } as Sequenced<Event>;
      evolve(state, again);
      return [...events, again];
    },
  },
  {
    name: 'limits that are shown and not in force',
    perform: (real) => ({ ...real, UpdateContainer: () => Promise.resolve({}) }),
  },
  {
    name: 'a container that a checkpoint left frozen',
    target: 'effect CheckpointTask half',
    perform: (real) => ({ ...real, EndCheckpoint: () => Promise.resolve({}) }),
  },
  {
    name: 'a pod that a checkpoint left frozen',
    target: 'effect CheckpointPod half',
    perform: (real) => ({ ...real, EndPodCheckpoint: () => Promise.resolve({}) }),
  },
  {
    name: 'an unpacked checkpoint that stays when its container goes',
    perform: (real, world) => ({
      ...real,
      async CleanContainer(effect, context) {
        const unpacked = [...world.unpacked];
        const result = await real.CleanContainer(effect, context);
        for (const dir of unpacked) world.unpacked.add(dir);
        return result;
      },
    }),
  },
  {
    name: 'content deleted while a container has it mounted',
    decide(state, input) {
      // Whoever looks for what still needs an image sees roots only.
      const mounting = [...state.containers.values()].filter(
        (one) => isCreated(one) && one.mountedImages !== undefined,
      );
      for (const one of mounting) state.containers.set(one.id, { ...one, mountedImages: [] });
      const events = decide(state, input);
      for (const { id, mountedImages = [] } of mounting) {
        const now = state.containers.get(id);
        if (now !== undefined) state.containers.set(id, { ...now, mountedImages });
      }
      return events;
    },
  },
  {
    name: 'a retry that starts a second pod',
    decide(state, input) {
      // The retry does not see the creation that is under way.
      if (input.type === 'call.received' && input.body.request.method === 'RunPodSandbox') {
        for (const { name, phase } of state.sandboxes.values()) if (phase === 'creating') state.names.delete(name);
      }
      return decide(state, input);
    },
  },
];
