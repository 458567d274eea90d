/**
 * A streaming server in a process of its own, so that its memory and its pauses are its own: prints URLs of commands that
 * write as many bytes as the argument says, then, at the end of its stdin, what it cost.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { pipeline } from 'node:stream/promises';
import { text } from 'node:stream/consumers';
import { execRequest, openServer, randomOutput } from './support.ts';

export interface Cost {
  readonly rssBytesBefore: number;
  readonly rssBytesMax: number;
  readonly delayMsMax: number;
}

const [sessions = 1, sizeBytes = 0] = process.argv.slice(2).map(Number);
const server = await openServer({
  backend: {
    exec: async (_, { stdin, stdout }) => {
      stdin?.resume();
      if (stdout !== null) await pipeline(randomOutput(sizeBytes), stdout);
      return { exitCode: 0 };
    },
  },
  streamCreationTimeoutMs: 30_000,
});
const urls = Array.from({ length: sessions }, () => server.urlFor(execRequest(['produce'], 'stdout')));
const delay = monitorEventLoopDelay({ resolution: 5 });
const rssBytesBefore = process.memoryUsage.rss();
let rssBytesMax = 0;
const timer = setInterval(() => {
  rssBytesMax = Math.max(rssBytesMax, process.memoryUsage.rss());
}, 20);
delay.enable();
console.log(JSON.stringify(urls));
await text(process.stdin);
clearInterval(timer);
const cost: Cost = { rssBytesBefore, rssBytesMax, delayMsMax: delay.max / 1e6 };
console.log(JSON.stringify(cost));
await server.close();
