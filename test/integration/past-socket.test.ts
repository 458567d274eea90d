/**
 * `scribe at MOMENT --listen`: what a real daemon answered at twenty moments of a random workload, with kill -9 in the middle
 * of calls in it, is answered again from its journal, and what crictl printed of it is printed again, byte for byte. The
 * seed is another one each time; it is printed, and SCRIBE_SEED repeats it.
 */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { type CriClient, criClient } from '../../scripts/lib/cri-client.ts';
import { servePast } from '../../src/cli/past/serve.ts';
import { stateAt } from '../../src/cli/past/state.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { openReader } from '../../src/journal/open.ts';
import * as wire from '../../src/wire/cri/api.ts';
import { cleanupAfterAll, onCleanup } from '../support/cleanup.ts';
import { criTool } from '../support/cri-tools.ts';
import { headOf, journalPath } from '../support/journal.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { inParallel, podConfig } from '../support/pods.ts';
import { runOk, startProcess } from '../support/process.ts';
import { METHODS, type Method, randomWorkload } from '../support/random-workload.ts';
import { createChoices, type Random } from '../simulation/random.ts';

const MOMENTS = 20;
/** CreateContainer is always among the calls that the daemon is killed in. */
const KILLS = 4;
const seed = Number(process.env['SCRIBE_SEED'] ?? randomInt(2 ** 31));
const timeout = 120_000;

