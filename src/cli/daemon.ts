/** Asks the daemon about itself, where it runs: its live state, what it met, what is under way. */
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { StateReply } from '../wire/scribe/v1/daemon.ts';
import { SOCKET_NAME } from '../config/names.ts';
import { GrpcCode } from '../domain/model/errors.ts';
import { CliError } from './command.ts';
import { newestFacts } from './newest-facts.ts';
import { type PlaceValues, socketOf } from './places.ts';
import { whyUnreachable } from './reachable.ts';

const TIMEOUT_MS = 20_000;

/** What a daemon says of itself, or why nobody says anything. */
export type Answer =
  | { readonly state: StateReply; readonly why: null }
  | { readonly state: null; readonly why: string };

/**
 * Where the daemon of a root listens: as options or the configuration say; for a root that was named alone, where its
 * journal says that its state directory was.
 */
export const socketOfRoot = async (values: PlaceValues, journalPath: string): Promise<string> => {
  const isNamedAlone = values.socket === undefined && values.root !== undefined;
  const stateDir = isNamedAlone ? (newestFacts(journalPath)?.stateDir ?? null) : null;
  return stateDir === null ? socketOf(values) : join(stateDir, SOCKET_NAME);
};

/** Whatever links lead there. */
export const samePath = async (a: string, b: string): Promise<boolean> => {
  const [left, right] = await Promise.all([a, b].map((path) => realpath(path).catch(() => path)));
  return left === right;
};

/** Never rejects for a daemon that is down, too old or another root's: that is an answer too. */
export const askDaemon = async (socketPath: string, rootDir: string): Promise<Answer> => {
  const unreachable = await whyUnreachable(socketPath);
  if (unreachable !== null) return { state: null, why: `there is no daemon at ${socketPath}: ${unreachable}` };
  const [{ connectDaemon, RemoteError }, { DaemonDefinition }] = await Promise.all([
    import('./client.ts'),
    import('../wire/scribe/v1/daemon.ts'),
  ]);
  try {
    const daemon = await connectDaemon(socketPath);
    try {
      const state = await daemon.call(DaemonDefinition, DaemonDefinition.methods.state, {}, TIMEOUT_MS);
      if (await samePath(state.rootDir, rootDir)) return { state, why: null };
      return { state: null, why: `the daemon at ${socketPath} is that of ${state.rootDir}` };
    } finally {
      daemon.close();
    }
  } catch (error) {
    if (error instanceof RemoteError && error.code === GrpcCode.UNIMPLEMENTED) {
      return { state: null, why: `what answers at ${socketPath} is not scribe, or an older one` };
    }
    if (error instanceof CliError) return { state: null, why: error.message };
    throw error;
  }
};
