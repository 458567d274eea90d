/**
 * Who is at the other end of each connection: asked of the kernel once, when it is accepted (SO_PEERCRED), and found
 * again by every call through the remote address that gRPC passes on. Must not trust anything a client says itself.
 */
import type { Socket } from 'node:net';
import { join, resolve } from 'node:path';
import { KnownError } from '../../domain/model/errors.ts';
import type { Caller } from '../../domain/model/records.ts';
import {
  readArguments,
  readExecutable,
  readProcessStat,
  readWorkingDirectory,
} from '../../platform/linux/processes.ts';
import { peerCredentials } from '../../platform/linux/syscalls.ts';

export interface Peers {
  /** Names the socket's peer; resolves once its process was looked at. Rejects when the peer has gone by then. */
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
      const isScribe = executable === process.execPath && (await isOwnCommandLine(pid));
      // Nobody would tell of its end any more, by which it is forgotten.
      if (socket.destroyed) throw new KnownError('The peer went away as soon as it had come.');
      connections += 1;
      const address = `unix:${connections}`;
      callers.set(address, {
        pid,
        uid,
        executable: executable ?? '',
        ...(isScribe ? { program: 'scribe' } : {}),
        startTicks: stat?.startTicks ?? '0',
      });
      Object.defineProperty(socket, 'remoteAddress', { value: address });
      socket.once('close', () => callers.delete(address));
    },
    callerAt: (remoteAddress) => callers.get(remoteAddress) ?? null,
  };
}

/** What bin/scribe starts: the bundle, or the sources. */
const MAINS = ['dist/main.js', 'src/cli/main.ts'];
const OWN_MAIN = new RegExp(`/(?:${MAINS.map(RegExp.escape).join('|')})$`);

/** Whether a Node runs the command line that this daemon was started by. Nothing is allowed for it: it is a name to show. */
async function isOwnCommandLine(pid: number): Promise<boolean> {
  const own = process.argv[1] ?? '';
  if (!OWN_MAIN.test(own)) return false;
  const top = resolve(own.replace(OWN_MAIN, ''));
  const [words, directory] = await Promise.all([readArguments(pid), readWorkingDirectory(pid)]);
  const script = words.slice(1).find((word) => !word.startsWith('-'));
  return script !== undefined && MAINS.some((main) => resolve(directory ?? '/', script) === join(top, main));
}
