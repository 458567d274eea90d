/** Containers of a pod that its kubelet asks for and does not get: their calls have records, and no container does. */
import { containerStream } from '../../domain/model/records.ts';
import { containersOf } from '../../domain/model/state.ts';
import { counted, duration } from '../format.ts';
import type { Fact } from './answer.ts';
import { failureWords } from './exit-words.ts';
import { type EventOf, isOf } from './records.ts';
import type { About } from './story.ts';

export interface RefusedContainer {
  readonly name: string;
  /** Among the newest records. */
  readonly times: number;
  readonly newest: EventOf<'call.received'>;
  readonly words: string;
}

const CREATE = 'CreateContainer';

/** The record from which on a container of that name is there; 0: there is none. */
const madeAt = ({ records, state }: About, podSandboxId: string, name: string): number => {
  const made = containersOf(state, podSandboxId).filter(({ config }) => config.metadata?.name === name);
  return Math.max(0, ...made.map(({ id }) => records.ofStream(containerStream(id))[0]?.seq ?? 0));
};

/** Those of which no attempt succeeded after the newest that failed; by name, in the order of these attempts. */
export const refusedContainers = (about: About, podSandboxId: string): readonly RefusedContainer[] => {
  const { records } = about;
  const holds = (text: string) => [{ kind: 'holds', text, isExact: true }] as const;
  const calls = records.newest([{ types: ['call.received'], allOf: [holds(`${CREATE}"`), holds(podSandboxId)] }]);
  const refused = new Map<string, RefusedContainer>();
  for (const received of calls) {
    if (!isOf(received, 'call.received')) continue;
    const { request } = received.body;
    if (request.method !== CREATE || request.podSandboxId !== podSandboxId) continue;
    const failure = records.endOf(received.seq)?.body.failure;
    if (failure == null) continue;
    const name = request.config.metadata?.name ?? '?';
    const times = (refused.get(name)?.times ?? 0) + 1;
    refused.delete(name);
    refused.set(name, { name, times, newest: received, words: failureWords(failure) });
  }
  return [...refused.values()].filter(({ name, newest }) => madeAt(about, podSandboxId, name) < newest.seq);
};

/** Behind "is ready": the newest alone, so that it stays a sentence. */
export const refusedWords = (refused: readonly RefusedContainer[]): string => {
  const newest = refused.at(-1);
  return newest === undefined ? '' : `; its container ${newest.name} cannot be created: ${newest.words}`;
};

export const refusedFacts = ({ nowNs }: About, refused: readonly RefusedContainer[]): Fact[] =>
  refused.map(({ name, times, newest, words }) => {
    const ago = duration(nowNs > newest.atNs ? nowNs - newest.atNs : 0n);
    return {
      name: 'refused',
      text: `${name}, ${counted(times, 'time')}, last ${ago} ago (record ${newest.seq}): ${words}`,
    };
  });
