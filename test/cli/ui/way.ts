/**
 * A way to a server, as through a tunnel: it can be cut, with all that goes over it, or go silent, and be mended, to the same
 * server or another.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onCleanup, type Owner } from '../../support/cleanup.ts';

export interface Way {
  /** The server's address, at this end. */
  readonly url: string;
  readonly cut: () => Promise<void>;
  /** What is open, or is opened from now on, stays open, and nothing comes over it any more, mended or not. */
  readonly hush: () => void;
  /** To the server with this address; the same unless told. */
  readonly mend: (url?: string) => Promise<void>;
}

export const openWay = async (owner: Owner, url: string): Promise<Way> => {
  const open = new Set<Socket>();
  let to = Number(new URL(url).port);
  let isSilent = false;
  const server = createServer((near) => {
    if (isSilent) return void open.add(near.on('error', () => near.destroy()).resume());
    const far = connect(to, '127.0.0.1');
    for (const [one, other] of [[near, far] as const, [far, near] as const]) {
      open.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  const listen = async (port: number): Promise<void> => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  const cut = async (): Promise<void> => {
    for (const socket of open) socket.destroy();
    if (!server.listening) return;
    await new Promise((resolve) => server.close(resolve));
  };
  await listen(0);
  const { port } = server.address() as AddressInfo;
  onCleanup(owner, cut);
  const near = new URL(url);
  near.port = String(port);
  return {
    url: near.href,
    cut,
    hush: () => {
      isSilent = true;
      for (const socket of open) socket.unpipe().resume();
    },
    mend: async (other = url) => {
      to = Number(new URL(other).port);
      isSilent = false;
      if (!server.listening) await listen(port);
    },
  };
};
