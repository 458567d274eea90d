/**
 * A CRI socket that shows the node as it was: lists and statuses are answered by the code that answers them live, from
 * a folded state; everything else is refused. Must not reach anything that changes the node.
 */
import { lstat, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { throwError } from 'rxjs';
import { createLists } from '../../adapters/cri/lists.ts';
import type { CriParts } from '../../adapters/cri/parts.ts';
import { runtimeHandlers } from '../../adapters/cri/runtime-handlers.ts';
import { type CriServer, startCriServer } from '../../adapters/cri/server.ts';
import { type Failure, FailureError } from '../../domain/model/errors.ts';
import { knownHeadOf } from '../../domain/model/error-words.ts';
import { pinnedBy } from '../../domain/image/pinned.ts';
import type { ReadModel } from '../../engine/ports.ts';
import { whyUnreachable } from '../reachable.ts';
import { SOCKET_PATH_BYTES_MAX } from '../../platform/linux/unix-listener.ts';
import { failure } from '../command.ts';
import { utcTime } from '../format.ts';
import type { PastState } from './state.ts';

export interface PastServerOptions {
  readonly past: PastState;
  readonly socketPath: string;
  readonly messageBytesMax: number;
  /** Names of images that Status of an image calls pinned, as the daemon's configuration has them. */
  readonly pinned: readonly string[];
  readonly report: (message: string) => void;
}

const refusedAt = ({ seq, atNs }: PastState): Failure => ({
  reason: 'WrongState',
  message: `The past can't be changed: this socket shows the node as of ${utcTime(atNs)}, record ${seq}.`,
});

/** What was not written down cannot be shown: numbers of what ran, events, exit codes that nobody knew yet. */
const unknownThen = ({ seq }: PastState): Failure => ({
  reason: 'WrongState',
  message: `The past can't be changed, nor measured: of record ${seq} only lists and statuses are known.`,
});

const viewOf = (past: PastState): ReadModel => {
  const never = throwError(() => failed(unknownThen(past)));
  return {
    state: past.state,
    // Nothing changes any more.
    versions: () => ({ sandboxes: 0, containers: 0, images: 0 }),
    changes: never,
    recordsOf: () => never,
  };
};

const failed = ({ reason, message }: Failure): FailureError => new FailureError(reason, message);

const partsOf = ({ past, messageBytesMax, pinned, report }: PastServerOptions): CriParts => {
  const view = viewOf(past);
  const unmeasured = (): never => {
    throw failed(unknownThen(past));
  };
  return {
    version: past.state.facts?.version ?? '',
    messageBytesMax,
    submit: async () => ({ outcome: { ok: false, failure: refusedAt(past) }, attachment: null }),
    view,
    lists: createLists(view, pinnedBy(pinned), (id, error) =>
      report(`${id} could not be encoded: ${knownHeadOf(error)}`),
    ),
    events: { subscribe: async () => unmeasured(), passedOver: () => 0 },
    noteRead: () => undefined,
    nowNs: () => past.atNs,
    statusesAtNs: () => past.atNs,
    monoNs: () => 0n,
    // What a request holds is refused with it, and kept nowhere.
    tokenOf: () => '',
    audited: (_method, _containerId, cmd) => ({ cmd }),
    seals: { labels: (entries) => entries, annotations: (entries) => entries, command: (config) => config },
    keepCredentials: () => '',
    streaming: { newId: () => '', urlFor: async () => unmeasured() },
    statsOf: async () => unmeasured(),
    statsOfAll: async () => unmeasured(),
    sandboxDetails: async () => ({}),
    podStatsOf: async () => unmeasured(),
    podMetricsOf: async () => unmeasured(),
    networkProblem: async () => null,
    // What is on the disk is of now.
    imageConfigOf: async () => null,
    // crictl asks for it to see whether there is an image service at all.
    imageFsInfo: async () => ({ imageFilesystems: [], containerFilesystems: [] }),
    runtimeHandlers: () => runtimeHandlers(past.state),
    describeConfig: () => ({}),
  };
};

/** A socket that somebody listens at, or a file that is none, stays; and no directory is made by a slip. */
const refuseUnusable = async (socketPath: string): Promise<void> => {
  const pathBytes = Buffer.byteLength(socketPath);
  if (pathBytes > SOCKET_PATH_BYTES_MAX)
    throw failure(
      `${socketPath} has ${pathBytes} bytes, and the path of a socket can have at most ${SOCKET_PATH_BYTES_MAX}: name a shorter one.`,
    );
  const dir = dirname(socketPath);
  const isDirectory = await stat(dir).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (!isDirectory) throw failure(`There is no directory ${dir}: make it, or name another path.`);
  const found = await lstat(socketPath).catch(() => null);
  if (found === null) return;
  if (!found.isSocket()) throw failure(`${socketPath} is there, and is no socket: name another path.`);
  if ((await whyUnreachable(socketPath)) === null)
    throw failure(`Somebody listens at ${socketPath} already: name another path.`);
};

/** Serves until it is closed. */
export const servePast = async (options: PastServerOptions): Promise<CriServer> => {
  await refuseUnusable(options.socketPath);
  return startCriServer({
    socketPath: options.socketPath,
    socketMode: 0o600,
    socketGid: null,
    parts: partsOf(options),
    onBug: (rpc, error) => options.report(`${rpc} failed unexpectedly: ${knownHeadOf(error)}`),
  });
};
