/**
 * C12 on a real daemon, field by field: a canary in every text of every request that the contract has, and in fields that no
 * contract has yet. Most calls are refused, and recorded all the same.
 */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { Client, credentials } from '@grpc/grpc-js';
import { searcherFor, searchFiles } from '../support/canaries.ts';
import { cleanupAfterAll, onCleanup } from '../support/cleanup.ts';
import { type Daemon, startDaemon } from '../support/daemon.ts';
import { filledRequests } from '../support/filled-requests.ts';
import { fetchInside } from '../support/netns.ts';
import { headOf, recordsOf } from '../support/journal.ts';
import { givenAwayAt } from '../cli/outputs.ts';

/** Names, which everybody is told, and what a request that has anything else is not even recorded with. */
const GIVEN: readonly (readonly [RegExp, string])[] = [
  [/(^|\.)metadata\.(name|namespace|uid)$/, 'named'],
  [/(^|\.)image\.image$|user_specified_image|image_ref$/, '127.0.0.1:1/image:1'],
  [/runtime_handler$/, ''],
  [/(^|\.)(pod_sandbox_|container_)?id$/, 'ab'.repeat(32)],
  [/host_ip$/, '10.0.0.1'],
];
const METRICS_PORT = 9324;
const requests = filledRequests((place) => GIVEN.find(([places]) => places.test(place))?.[1] ?? null);
const planted = requests.flatMap(({ canaries }) => canaries);
/** Credentials and values of variables, and what stands beside them that nobody knows yet. */
const secrets = planted.filter(({ name }) => /(^| |\.)(auth\.|envs\.(\d+\.)?(value|\(unknown\)))/.test(name));

describe('a secret in every field', { timeout: 120_000 }, () => {
  const owner = cleanupAfterAll();
  let daemon: Daemon;

  before(async () => {
    const config = `[metrics]\naddress = "127.0.0.1:${METRICS_PORT}"\n`;
    daemon = await startDaemon(owner, { args: ['--log-level', 'trace'], config });
    const client = new Client(`unix:${daemon.socket}`, credentials.createInsecure());
    onCleanup(owner, () => client.close());
    const same = (value: Buffer): Buffer => value;
    for (const { path, bytes } of requests)
      await new Promise<void>((resolve) => {
        client.makeUnaryRequest(path, same, same, bytes, { deadline: Date.now() + 1_000 }, () => resolve());
      });
  });

  test('is recorded, but for credentials and values of variables, which are in no file and no line of the log', async () => {
    assert.ok(planted.length > 400 && secrets.length > 10, `${planted.length}, ${secrets.length}`);
    const bodies = (await recordsOf(daemon)).map(({ body }) => body);
    const recorded = searcherFor(planted)(JSON.stringify(bodies));
    assert.ok(recorded.some((name) => /^RunPodSandbox .*annotations$/.test(name)));
    assert.ok(recorded.some((name) => /^CreateContainer .*\(unknown\)$/.test(name)));
    const search = searcherFor(secrets);
    assert.deepEqual(await searchFiles(search, [daemon.dirs.root, daemon.dirs.state]), []);
    assert.deepEqual(search(daemon.log()), []);
  });

  test('C12: is in no metric, by name, label or value', async () => {
    const { status, text } = await fetchInside(daemon.netns, `http://127.0.0.1:${METRICS_PORT}/metrics`);
    assert.equal(status, 200);
    assert.match(text, /RunPodSandbox/);
    assert.deepEqual(searcherFor(planted)(text), []);
  });

  test('C12: is in nothing that is given away at the default level', async () => {
    const search = searcherFor(planted);
    const asked = { rootDir: daemon.dirs.root, headSeq: headOf(daemon), things: [] };
    for await (const { by, text } of givenAwayAt(owner, 'metadata', asked)) assert.deepEqual(search(text), [], by);
  });
});
