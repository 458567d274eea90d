/** What answers are made from: the moment that is asked about, and the story of a container. Pure. */
import { containerStream, type Sequenced } from '../../domain/model/records.ts';
import type { Container, NodeState } from '../../domain/model/state.ts';
import { silentShimOf } from '../../projections/silent-shims.ts';
import { bytes, counted } from '../format.ts';
import type { Fact } from './answer.ts';
import type { Names } from '../history/names.ts';
import { type EventOf, firstOf, lastOf, type Records } from './records.ts';
import { type Step, stepsOf } from './steps.ts';

export interface About {
  readonly records: Records;
  readonly names: Names;
  readonly state: Readonly<NodeState>;
  /** The moment that is asked about. */
  readonly nowNs: bigint;
}

export interface ContainerStory {
  readonly id: string;
  readonly events: readonly Sequenced[];
  readonly steps: readonly Step[];
  readonly requested: EventOf<'container.requested'> | null;
  /** null: it is gone, or was never there. */
  readonly present: Container | null;
}

export const containerStory = ({ records, state }: About, id: string): ContainerStory => {
  const events = records.ofStream(containerStream(id));
  return {
    id,
    events,
    steps: stepsOf(events),
    requested: firstOf(events, 'container.requested'),
    present: state.containers.get(id) ?? null,
  };
};

/** What cgroup v1 says where there is no limit is more than any machine has. */
const LIMIT_MAX = 2 ** 60;

const limitWords = (limit: string | undefined): string =>
  limit === undefined || limit === '0' || Number(limit) > LIMIT_MAX
    ? 'it has no limit of its own'
    : `its limit is ${bytes(Number(limit))}`;

/** The limit that it ran into, and what it used. */
export const memoryWords = ({ events, requested }: ContainerStory): string => {
  const told = lastOf(events, 'task.exited')?.body.exit.memory;
  const resources = lastOf(events, 'container.updated')?.body.resources ?? requested?.body.config.linux?.resources;
  const used = told?.peakBytes === undefined ? '' : `, at most ${bytes(Number(told.peakBytes))} used`;
  return `${limitWords(told?.limitBytes ?? resources?.memoryLimitInBytes)}${used}`;
};

const silenceIn = ({ state }: About, podSandboxId: string | undefined) => {
  const sandbox = state.sandboxes.get(podSandboxId ?? '');
  return sandbox === undefined ? null : silentShimOf(sandbox);
};

/** What is said of a pod, or of a container in it, may have changed since its shim was heard last. */
export const silenceWords = (about: About, podSandboxId: string | undefined): string =>
  silenceIn(about, podSandboxId) === null ? '' : ', as far as is known: its shim does not answer';

export const silenceFacts = (about: About, podSandboxId: string | undefined): Fact[] => {
  const silent = silenceIn(about, podSandboxId);
  if (silent === null) return [];
  const times = counted(silent.silences, 'time');
  return [
    { name: 'shim', text: `process ${silent.pid} gave no answer, ${times} in a row; it is asked again by itself` },
  ];
};
