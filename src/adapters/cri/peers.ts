/**
 * Who is at the other end of each connection: asked of the kernel once, when it is accepted (SO_PEERCRED), and found
 * again by every call through the remote address that gRPC passes on. Must not trust anything a client says itself.
 */
import type { Socket } from 'node:net';
import type { Caller } from '../../domain/records.ts';
import { readExecutable, readProcessStat } from '../linux/processes.ts';
import { peerCredentials } from '../linux/syscalls.ts';

export interface Peers {
  /** Names the socket's peer; resolves once its process was looked at. */
  readonly admit: (socket: Socket) => Promise<void>;
  /** By the remote address a call reports. */
  readonly callerAt: (remoteAddress: string) => Caller | null;
}

export function createPeers(): Peers {
  const callers = new Map<string, Caller>();
  let connections = 0;
  return {
    async admit(socket) {
      const { pid, uid } = peerCredentials(socket);
      const [executable, stat] = await Promise.all([readExecutable(pid), readProcessStat(pid)]);
      connections += 1;
      const address = `unix:${connections}`;
      callers.set(address, { pid, uid, executable: executable ?? '', startTicks: stat?.startTicks ?? '0' });
      Object.defineProperty(socket, 'remoteAddress', { value: address });
      socket.once('close', () => callers.delete(address));
    },
    callerAt: (remoteAddress) => callers.get(remoteAddress) ?? null,
  };
}
