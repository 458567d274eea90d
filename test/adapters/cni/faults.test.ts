/**
 * Plugins that hang, talk nonsense, die half-way or are not there: each becomes one clear failure, DEL goes on past
 * it, and nothing that was taken stays taken. The plugins are shell scripts.
 */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { CniConfList, PodNetwork } from '../../../src/domain/model/cni.ts';
import { cniArgsOf } from '../../../src/adapters/cni/runtime-config.ts';
import { readProcessStat } from '../../../src/platform/linux/processes.ts';
import { eventually } from '../../support/pods.ts';
import { attach, context, detach, failureOf, makeNode, podNetwork, record, succeed } from './support.ts';

const list = (...types: string[]): CniConfList => ({
  cniVersion: '1.0.0',
  name: 'testnet',
  plugins: types.map((type) => ({ type })),
});

describe('plugins that misbehave', { timeout: 60_000 }, () => {
  it('kills a plugin that hangs, with the children it started', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter({ pluginTimeoutMs: 300 });
    await adapter.start();
    await node.addPlugin('hangs', 'sleep 600 & echo $! > "$D/child"; wait');
    const network = podNetwork(list('hangs'), await node.makePodNetns());
    const failure = await failureOf(attach(adapter, network));
    assert.equal(failure.reason, 'CniFailed');
    assert.match(failure.message, /plugin hangs did not finish within 300 ms and was killed/);
    const child = Number(await readFile(join(node.dir, 'child'), 'utf8'));
    const state = await readFile(`/proc/${child}/stat`, 'utf8').catch(() => 'gone');
    assert.match(state, /^gone|\) Z /, 'the child was killed too');
  });

  const talkers: readonly [what: string, script: string, message: RegExp][] = [
    ['prints nothing', 'exit 0', /succeeded, but its result is empty/],
    ['prints garbage', 'printf "oops\\033[2J"', /succeeded, but its result is not JSON: "oops \[2J"/],
    ['prints a list', 'echo "[]"', /its result is malformed/],
    ['prints an unknown version', `echo '{"cniVersion":"9.9.9"}'`, /its result is of unknown version "9\.9\.9"/],
    [
      'prints no address',
      `echo '{"ips":[{"address":"10.0.0.300/24"}]}'`,
      /its result holds "10\.0\.0\.300\/24", which is no IP/,
    ],
    [
      'names an interface it lacks',
      `echo '{"ips":[{"address":"10.0.0.3/24","interface":4}]}'`,
      /interface 4, which it does not list/,
    ],
    ['gives no address', `echo '{"cniVersion":"1.0.0"}'`, /the plugins gave eth0 no address/],
    ['prints too much', 'head -c 100000 /dev/zero', /plugin talker printed more than 65536 bytes/],
    ['fails without a word', 'exit 3', /plugin talker failed: it gave no reason/],
    ['fails on stderr', 'echo "  no   route" >&2; exit 1', /plugin talker failed: no route\./],
    ['fails in prose on stdout', 'echo "it broke"; exit 1', /plugin talker failed: it broke\./],
    [
      'fails properly',
      `echo '{"code":11,"msg":"busy","details":"later"}'; exit 1`,
      /talker failed: busy; later \(code 11\)/,
    ],
    ['dies of a signal', 'kill -9 $$', /plugin talker was killed by SIGKILL: it gave no reason/],
    ['never reads its stdin', `exec 0<&-; ${succeed}`, /^succeeded$/],
  ];
  it('turns every answer but a good one into one clear sentence', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    const netnsPath = await node.makePodNetns();
    for (const [what, script, message] of talkers) {
      await node.addPlugin('talker', script);
      const attached = attach(adapter, podNetwork(list('talker'), netnsPath)).then(() => 'succeeded');
      const said = await attached.catch((error: Error) => error.message);
      assert.match(said, message, what);
      assert.doesNotMatch(said, /\p{Cc}/u, 'control characters stay out of messages');
    }
  });

  it('has the next plugin there while one runs, and asks it only when its turn has come', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    const untilThere = (file: string): string => `until [ -e "$D/${file}" ]; do sleep 0.01; done\n`;
    await node.addPlugin('first', `${record}[ $CNI_COMMAND = DEL ] || ${untilThere('second')}${succeed}`);
    await node.addPlugin('second', `: > "$D/second"\n${record}${succeed}`);
    const network = podNetwork(list('first', 'second'), await node.makePodNetns());
    const { result } = await attach(adapter, network);
    const calls = await node.calls();
    assert.deepEqual(
      calls.map(({ plugin }) => plugin),
      ['first', 'second'],
    );
    assert.deepEqual(calls[1]?.request['prevResult'], result, 'it was asked after the other had ended');
  });

  it('kills the plugin that waits when the one before it fails, and never asks it', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    await node.addPlugin('first', `${record}until [ -s "$D/second" ]; do sleep 0.01; done; exit 1`);
    await node.addPlugin('second', `echo $$ > "$D/second"\n${record}${succeed}`);
    await failureOf(attach(adapter, podNetwork(list('first', 'second'), await node.makePodNetns())));
    const pid = Number(await readFile(join(node.dir, 'second'), 'utf8'));
    await eventually('the plugin that waited is gone', async () => (await readProcessStat(pid)) === null, 5_000);
    assert.deepEqual(
      (await node.calls()).map(({ plugin }) => plugin),
      ['first'],
    );
  });

  it('stops ADD at the plugin that failed, and DEL runs all of them backwards past failures', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    await node.addPlugin('first', `${record}${succeed}`);
    await node.addPlugin('second', `${record}echo '{"code":102,"msg":"no"}'; exit 1`);
    await node.addPlugin('third', `${record}${succeed}`);
    const network = podNetwork(list('first', 'second', 'absent', 'third'), await node.makePodNetns());
    await failureOf(attach(adapter, network));
    const failure = await failureOf(detach(adapter, network, null));
    const ran = (await node.calls()).map((call) => `${call.command} ${call.plugin}`);
    assert.deepEqual(ran, ['ADD first', 'ADD second', 'DEL third', 'DEL second', 'DEL first']);
    assert.match(
      failure.message,
      /^CNI DEL of pod shop\/web-0 .* on network testnet failed: plugin absent is no executable in /,
    );
    assert.match(failure.message, /; plugin second failed: no \(code 102\)\.$/);
  });

  it('C6: a failed DEL stays owed and a later one settles it', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    const script = `${record}[ "$CNI_COMMAND" = DEL ] && [ -e "$D/broken" ] && exit 1\n${succeed}`;
    await node.addPlugin('sometimes', script);
    const network = podNetwork(list('sometimes'), await node.makePodNetns());
    const { result } = await attach(adapter, network);
    await mkdir(join(node.dir, 'broken'));
    await failureOf(detach(adapter, network, result));
    assert.deepEqual(await readdir(join(node.dir, 'state', 'cni')), [network.podSandboxId]);
    await node.addPlugin('sometimes', `${record}${succeed}`);
    await detach(adapter, network, result);
    assert.deepEqual(await readdir(join(node.dir, 'state', 'cni')), []);
  });

  it('takes "container unknown" from DEL as done', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    await node.addPlugin('forgetful', `echo '{"code":3,"msg":"never seen"}'; exit 1`);
    await detach(adapter, podNetwork(list('forgetful'), await node.makePodNetns()), null);
  });

  it('tells nobody of a pod with names that no program can be given, and gives it up at once', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    await node.addPlugin('one', `${record}${succeed}`);
    const netnsPath = await node.makePodNetns();
    const { podSandboxId } = podNetwork(list('one'), netnsPath);
    const named = (name: string): PodNetwork => podNetwork(list('one'), netnsPath, { name, podSandboxId });
    // As many bytes as the kernel passes to a program in one variable, and one more.
    const longest = 'n'.repeat(131_072 - `CNI_ARGS=${cniArgsOf(named(''))}\0`.length);
    await attach(adapter, named(longest));
    await detach(adapter, named(longest), null);
    assert.equal((await node.calls()).length, 2);
    const tooLong = named(`${longest}n`);
    const failure = await failureOf(attach(adapter, tooLong));
    assert.equal(failure.reason, 'InvalidField');
    assert.match(failure.message, /name, namespace and uid CNI_ARGS has 131073 bytes/);
    await detach(adapter, tooLong, null);
    assert.equal((await node.calls()).length, 2);
  });

  it('does not attach to a namespace that is not there, nor with an identifier that could be misread', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    await node.addPlugin('fine', `${record}${succeed}`);
    const netnsPath = await node.makePodNetns();
    const gone = podNetwork(list('fine'), join(node.dir, 'no-such-netns'));
    assert.match((await failureOf(attach(adapter, gone))).message, /no-such-netns is no network namespace/);
    const plainFile = podNetwork(list('fine'), '/etc/hostname');
    assert.match((await failureOf(attach(adapter, plainFile))).message, /\/etc\/hostname is no network namespace/);
    for (const over of [
      { name: 'web;IgnoreUnknown=0' },
      { namespace: 'a=b' },
      { uid: 'x\ny' },
      { podSandboxId: '../../etc' },
      { ifName: 'eth0/..' },
      { ifName: 'sixteen-letters-x' },
    ]) {
      const network = podNetwork(list('fine'), netnsPath, over);
      assert.equal((await failureOf(attach(adapter, network))).reason, 'InvalidField', JSON.stringify(over));
      await detach(adapter, network, null);
    }
    assert.deepEqual(await node.calls(), [], 'no plugin ran');
  });

  it('ends the plugin under way when the daemon ends', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    await node.addPlugin('slow', 'echo started > "$D/started"; sleep 600');
    const ending = new AbortController();
    const attached = attach(adapter, podNetwork(list('slow'), await node.makePodNetns()), ending.signal);
    setTimeout(() => ending.abort(), 100);
    assert.equal((await failureOf(attached)).reason, 'Interrupted');
  });

  it('reports a plugin that cannot be executed', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter({ spawner: { run: () => Promise.reject(new Error('exec format error')) } });
    await adapter.start();
    await node.addPlugin('text', '');
    const failure = await failureOf(attach(adapter, podNetwork(list('text'), await node.makePodNetns())));
    assert.match(failure.message, /plugin text could not be run from .*\/bin\/text: exec format error/);
  });

  it('runs one operation of a pod at a time, and those of other pods beside it', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    const script = `mkdir "$D/running-$CNI_CONTAINERID" || { echo "two at once"; exit 1; }
      sleep 0.2; rmdir "$D/running-$CNI_CONTAINERID"; ${succeed}`;
    await node.addPlugin('lonely', script);
    const netnsPath = await node.makePodNetns();
    const pods = [podNetwork(list('lonely'), netnsPath), podNetwork(list('lonely'), netnsPath)];
    const startedMs = performance.now();
    await Promise.all(
      pods.flatMap((pod) => [attach(adapter, pod), detach(adapter, pod, null), detach(adapter, pod, null)]),
    );
    assert.ok(performance.now() - startedMs >= 600, 'three operations of one pod take three times as long as one');
  });

  it('does not wait for a signal that was aborted before', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    await node.addPlugin('fine', succeed);
    const network = podNetwork(list('fine'), await node.makePodNetns());
    const effect = { kind: 'AttachNetwork', podSandboxId: network.podSandboxId, network } as const;
    const failure = await failureOf(adapter.effects.AttachNetwork(effect, context(AbortSignal.abort())));
    assert.equal(failure.reason, 'Interrupted');
  });
});
