/**
 * Which creations are left alone while the journal is doubted: those of an earlier life, which may have succeeded since, and
 * run. Whatever else happens in their pod, only somebody who asks for them has them go on.
 */
import { leavesCreationsAlone } from '../model/journal-doubt.ts';
import { containerStream, sandboxStream } from '../model/records.ts';
import type { Container, PodSandbox } from '../model/state.ts';
import { CREATIONS } from './pod-failed.ts';
import { callsWaitingFor, type Turn } from './turn.ts';

export const isPodLeftAlone = (turn: Turn, { id }: Pick<PodSandbox, 'id'>): boolean =>
  leavesCreationsAlone(turn.state) && callsWaitingFor(turn, sandboxStream(id), CREATIONS).length === 0;

/** One of a pod that is being restored is asked for with its pod. */
export const isContainerLeftAlone = (turn: Turn, { id, podSandboxId }: Container): boolean =>
  isPodLeftAlone(turn, { id: podSandboxId }) &&
  callsWaitingFor(turn, containerStream(id), ['CreateContainer']).length === 0;
