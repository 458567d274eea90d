/** Who waits for a pod to be made, and how it is recorded that it is undone and for what. */
import type { Failure } from '../model/errors.ts';
import { type CallMethod, type Event, type PodUndoCause, sandboxStream } from '../model/records.ts';
import { rulesOf } from '../model/rules.ts';
import { emit, type Turn } from './turn.ts';

/** The calls that wait for a pod to be READY. */
export const CREATIONS = ['RunPodSandbox', 'RestorePod'] as const satisfies readonly CallMethod[];

export function failPod(turn: Turn, podSandboxId: string, failure: Failure, cause: PodUndoCause): void {
  const failed: Event = {
    type: 'sandbox.failed',
    body: { failure, ...(rulesOf(turn.state) < 5 ? {} : { cause }) },
  };
  emit(turn, sandboxStream(podSandboxId), failed);
}