interface Seen {
  readonly seq: number;
  readonly answers: ReadonlyMap<string, string>;
  /** What crictl printed. */
  readonly crictl: ReadonlyMap<string, string>;
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** The calls that the daemon is killed in, in the order in which that happens. */
const killedIn = (random: Random): Method[] => {
  const methods: Method[] = ['CreateContainer'];
  while (methods.length < KILLS)
    methods.splice(random.below(methods.length + 1), 0, random.pick(METHODS.filter((one) => !methods.includes(one))));
  return methods;
};

/** Every list and status that does not ask for more, encoded; the time of an answer is its own. */
const answersOf = async ({ runtime, image }: CriClient): Promise<Map<string, string>> => {
  const answers = new Map<string, string>();
  const pods = await runtime.listPodSandbox();
  const containers = await runtime.listContainers();
  const images = await image.listImages();
  answers.set('pods', hex(wire.ListPodSandboxResponse.encode(pods).finish()));
  answers.set('containers', hex(wire.ListContainersResponse.encode(containers).finish()));
  answers.set('images', hex(wire.ListImagesResponse.encode(images).finish()));
  for (const { id } of pods.items) {
    const status = { ...(await runtime.podSandboxStatus({ podSandboxId: id })), timestamp: '0' };
    answers.set(`pod ${id}`, hex(wire.PodSandboxStatusResponse.encode(status).finish()));
  }
  for (const { id } of containers.containers) {
    const status = await runtime.containerStatus({ containerId: id });
    answers.set(`container ${id}`, hex(wire.ContainerStatusResponse.encode(status).finish()));
  }
  for (const { id } of images.images) {
    const status = await image.imageStatus({ image: { image: id } });
    answers.set(`image ${id}`, hex(wire.ImageStatusResponse.encode(status).finish()));
  }
  return answers;
};

describe('the past over CRI', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let journal: string;
  const seen: Seen[] = [];
  const kills: string[] = [];
  let sockets = 0;

  const crictl = (socket: string, ...args: readonly string[]): Promise<string> =>
    runOk([criTool('crictl'), '-r', `unix://${socket}`, '-i', `unix://${socket}`, ...args]);

  /** As crictl prints them: every list, and every container and pod, unverbose. */
  const crictlOf = async (socket: string, { runtime }: CriClient): Promise<Map<string, string>> => {
    const pods = (await runtime.listPodSandbox()).items.map(({ id }) => id);
    const containers = (await runtime.listContainers()).containers.map(({ id }) => id);
    const commands = [
      ['pods', '-o', 'json'],
      ['ps', '-a', '-o', 'json'],
      ['images', '-o', 'json'],
      ...(pods.length === 0 ? [] : [['inspectp', '-q', ...pods]]),
      ...(containers.length === 0 ? [] : [['inspect', '-q', ...containers]]),
    ];
    return new Map(
      await inParallel(3, commands, async (words) => [words.join(' '), await crictl(socket, ...words)] as const),
    );
  };

  /** What is answered while nothing is recorded: looked at again until the journal stood still meanwhile. */
  const look = async (): Promise<void> => {
    for (let tries = 0; tries < 20; tries += 1) {
      const seq = headOf(node.daemon);
      const [asked] = await Promise.allSettled([answersAndCrictl()]);
      if (headOf(node.daemon) !== seq) continue; // What a restart carries on may have taken something away meanwhile.
      if (asked.status === 'rejected') throw asked.reason;
      return void seen.push({ seq, ...asked.value });
    }
    assert.fail('the journal never stood still');
  };
  const answersAndCrictl = async (): Promise<Omit<Seen, 'seq'>> => {
    const { cri, socket } = node.daemon;
    return { answers: await answersOf(cri), crictl: await crictlOf(socket, cri) };
  };

  before(async () => {
    node = await startNode(owner);
    journal = journalPath(node.daemon);
    const random = createChoices(seed, []);
    const { step, killIn } = randomWorkload(node.daemon, random);
    const doomed = new Map(killedIn(random).map((method, index) => [index * 5 + random.below(5), method]));
    try {
      for (let moment = 0; moment < MOMENTS; moment += 1) {
        const method = doomed.get(moment);
        if (method === undefined) await step();
        else kills.push(await killIn(method));
        await look();
      }
    } catch (error) {
      throw new Error(`SCRIBE_SEED=${seed} does this again, kills: ${kills.join(', ')}`, { cause: error });
    }
  });

  const pastOf = async (seq: number): Promise<{ readonly socket: string; readonly cri: CriClient }> => {
    const reader = openReader(journal);
    const past = stateAt(journal, reader, { kind: 'record', seq });
    reader.close();
    const socket = join(node.daemon.dirs.state, `past-${(sockets += 1)}.sock`);
    const server = await servePast({
      past,
      socketPath: socket,
      messageBytesMax: 16 * 1024 * 1024,
      pinned: [],
      report: (message) => assert.fail(message),
    });
    const cri = criClient(socket);
    onCleanup(owner, async () => {
      cri.close();
      await server.close();
    });
    return { socket, cri };
  };

  test('lists and statuses of twenty moments are what was answered then', { timeout }, async (t) => {
    t.diagnostic(`seed ${seed}, killed in ${kills.join(', ')}`);
    assert.equal(seen.length, MOMENTS);
    let answers = 0;
    for (const { seq, answers: then, crictl: said } of seen) {
      const { socket, cri } = await pastOf(seq);
      assert.deepEqual(await answersOf(cri), then, `as of record ${seq}`);
      answers += then.size;
      assert.deepEqual(await crictlOf(socket, cri), said, `crictl as of record ${seq}`);
    }
    assert.ok(answers > 100, `only ${answers} answers were compared`);
    const printed = seen.flatMap(({ crictl: said }) => [...said.keys()].map((words) => words.split(' ')[0]));
    for (const command of ['pods', 'ps', 'images', 'inspectp', 'inspect'])
      assert.ok(printed.filter((one) => one === command).length >= MOMENTS / 2, command);
  });

  test("the past can't be changed, nor measured", { timeout }, async () => {
    const { cri, socket } = await pastOf(seen.at(-1)?.seq ?? 0);
    const [pod] = (await cri.runtime.listPodSandbox()).items;
    const { runtime, image } = cri;
    for (const call of [
      () => runtime.runPodSandbox({ config: podConfig(node.daemon, 'late') }),
      () => runtime.stopPodSandbox({ podSandboxId: pod?.id ?? '' }),
      () => image.pullImage({ image: { image: busyboxName }, auth: { username: 'u', password: 'p' } }),
      () => runtime.listContainerStats({}),
    ])
      await assert.rejects(call(), (error: { readonly code: number; readonly details: string }) => {
        assert.equal(error.code, GrpcCode.FAILED_PRECONDITION);
        assert.match(error.details, /^The past can't be changed/);
        return true;
      });
    await assert.rejects(crictl(socket, 'stopp', pod?.id ?? ''), /The past can't be changed/);
  });

  test('scribe at --listen serves a socket until it is told to end, and takes none that is in use', {
    timeout,
  }, async () => {
    const socket = join(node.daemon.dirs.state, 'at.sock');
    const { seq = 0 } = seen[5] ?? {};
    const main = join(import.meta.dirname, '../../src/cli/main.ts');
    const words = ['at', String(seq), '--listen', socket, '--root', node.daemon.dirs.root];
    const command = await startProcess(owner, [process.execPath, main, ...words]);
    await command.until(/Listening at unix:/);
    const cri = criClient(socket);
    onCleanup(owner, () => cri.close());
    assert.deepEqual(await answersOf(cri), seen[5]?.answers);
    const second = await node.daemon.scribe(
      'at',
      String(seq),
      '--listen',
      node.daemon.socket,
      '--root',
      node.daemon.dirs.root,
    );
    assert.equal(second.exitCode, 1);
    assert.match(second.stderr, /Somebody listens at .* already/);
    command.kill('SIGTERM');
    assert.equal(await command.ended, 0);
  });
});
