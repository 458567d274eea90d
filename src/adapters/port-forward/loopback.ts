/**
 * Connecting to a port of this thread's own loopback, IPv4 first and IPv6 then, as clients of forwarded ports expect,
 * and joining two streams. Used by the daemon for pods on the host's network, and by the forwarder inside of others.
 */
import type { NetConnectOpts, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { finished } from 'node:stream/promises';
import { messageOf } from '../../domain/model/errors.ts';
import { dial } from '../../platform/linux/dial.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const addresses = ['127.0.0.1', '::1'] as const;

/** Each side of a forwarded connection can be closed on its own. */
export const dialHalfOpen = (target: NetConnectOpts): Promise<Socket> =>
  dial({ ...target, allowHalfOpen: true }, CONNECT_TIMEOUT_MS);

/** Rejects with one error that names each address and why it was of no use. */
export const dialLoopback = async (port: number): Promise<Socket> => {
  const failures: string[] = [];
  for (const host of addresses) {
    try {
      return await dialHalfOpen({ host, port });
    } catch (error) {
      failures.push(messageOf(error));
    }
  }
  throw new Error(failures.join('; '));
};

/**
 * Passes everything on in both directions, each as fast as its taker, until both have ended. An end passes too; when
 * either stream breaks, both are over.
 */
export const join = async (one: Duplex, other: Duplex): Promise<void> => {
  const breakBoth = (): void => {
    one.destroy();
    other.destroy();
  };
  one.pipe(other);
  other.pipe(one);
  await Promise.all([finished(one), finished(other)]).catch(breakBoth);
  breakBoth();
};
