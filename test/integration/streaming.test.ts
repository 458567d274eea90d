/**
 * Sessions as users have them, through crictl, a real shim and runc: commands, attached clients and forwarded ports,
 * what the journal says of them and what it does not, and what a restart leaves of them.
 */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { codeOf } from '../../scripts/lib/cri-client.ts';
import { NamespaceMode } from '../../src/wire/cri/api.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { removeAllPods } from '../support/daemon.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { criTool } from '../support/cri-tools.ts';
import { withCode } from '../support/failures.ts';
import { type JournaledCall, callsAfter, headOf, journalPath } from '../support/journal.ts';
import { noLeftovers, processesInCgroups } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { eventually, removePod, runPod } from '../support/pods.ts';
import { run, runOk, startProcess } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const mib = 1024 * 1024;
const rssBytesMax = 300 * mib;
/** SCRIBE_SESSION_BYTES says how much each of the large sessions has (64 MiB unless told). */
const sessionBytes = Number(process.env['SCRIBE_SESSION_BYTES'] ?? 64 * mib);
const sessionsTimeoutMs = 300_000;
/** 95 of 100 calls: other tests take the processors, too. */
const answerMsMax = 100;
const secret = 'what-goes-through-a-session';

describe('sessions', { timeout: 900_000 }, () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let podSandboxId: string;
  let containerId: string;

  before(async () => {
    node = await startNode(owner);
    const command = ['sh', '-c', 'mkdir /www && echo it works > /www/index.html && exec httpd -f -p 80 -h /www'];
    ({ podSandboxId, containerId } = await runPod(node.daemon, 'pod', busyboxName, command));
  });

  const crictl = (...args: readonly string[]): string[] =>
    node.daemon.netns.inside([criTool('crictl'), '-r', `unix://${node.daemon.socket}`, ...args]);
  /** The sessions of this method that began after the record, and have ended. */
  const sessionsAfter = (seq: number, method: string): Promise<JournaledCall[]> =>
    eventually(`a session by ${method}`, async () => {
      const found = (await callsAfter(node.daemon, seq)).filter(({ request }) => request.method === method);
      return found.length > 0 && found.every(({ completed }) => completed !== null) && found;
    });

  test("a command has a client's streams and status, and the journal knows of it but not of its content", async () => {
    const seq = headOf(node.daemon);
    const script = 'read line; echo "heard $line"; echo oops >&2; exit 5';
    const ended = await run(crictl('exec', '-i', containerId, 'sh', '-c', script), { stdin: `${secret}\n` });
    assert.equal(ended.stdout, `heard ${secret}\n`);
    assert.match(ended.stderr, /oops/);
    assert.notEqual(ended.exitCode, 0);
    const [session] = await sessionsAfter(seq, 'ExecSession');
    assert.equal(session?.caller?.executable, criTool('crictl'));
    const { response, durationNs } = session.completed ?? {};
    assert.ok(BigInt(durationNs ?? 0) > 0n);
    assert.deepEqual(response, {
      exitCode: 5,
      stdinBytes: secret.length + 1,
      stdoutBytes: secret.length + 7,
      stderrBytes: 5,
    });
    const { stdout: url } = await run(crictl('--debug', 'exec', containerId, 'true'));
    for (const path of [journalPath(node.daemon), `${journalPath(node.daemon)}-wal`]) {
      const text = await readFile(path, 'latin1').catch(() => '');
      assert.ok(!text.includes(secret), `${path} holds what went through a session`);
      assert.doesNotMatch(text, /\/exec\/[\w-]{20}/);
    }
    assert.doesNotMatch(node.daemon.log() + url, new RegExp(secret));
    const history = await node.daemon.scribe('history', '--root', node.daemon.dirs.root, '--method', 'ExecSession');
    assert.match(history.stdout, /exit 5, \d+ B in, \d+ B out \(stdin stdout stderr: sh -c read line/);
  });

  test('what cannot be is refused, with the code that clients rely on', async () => {
    const { runtime } = node.daemon.cri;
    const streams = { stdout: true, stderr: true };
    const refused = (call: Promise<unknown>, code: number, words: RegExp): Promise<void> =>
      assert.rejects(call, withCode(code, words));
    await refused(runtime.exec({ containerId: 'none', cmd: ['a'], ...streams }), GrpcCode.NOT_FOUND, /none/);
    await refused(runtime.attach({ containerId: 'none', ...streams }), GrpcCode.NOT_FOUND, /none/);
    await refused(runtime.portForward({ podSandboxId: 'none' }), GrpcCode.NOT_FOUND, /none/);
    await refused(runtime.exec({ containerId, cmd: ['a'] }), GrpcCode.INVALID_ARGUMENT, /at least one/);
    await refused(runtime.exec({ containerId, ...streams }), GrpcCode.INVALID_ARGUMENT, /cmd is empty/);
    await refused(runtime.attach({ containerId, tty: true, ...streams }), GrpcCode.INVALID_ARGUMENT, /tty and stderr/);
    await refused(runtime.portForward({ podSandboxId, port: [70_000] }), GrpcCode.INVALID_ARGUMENT, /port 70000/);
    const over = await runPod(node.daemon, 'over', busyboxName, ['true']);
    await eventually('its end', async () => {
      try {
        await runtime.exec({ containerId: over.containerId, cmd: ['a'], ...streams });
        return false;
      } catch (error) {
        return codeOf(error) === GrpcCode.FAILED_PRECONDITION && /CONTAINER_EXITED/.test(String(error));
      }
    });
  });

  test('a port of a pod is reached, by several at once, and of a pod on the host network too', async (t) => {
    const seq = headOf(node.daemon);
    const host = { linux: { securityContext: { namespaceOptions: { network: NamespaceMode.NODE } } } };
    const command = ['sh', '-c', 'mkdir /www && echo it works > /www/index.html && exec httpd -f -p 8099 -h /www'];
    const onHost = await runPod(node.daemon, 'host', busyboxName, command, { pod: host });
    const get = (port: number): Promise<string> =>
      runOk(node.daemon.netns.inside(['busybox', 'wget', '-q', '-O', '-', `http://127.0.0.1:${port}/`]));
    for (const [id, port] of [[podSandboxId, '80'] as const, [onHost.podSandboxId, '8099'] as const]) {
      const forwarding = await startProcess(t, crictl('port-forward', id, `:${port}`));
      const [, local = ''] = await forwarding.until(/127\.0\.0\.1:(\d+) ->/);
      const pages = await Promise.all(Array.from({ length: 4 }, () => get(Number(local))));
      assert.deepEqual(pages, Array(4).fill('it works\n'));
      await forwarding.stop();
    }
    const sessions = await sessionsAfter(seq, 'PortForwardSession');
    assert.equal(sessions.length, 8);
    assert.ok(sessions.every(({ completed }) => (completed?.response?.fromPodBytes ?? 0) > 9));
  });

  test('a connection to a pod passes ends on, says why it fails, and ends with the pod', async (t) => {
    const seq = headOf(node.daemon);
    const reply = 'while true; do nc -l -p 7 -e sh -c "cat; echo over"; done';
    const { podSandboxId: id } = await runPod(node.daemon, 'echo', busyboxName, ['sh', '-c', reply]);
    const forwarding = await startProcess(t, crictl('port-forward', id, ':7'));
    // A client that is told of a failure ends.
    const failing = await startProcess(t, crictl('port-forward', id, ':9'));
    const [, echo = ''] = await forwarding.until(/127\.0\.0\.1:(\d+) -> 7/);
    const [, nobody = ''] = await failing.until(/127\.0\.0\.1:(\d+) -> 9/);
    const nc = (port: string): string[] => node.daemon.netns.inside(['busybox', 'nc', '127.0.0.1', port]);
    await eventually('an echo', async () => {
      const { stdout } = await run(nc(echo), { stdin: 'all\n' });
      return stdout === 'all\nover\n';
    });
    await run(nc(nobody), { stdin: 'x' });
    await failing.until(/Port 9 of pod sandbox [0-9a-f]+ does not answer: .*127\.0\.0\.1:9; .*::1/);
    const silent = join(await tempDir(t), 'silent');
    await runOk(['mkfifo', silent]);
    // A FIFO that is open for both never ends.
    const argv = ['sh', '-c', `exec busybox nc 127.0.0.1 ${echo} 0<>${silent}`];
    const open = await startProcess(t, node.daemon.netns.inside(argv));
    const isOpen = async (): Promise<boolean> =>
      (await callsAfter(node.daemon, seq)).some(
        ({ completed, request }) => request.method === 'PortForwardSession' && completed === null,
      );
    await eventually('the connection', isOpen);
    await removePod(node.daemon, id);
    await eventually('the end of the connection', async () => !(await isOpen()));
    open.kill('SIGKILL');
    await forwarding.stop();
  });

  for (const transport of ['spdy', 'websocket']) {
    test(`eight sessions at once move all of their output over ${transport}, within bounds of memory and time`, async (t) => {
      const line = '0123456789abcde';
      const produce = `yes ${line} | head -c ${sessionBytes}`;
      const daemonPid = node.daemon.pid();
      // The peak so far is that of other tests.
      await writeFile(`/proc/${daemonPid}/clear_refs`, '5');
      const command = crictl('exec', '--transport', transport, containerId, 'sh', '-c', produce)
        .map((word) => `'${word}'`)
        .join(' ');
      // As little work as can be for the clients: it is done by the same processors.
      const one = ['bash', '-c', `set -o pipefail; ${command} | sha256sum`];
      const expected = await runOk(['sh', '-c', `${produce} | sha256sum`], { timeoutMs: sessionsTimeoutMs });
      /** How long its main thread was ready to run and had no processor: the part of a delay that is the machine's. */
      const waitedMs = async (): Promise<number> => {
        const [, waitedNs = ''] = (await readFile(`/proc/${daemonPid}/schedstat`, 'utf8')).split(' ');
        return Number(waitedNs) / 1e6;
      };
      const waitedBeforeMs = await waitedMs();
      const startedMs = performance.now();
      const answersMs: number[] = [];
      const asking = setInterval(() => {
        const askedMs = performance.now();
        void node.daemon.cri.runtime.listContainers().then(() => answersMs.push(performance.now() - askedMs));
      }, 50);
      const ended = await Promise.all(Array.from({ length: 8 }, () => run(one, { timeoutMs: sessionsTimeoutMs })));
      clearInterval(asking);
      assert.deepEqual(
        ended.map(({ exitCode, stdout }) => [exitCode, stdout]),
        Array(8).fill([0, expected]),
      );
      const status = await readFile(`/proc/${daemonPid}/status`, 'utf8');
      const peakBytes = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
      const seconds = (performance.now() - startedMs) / 1000;
      answersMs.sort((a, b) => a - b);
      const shareMs = (share: number): number => Math.round(answersMs[Math.ceil(answersMs.length * share) - 1] ?? 0);
      t.diagnostic(
        `8 x ${sessionBytes / mib} MiB in ${seconds.toFixed(1)} s, at most ${Math.round(peakBytes / mib)} MiB; ` +
          `other calls took ${shareMs(0.5)} ms, 99 of 100 at most ${shareMs(0.99)} ms, ${shareMs(1)} ms at most; ` +
          `the daemon waited ${(((await waitedMs()) - waitedBeforeMs) / 1000).toFixed(1)} s for a processor`,
      );
      assert.ok(peakBytes < rssBytesMax, `the daemon had ${peakBytes} bytes`);
      assert.ok(answersMs.length > 0 && shareMs(0.95) <= answerMsMax, `other calls took ${shareMs(0.95)} ms`);
    });
  }

  test('C19: a command whose daemon died is ended, and its session is written down as interrupted', async (t) => {
    const seq = headOf(node.daemon);
    const running = await startProcess(t, crictl('exec', containerId, 'sh', '-c', 'echo up; exec sleep 4242'));
    await running.until(/up/);
    const runs = async (): Promise<boolean> => {
      const pids = await processesInCgroups(node.daemon.dirs.cgroupParent);
      const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
      return lines.some((text) => text.includes('4242'));
    };
    assert.ok(await runs());
    await node.daemon.kill();
    await running.ended;
    await node.daemon.start();
    await eventually('the end of the command', async () => !(await runs()));
    const [session] = await sessionsAfter(seq, 'ExecSession');
    assert.equal(session?.completed?.failure?.reason, 'Interrupted');
  });

  test('a container from before a restart can be attached to, by several at once', async (t) => {
    const script = 'while read line; do echo "got $line"; done; echo over';
    const overrides = { container: { stdin: true, stdinOnce: true } };
    const { containerId: talking } = await runPod(node.daemon, 'talk', busyboxName, ['sh', '-c', script], overrides);
    await node.daemon.kill();
    await node.daemon.start();
    const seq = headOf(node.daemon);
    const listener = await startProcess(t, crictl('attach', talking));
    const isOpen = (): Promise<boolean> =>
      callsAfter(node.daemon, seq).then((calls) => calls.some(({ request }) => request.method === 'AttachSession'));
    await eventually('the session of the listener', isOpen);
    const { stdout } = await run(crictl('attach', '-i', talking), { stdin: 'one\ntwo\n' });
    assert.match(stdout, /got one\r?\ngot two\r?\nover/);
    await listener.ended;
    const sessions = await sessionsAfter(seq, 'AttachSession');
    assert.deepEqual(new Set(sessions.map(({ completed }) => completed?.response?.stdinBytes)), new Set([0, 8]));
    assert.deepEqual(sessions.length, 2);
  });

  test('nothing is left when the pods are gone', async () => {
    await removeAllPods(node.daemon.cri);
    assert.deepEqual(await node.daemon.leftovers(), noLeftovers);
  });
});
