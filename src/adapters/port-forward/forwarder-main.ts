/**
 * The forwarder's process: `forwarder-main <socket> <network namespace>`. Moves into a pod's network namespace and
 * connects clients of its socket to ports of the pod's loopback: each sends a port and a newline, is told "ok" or why
 * not in a line, and from then on is joined with it. Only its main thread moves, and only it opens sockets. Ends with
 * the spawner that started it.
 */
import { openSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { messageOf } from '../../domain/model/errors.ts';
import { enterNamespace, Namespace } from '../../platform/linux/syscalls.ts';
import { readLine } from '../../platform/rpc/lines.ts';
import { dialLoopback, join } from './loopback.ts';

const CONNECTIONS_MAX = 1024;

const serve = async (client: Socket): Promise<void> => {
  const port = Number(await readLine(client));
  const target = await dialLoopback(port).catch((error: unknown) => {
    client.end(`${messageOf(error).replaceAll('\n', ' ')}\n`);
    return null;
  });
  if (target === null) return;
  client.write('ok\n');
  await join(client, target);
};

const [socketPath = '', netnsPath = ''] = process.argv.slice(2);
enterNamespace(openSync(netnsPath, 'r'), Namespace.network);
const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => {
  client.on('error', () => client.destroy());
  serve(client).catch(() => client.destroy());
});
server.maxConnections = CONNECTIONS_MAX;
server.listen(socketPath, () => process.stdout.write('ready\n'));
