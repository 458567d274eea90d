/**
 * A program: a link that takes time, in front of a server on loopback. Hands on every piece half a turn later, each way and
 * in order; a new connection takes a turn before it carries anything, as with TCP (TLS would take one or two more).
 * Prints where it listens. Loses nothing, and knows no bandwidth.
 *
 *     node bench/compare/slow-link.ts HOST:PORT TURN_MS
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const [server = '', turn = ''] = process.argv.slice(2);
const [host = '', port = ''] = server.split(':');
const turnMs = Number(turn);

/** Each thing in its turn, though timers that end in the same millisecond may come in any order. */
const handOn = (from: Socket, to: Socket, firstAfterMs: number): void => {
  const notBeforeMs = performance.now() + firstAfterMs;
  let before: Promise<void> = Promise.resolve();
  const late = (act: () => void): void => {
    const dueMs = Math.max(performance.now() + turnMs / 2, notBeforeMs);
    before = before.then(async () => {
      await sleep(Math.max(0, dueMs - performance.now()));
      if (!to.destroyed) act();
    });
  };
  from.on('data', (piece) => late(() => to.write(piece)));
  from.on('end', () => late(() => to.end()));
  from.on('error', () => to.destroy());
};

const proxy = createServer({ noDelay: true }, (near) => {
  const far = connect({ host, port: Number(port), noDelay: true });
  handOn(near, far, turnMs + turnMs / 2);
  handOn(far, near, 0);
});
proxy.listen(0, '127.0.0.1', () => console.log(`listening on 127.0.0.1:${(proxy.address() as AddressInfo).port}`));
