/** How it is recorded that a pod is undone, and for what. */
import type { Failure } from '../model/errors.ts';
import { type Event, type PodUndoCause, sandboxStream } from '../model/records.ts';
import { rulesOf } from '../model/rules.ts';
import { emit, type Turn } from './turn.ts';

export function failPod(turn: Turn, podSandboxId: string, failure: Failure, cause: PodUndoCause): void {
  const failed: Event = {
    type: 'sandbox.failed',
    body: { failure, ...(rulesOf(turn.state) < 5 ? {} : { cause }) },
  };
  emit(turn, sandboxStream(podSandboxId), failed);
}
