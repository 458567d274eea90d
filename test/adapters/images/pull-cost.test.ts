/**
 * What a pull costs the daemon's own thread. Runs alone: it measures. CPU time of the thread is measured, not the time
 * that passes: on a busy machine everything is late, and only the former is the pull's doing. Needs root.
 */
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { createHash } from 'node:crypto';
import { Agent, get } from 'node:https';
import { before, describe, it } from 'node:test';
import { createSecureContext } from 'node:tls';
import { gunzipSync, gzipSync } from 'node:zlib';
import { createHttpClient } from '../../../src/adapters/images/registry/http.ts';
import { cleanupAfterAll, onCleanup } from '../../support/cleanup.ts';
import { makeCertificates, startFaultServer } from '../../support/images/fault-server.ts';
import { buildImage } from '../../support/images/build.ts';
import { startFilledRegistry, type TestRegistry } from '../../support/images/registry.ts';
import { startStore } from '../../support/images/store.ts';
import { type TarMember, tar } from '../../support/images/tar.ts';

const LAYERS = 6;
const LAYER_BYTES = 20_000_000;
const FILES_PER_LAYER = 400;
/** Pulls that are tried: what the machine does to one of them it does not do to all, what a pull does it always does. */
const ATTEMPTS = 3;

/** Bytes that compress about as programs do. */
const fill = (seed: number, length: number): Buffer => {
  const bytes = Buffer.alloc(length);
  let state = seed + 1;
  for (let index = 0; index + 4 <= length; index += 4) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    bytes.writeUInt32LE(state & 0x0f0f_ffff, index);
  }
  return bytes;
};

const layerOf = (layer: number): Buffer => {
  const size = Math.floor(LAYER_BYTES / FILES_PER_LAYER);
  const content = fill(layer, LAYER_BYTES);
  const members: TarMember[] = Array.from({ length: FILES_PER_LAYER }, (_, file) => ({
    path: `layer-${layer}/deep/${file % 20}/file-${file}`,
    data: content.subarray(file * size, (file + 1) * size),
  }));
  return tar(members);
};

interface Cost {
  /** CPU time of this thread, of which so much between two turns of its loop. */
  readonly wholeMs: number;
  readonly longestMs: number;
}

const msOf = ({ user, system }: NodeJS.CpuUsage): number => (user + system) / 1000;

/** Between two turns of the loop lies what had become ready meanwhile, and the CPU time that it took. */
const costOf = async <T>(work: () => Promise<T>): Promise<{ readonly cost: Cost; readonly result: T }> => {
  const started = process.threadCpuUsage();
  let last = started;
  let longestMs = 0;
  const worked = new AbortController();
  const watching = (async () => {
    while (!worked.signal.aborted) {
      await sleep(1);
      await nextTurn();
      longestMs = Math.max(longestMs, msOf(process.threadCpuUsage(last)));
      last = process.threadCpuUsage();
    }
  })();
  const result = await work();
  worked.abort();
  await watching;
  return { cost: { wholeMs: msOf(process.threadCpuUsage(started)), longestMs }, result };
};

const layerBlob = gzipSync(layerOf(0), { level: 1 });

/** The least that a thread does that unpacks one layer. */
const unpackHere = (): void => void createHash('sha256').update(gunzipSync(layerBlob)).digest();

/** Half of that, on this machine as it is now: a busy one takes more CPU time for the same work. */
const blockingMsMax = (): number => {
  const times = Array.from({ length: 3 }, () => {
    const started = process.threadCpuUsage();
    unpackHere();
    return msOf(process.threadCpuUsage(started));
  });
  return Math.min(...times) / 2;
};

