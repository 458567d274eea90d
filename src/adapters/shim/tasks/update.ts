/**
 * UpdateContainer: puts limits in force for a task, and writes them into its bundle's spec. Safe to do again. When the
 * OCI runtime refuses a part of them, the limits from before are put in force again.
 */
import { messageOf } from '../../../domain/model/errors.ts';
import type { EffectOf, EffectResults } from '../../../domain/model/effects.ts';
import { withoutOrders } from '../../../domain/oci/annotations.ts';
import type { OciResources } from '../../../domain/model/oci.ts';
import { isNotFound } from '../../../platform/ttrpc/status.ts';
import type { Any } from '../../../wire/google/protobuf/any.ts';
import { Status } from '../../../wire/types/task/task.ts';
import { writeLimits } from '../bundle-spec.ts';
import type { ShimContext } from '../context.ts';
import { asRequestFailure, isUnreachable } from '../failures.ts';
import { checkBundlePath } from '../paths.ts';
import type { TaskClient } from '../task-client.ts';
import { onceMoreWhenClosed, stateOf } from './kill-and-delete.ts';

const resourcesType = 'types.containerd.io/opencontainers/runtime-spec/1/LinuxResources';

const asAny = (resources: OciResources): Any => ({
  typeUrl: resourcesType,
  value: Buffer.from(JSON.stringify(resources)),
});

/** A task that has ended has no limits to be changed, whatever the OCI runtime says of it. */
const hasEnded = async (context: ShimContext, client: TaskClient, containerId: string): Promise<boolean> => {
  const state = await stateOf(context, client, containerId, context.timings.callMs);
  return state === null || state.status === Status.STOPPED;
};

const updateTask = async (
  context: ShimContext,
  { podSandboxId, containerId, resources, annotations = {}, previous }: EffectOf<'UpdateContainer'>,
): Promise<void> => {
  const { shims, timings, log } = context;
  const client = await shims.clientOf(podSandboxId);
  const put = async (limits: OciResources): Promise<void> => {
    const told = { id: containerId, resources: asAny(limits), annotations: withoutOrders(annotations) };
    await client.update(told, timings.endMs);
  };
  try {
    await put(resources);
  } catch (error) {
    if (isNotFound(error)) return;
    if (isUnreachable(error)) throw error;
    if (await hasEnded(context, client, containerId)) return;
    await put(previous).catch((undoError: unknown) => {
      log.warn({ containerId, error: messageOf(undoError) }, 'limits from before a refused change are not restored');
    });
    throw error;
  }
};

export const updateContainer = async (
  context: ShimContext,
  effect: EffectOf<'UpdateContainer'>,
): Promise<EffectResults['UpdateContainer']> => {
  const { containerId, bundlePath, hasTask } = effect;
  checkBundlePath(containerId, bundlePath);
  try {
    if (hasTask) await onceMoreWhenClosed(() => updateTask(context, effect));
    await writeLimits(bundlePath, effect);
    return {};
  } catch (error) {
    throw asRequestFailure(error, `change the limits of container ${containerId}`);
  }
};
