/**
 * What a shim is told of its runtime handler when it makes a task: runc's shim in a message of its own, any other in the
 * one for all, with whatever the configuration says to it. Pure.
 */
import type { EffectOf } from '../../../domain/model/effects.ts';
import type { Any } from '../../../wire/google/protobuf/any.ts';
import { Options as RuncOptions } from '../../../wire/types/runc/options/oci.ts';
import { Options as GenericOptions } from '../../../wire/types/runtimeoptions/v1/api.ts';
import { takesRuncOptions } from '../../../domain/model/runtime-handler.ts';

const runcOptionsType = 'containerd.runc.v1.Options';
const genericOptionsType = 'runtimeoptions.v1.Options';

const anyOf = (typeUrl: string, encoded: { readonly finish: () => Uint8Array }): Any => ({
  typeUrl,
  value: Buffer.from(encoded.finish()),
});

/** `runtimeRoot` is where the OCI runtime keeps its own state; undefined where there is nothing to say. */
export const taskOptions = (
  { handler, users }: Pick<EffectOf<'CreateTask'>, 'handler' | 'users'>,
  runtimeRoot: string,
): Any | undefined => {
  const { binaryName, systemdCgroup, runcOptions, shimOptions } = handler;
  if (takesRuncOptions(handler)) {
    // The pod's root owns the pipes where the pod has users of its own: nobody else of it could use them.
    const owner = users === undefined ? {} : { ioUid: users.uids.first, ioGid: users.gids.first };
    const options = RuncOptions.fromPartial({ ...runcOptions, ...owner, binaryName, systemdCgroup, root: runtimeRoot });
    return anyOf(runcOptionsType, RuncOptions.encode(options));
  }
  if (shimOptions === undefined) return undefined;
  const configBody = Buffer.from(shimOptions.configBody);
  return anyOf(genericOptionsType, GenericOptions.encode({ ...shimOptions, configBody }));
};
