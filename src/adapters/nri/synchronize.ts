/**
 * Telling a plugin all there is: in as few messages as hold it, within a time that grows with how much it is. Plugins of
 * the time before there were chunks still get all at once, where that fits one message.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { GrpcCode } from '../../domain/model/errors.ts';
import type { TtrpcClient } from '../../platform/ttrpc/client.ts';
import { frameDataBytesMax } from '../../platform/ttrpc/frame.ts';
import { type CalledMethod, callMethod } from '../../platform/ttrpc/method.ts';
import { TtrpcStatusError } from '../../platform/ttrpc/status.ts';
import {
  Container,
  type ContainerUpdate,
  PluginDefinition,
  PodSandbox,
  type SynchronizeResponse,
} from '../../wire/nri/api.ts';

/** What ttrpc puts around a request is less than this. */
const ENVELOPE_BYTES = 4096;
const CHUNK_BYTES_MAX = frameDataBytesMax - ENVELOPE_BYTES;
/** The loop is given back after so much. */
const ENCODED_BYTES_MAX = 64 * 1024;
/** Beside the time for a request. Plugins were seen to take 2 s for some thousand objects and more. */
const MS_PER_OBJECT = 10;

export const synchronizeTimeoutMs = (requestTimeoutMs: number, objects: number): number =>
  requestTimeoutMs + objects * MS_PER_OBJECT;

interface Chunk {
  readonly bytes: Buffer;
  readonly more: boolean;
}

/** The fields of SynchronizeRequest, each message encoded once. */
const encodeObjects = async (pods: readonly PodSandbox[], containers: readonly Container[]): Promise<Uint8Array[]> => {
  const encoders = [
    ...pods.map((pod) => () => new BinaryWriter().uint32(10).bytes(PodSandbox.encode(pod).finish()).finish()),
    ...containers.map(
      (container) => () => new BinaryWriter().uint32(18).bytes(Container.encode(container).finish()).finish(),
    ),
  ];
  const encoded: Uint8Array[] = [];
  let since = 0;
  for (const encode of encoders) {
    const bytes = encode();
    encoded.push(bytes);
    since += bytes.length;
    if (since < ENCODED_BYTES_MAX) continue;
    since = 0;
    await nextTurn();
  }
  return encoded;
};

const chunksOf = (objects: readonly Uint8Array[]): readonly Chunk[] => {
  const groups: Uint8Array[][] = [[]];
  let bytes = 0;
  for (const object of objects) {
    if (bytes + object.length > CHUNK_BYTES_MAX && bytes > 0) {
      groups.push([]);
      bytes = 0;
    }
    groups.at(-1)?.push(object);
    bytes += object.length;
  }
  return groups.map((group, at) => ({ bytes: Buffer.concat(group), more: at < groups.length - 1 }));
};

/** As the generated method, of chunks that are encoded already. */
const method: CalledMethod<Chunk, SynchronizeResponse> = {
  name: PluginDefinition.methods.synchronize.name,
  requestType: {
    encode: ({ bytes, more }) => {
      const flag = more ? new BinaryWriter().uint32(24).bool(true).finish() : Buffer.alloc(0);
      return { finish: () => Buffer.concat([bytes, flag]) };
    },
  },
  responseType: PluginDefinition.methods.synchronize.responseType,
};

/** What the plugin wants to have changed. Rejects as ttrpc does, and when the plugin takes a part for the whole. */
export const sendAll = async (
  client: TtrpcClient,
  pods: readonly PodSandbox[],
  containers: readonly Container[],
  timeoutMs: number,
): Promise<readonly ContainerUpdate[]> => {
  const chunks = chunksOf(await encodeObjects(pods, containers));
  const deadlineMs = performance.now() + timeoutMs;
  let update: readonly ContainerUpdate[] = [];
  for (const chunk of chunks) {
    const left = Math.max(1, deadlineMs - performance.now());
    const answer = await callMethod(client, PluginDefinition.fullName, method, chunk, { timeoutMs: left });
    if (chunk.more && (!answer.more || answer.update.length > 0))
      throw new TtrpcStatusError(
        GrpcCode.FAILED_PRECONDITION,
        'it takes a part of what there is for the whole: it is too old for so many pods',
      );
    ({ update } = answer);
  }
  return update;
};
