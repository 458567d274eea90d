/**
 * The log keeper's process: `keeper-main <dir> <token> <idle end in ms>`. Listens on a socket of its own, becomes
 * <dir>/sock once a daemon has said hello, and ends when nobody would miss it. It outlives every daemon. File calls are
 * synchronous here on purpose: they are short, and this process has nothing to do but them.
 */
import { chmodSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { createServer, type Socket } from 'node:net';
import { FailureError, type Failure, messageOf } from '../../domain/model/errors.ts';
import { giveBackWhenQuiet } from '../../platform/linux/give-back.ts';
import { createLineReader } from '../../platform/rpc/lines.ts';
import { createKeeper, type Keeper } from './keeper.ts';
import {
  encodeLine,
  type KeeperRequest,
  listeningPath,
  numberOfRequest,
  parseRequest,
  readyPath,
  REQUEST_BYTES_MAX,
  servingPath,
} from './protocol.ts';
import { createRecordEncoder, type RecordEncoder } from './records.ts';
import { systemClock } from './stamp.ts';

/** One or two of daemons; the others are attached clients', each of which may have 4 MiB waiting for it. */
const CONNECTIONS_MAX = 40;
const SOCKET_MODE = 0o600;
/** Whatever it inherits: files are given their modes in full, and directories of logs are to be walked through. */
const UMASK = 0o022;
const STDERR = 2;
const WARM_UP_LINE = 'a line about as long as many are\n';
const WARM_UP_BYTES = 16_384;
const WARM_UP_ROUNDS = 10;
const WARM_UP_LINE_BYTES_MAX = 16_384;
/** Field 22 of /proc/self/stat, counted from behind the command's parenthesis. */
const START_TICKS_INDEX = 19;

const report = (message: string): void => {
  try {
    writeSync(STDERR, `${new Date().toISOString()} log keeper ${process.pid}: ${message}\n`);
  } catch {
    // Where this goes may be the very disk that is full; the containers' output matters more.
  }
};

const readStartTicks = (): string => {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[START_TICKS_INDEX] ?? '';
};

/**
 * Has the encoder's code compiled before there is anything to lose: the first read after a takeover is all that has
 * piled up, and what is read is in danger until it is written (15 ms with code that still has to be compiled, 0.2 ms
 * with code that is).
 */
const warmUp = ({ readArea, encode }: RecordEncoder): void => {
  readArea.fill(WARM_UP_LINE);
  for (let round = 0; round < WARM_UP_ROUNDS; round += 1)
    encode('stdout', readArea.subarray(0, 0), WARM_UP_BYTES, WARM_UP_LINE_BYTES_MAX, () => undefined);
};

const failureOf = (error: unknown): Failure =>
  error instanceof FailureError ? error.failure : { reason: 'HostFailed', message: messageOf(error) };

/** Answers one client's requests, each when it is done. A client that does not speak the protocol is cut off. */
const serveClient = (
  socket: Socket,
  perform: (request: KeeperRequest) => Promise<unknown>,
  attach: Keeper['attach'],
): void => {
  const answer = async (value: unknown, number: number): Promise<void> => {
    try {
      const request = parseRequest(value);
      const result = await perform(request);
      if (!socket.writable) return;
      socket.write(encodeLine({ number, result }));
      if (request.op === 'attach') attach(request.containerId, socket, request);
    } catch (error) {
      if (socket.writable) socket.write(encodeLine({ number, failure: failureOf(error) }));
    }
  };

  const cutOff = (why: string): void => {
    report(`A client is cut off: ${why}`);
    socket.destroy();
  };

  const receive = (line: string): void => {
    try {
      const value: unknown = JSON.parse(line);
      void answer(value, numberOfRequest(value));
    } catch (error) {
      cutOff(messageOf(error));
    }
  };

  const tooLong = (): void => cutOff(`its request is longer than ${REQUEST_BYTES_MAX} bytes`);
  socket.on('data', createLineReader(REQUEST_BYTES_MAX, receive, tooLong));
  // A client that was killed is nothing to talk about.
  socket.on('error', () => socket.destroy());
};

const run = (dir: string, token: string, idleEndMs: number): void => {
  process.umask(UMASK);
  let clients = 0;
  let ending = false;
  let idleTimer: NodeJS.Timeout | undefined;

  const end = async (): Promise<void> => {
    if (ending) return;
    ending = true;
    server.close();
    rmSync(readyPath(dir, token), { force: true });
    try {
      await keeper.handOver();
    } catch (error) {
      report(`Unfinished lines are lost: ${messageOf(error)}`);
    }
    process.exit();
  };

  const watchIdleness = (): void => {
    clearTimeout(idleTimer);
    if (clients === 0 && !keeper.isReading()) idleTimer = setTimeout(() => void end(), idleEndMs);
  };

  const encoder = createRecordEncoder(systemClock);
  warmUp(encoder);
  const keeper = createKeeper({
    dir,
    name: { pid: process.pid, startTicks: readStartTicks() },
    encoder,
    report,
    onAdopted: () => renameSync(readyPath(dir, token), servingPath(dir)),
    onEnd: watchIdleness,
  });

  const { worked } = giveBackWhenQuiet((error) => report(`Memory is kept that is not needed: ${messageOf(error)}`));
  const perform = async (request: KeeperRequest): Promise<unknown> => {
    worked();
    const result = await keeper.perform(request);
    if (request.op === 'bye' && !keeper.isReading()) void end();
    return result;
  };

  const server = createServer((socket) => {
    clients += 1;
    watchIdleness();
    socket.on('close', () => {
      clients -= 1;
      watchIdleness();
    });
    serveClient(socket, perform, keeper.attach);
  });
  server.maxConnections = CONNECTIONS_MAX;
  server.listen(listeningPath(dir, token), () => {
    // The name by which the daemon waits for it appears last: who sees it can connect.
    chmodSync(listeningPath(dir, token), SOCKET_MODE);
    renameSync(listeningPath(dir, token), readyPath(dir, token));
    watchIdleness();
    // Node does it at the end, which this process may never see; compiling anew costs the next one 14 MB for good.
    flushCompileCache();
  });
  process.on('SIGTERM', () => void end());
  process.on('uncaughtException', (error) => {
    report(`Ending after an error that nobody expected: ${error.stack ?? error.message}`);
    process.exitCode = 1;
    void end();
  });
};

const [dir, token, idleEnd] = process.argv.slice(2);
if (dir === undefined || token === undefined || idleEnd === undefined) {
  report('Started without its directory, its token and the time after which it may end');
  process.exit(1);
}
run(dir, token, Number(idleEnd));
