/** A unix datagram socket to listen on, as a service manager does: Node has none of its own. */
import { native } from '../../src/platform/linux/native.ts';
import { type Owner, onCleanup } from './cleanup.ts';

const nativeSocket = native<[number, number, number]>('int socket(int domain, int type, int protocol)');
const nativeBind = native<[number, Uint8Array, number]>('int bind(int fd, const void *address, unsigned int length)');
const nativeRecv = native<[number, Uint8Array, number, number]>(
  'long recv(int fd, void *bytes, size_t length, int flags)',
);
const nativeSetsockopt = native<[number, number, number, BigInt64Array, number]>(
  'int setsockopt(int fd, int level, int name, const void *value, unsigned int length)',
);
const nativeClose = native<[number]>('int close(int fd)');

const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC = 0x80002;
const SOL_SOCKET = 1;
const SO_RCVTIMEO = 20;
const WAIT_S = 25n;
const BYTES_MAX = 4096;

export interface Datagrams {
  /** The next datagram's text; rejects when none comes in time. */
  readonly next: () => Promise<string>;
}

/** Binds a path, or "@" and an abstract name. */
export const listenDatagrams = (owner: Owner, name: string): Datagrams => {
  const path = Buffer.from(name.startsWith('@') ? name : `${name}\0`);
  if (name.startsWith('@')) path[0] = 0;
  const address = Buffer.concat([Buffer.from([AF_UNIX, 0]), path]);
  const fd = nativeSocket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0);
  onCleanup(owner, () => void nativeClose(fd));
  nativeSetsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, BigInt64Array.of(WAIT_S, 0n), 16);
  if (nativeBind(fd, address, address.length) !== 0) throw new Error(`could not bind ${name}`);
  return {
    next: () =>
      new Promise((resolve, reject) => {
        const bytes = Buffer.alloc(BYTES_MAX);
        nativeRecv.async(fd, bytes, bytes.length, 0, (failure: Error | null, length: number) => {
          if (failure !== null) reject(failure);
          else if (length < 0) reject(new Error(`no datagram came to ${name}`));
          else resolve(bytes.toString('utf8', 0, length));
        });
      }),
  };
};