describe('C17: a pull leaves the daemon’s own thread alone', { timeout: 300_000 }, () => {
  const owner = cleanupAfterAll();
  let registry: TestRegistry;

  before(async () => {
    assert.equal(process.getuid?.(), 0, 'unpacking needs root');
    registry = await startFilledRegistry(owner);
    const image = buildImage(Array.from({ length: LAYERS }, (_, index) => ({ tar: layerOf(index) })));
    await registry.push('cost', 'v1', image);
  });

  it('with little work in all, and none of it long', async (t) => {
    const boundMs = blockingMsMax();
    const all: Cost[] = [];
    do {
      const store = await startStore(t);
      // Loads what is loaded once: the thread's program, the children's.
      await store.failedPull(`${registry.host}/cost:none`);
      const { cost, result } = await costOf(() => store.pull(`${registry.host}/cost:v1`));
      assert.equal(result.layers.length, LAYERS);
      all.push(cost);
      await store.stop();
    } while (all.length < ATTEMPTS && (all.at(-1)?.longestMs ?? 0) > boundMs);
    const plainMb = (LAYERS * LAYER_BYTES) / 1e6;
    const told = all.map(({ longestMs, wholeMs }) => `${wholeMs} ms, at most ${longestMs} ms at once`).join('; ');
    t.diagnostic(`${plainMb} MB unpacked for ${told}; ${boundMs} ms at once would be too many`);
    assert.ok(Math.min(...all.map(({ longestMs }) => longestMs)) <= boundMs, told);
    assert.ok(Math.min(...all.map(({ wholeMs }) => wholeMs)) / plainMb < 10, told);
  });

  it('which would be noticed if it unpacked one layer itself', async () => {
    const boundMs = blockingMsMax();
    const { cost } = await costOf(async () => {
      await sleep(20);
      unpackHere();
      await sleep(20);
    });
    assert.ok(cost.longestMs > boundMs, `${cost.longestMs} ms at once, of ${boundMs}`);
  });

  it('and nobody else looks into the store', async (t) => {
    const store = await startStore(t);
    await store.pull(`${registry.host}/cost:v1`);
    for (const directory of ['images', 'images/blobs', 'images/blobs/sha256', 'images/snapshots', 'images/ingest']) {
      assert.equal((await stat(join(store.root, directory))).mode & 0o077, 0, directory);
    }
  });
});

describe('connections by TLS', { timeout: 60_000 }, () => {
  const CONNECTIONS = 30;
  const owner = cleanupAfterAll();

  it('do not read the authorities of the machine again and again', async () => {
    const certificates = await makeCertificates(owner);
    const server = await startFaultServer(owner, certificates);
    // Each request is a connection of its own.
    server.intercept((_, response) => {
      response.writeHead(200, { connection: 'close' }).end();
      return true;
    });
    const url = new URL(server.base);
    const client = createHttpClient({ timeoutMs: 5_000, bytesMin: 0 });
    onCleanup(owner, () => Promise.resolve(client.close()));
    const { signal } = new AbortController();
    const tls = { ca: [certificates.cert.toString()], clientPairs: [], skipVerify: false };
    const ask = async (): Promise<void> => {
      const response = await client.send({ url, method: 'GET', headers: {}, tls, dialTimeoutMs: 5_000 }, signal);
      await response.discard();
    };
    const agent = new Agent({ keepAlive: false, secureContext: createSecureContext({ ca: certificates.cert }) });
    const askPlainly = (): Promise<unknown> =>
      new Promise((resolve, reject) =>
        get(url, { agent }, (answer) => answer.resume().once('end', resolve)).once('error', reject),
      );
    const cpuOf = async (work: () => Promise<unknown>): Promise<number> => {
      // Once before: what is read and compiled for the first time is not what is asked.
      await work();
      const began = process.threadCpuUsage();
      for (let count = 0; count < CONNECTIONS; count += 1) await work();
      return msOf(process.threadCpuUsage(began));
    };
    const [ours, plain] = [await cpuOf(ask), await cpuOf(askPlainly)];
    assert.ok(ours < 2.5 * plain, `${ours} ms for ${CONNECTIONS} connections, ${plain} with one context`);
  });
});
