/**
 * Connecting to a port of a network namespace's loopback, IPv4 first and IPv6 then, as clients of forwarded ports expect.
 * The thread that does it stays where it is: only its sockets are made elsewhere.
 */
import { closeSync, openSync } from 'node:fs';
import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { messageOf } from '../../domain/model/errors.ts';
import { dial } from '../../platform/linux/dial.ts';
import { AddressFamily, openTcpSocketIn } from '../../platform/linux/syscalls.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const LOOPBACKS = [
  { host: '127.0.0.1', family: AddressFamily.inet },
  { host: '::1', family: AddressFamily.inet6 },
] as const;
const OWN_NAMESPACE = '/proc/thread-self/ns/net';

/** Each side of a forwarded connection can be closed on its own; nothing is read of a socket before it is connected. */
const connectionOf = (fd: number | undefined, onread: OnReadOpts): Socket => {
  const start = { allowHalfOpen: true, manualStart: true };
  const options: SocketConstructorOpts = { ...start, onread };
  return new Socket(fd === undefined ? options : { ...options, fd });
};

/** @param makeSocket  undefined: one of the thread's own namespace, when it connects */
const dialEither = async (
  port: number,
  onread: OnReadOpts,
  makeSocket: (family: number) => number | undefined,
): Promise<Socket> => {
  const failures: string[] = [];
  for (const { host, family } of LOOPBACKS) {
    try {
      return await dial({ host, port }, CONNECT_TIMEOUT_MS, connectionOf(makeSocket(family), onread));
    } catch (error) {
      failures.push(messageOf(error));
    }
  }
  throw new Error(failures.join('; '));
};

const withOpen = <R>(path: string, use: (fd: number) => R): R => {
  const fd = openSync(path, 'r');
  try {
    return use(fd);
  } finally {
    closeSync(fd);
  }
};

/** On the calling thread: namespaces are no files of a disk. Nothing is kept open, since the thread may end. */
const socketIn = (netnsPath: string, family: number): number =>
  withOpen(OWN_NAMESPACE, (home) => withOpen(netnsPath, (namespace) => openTcpSocketIn(namespace, home, family)));

/**
 * @param netnsPath  where the namespace is pinned; null: the daemon's own
 * @param onread  where the connection is read to
 *
 * Rejects with one error that names each address and why it was of no use.
 */
export const dialLoopback = (port: number, netnsPath: string | null, onread: OnReadOpts): Promise<Socket> =>
  dialEither(port, onread, (family) => (netnsPath === null ? undefined : socketIn(netnsPath, family)));
