/**
 * C12 on the real parts: secrets in containers' environment and in registry credentials are planted, used, used wrongly
 * and searched for everywhere: files, logs, verbose replies, the command lines of all processes, the crash file.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { codeOf } from '../../scripts/lib/cri-client.ts';
import type { AuthConfig, DeepPartial } from '../../src/wire/cri/api.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { type Canary, formsOf, searcherFor, searchFiles, watchCommandLines } from '../support/canaries.ts';
import type { Daemon } from '../support/daemon.ts';
import { processesOf } from '../support/leftovers.ts';
import { busyboxName, startNode } from '../support/node.ts';
import { containerConfig, eventually, podConfig } from '../support/pods.ts';
import { tempDir } from '../support/temp-dir.ts';

const fresh = (name: string): Canary => ({ name, secret: `canary-${name}-${randomBytes(8).toString('hex')}` });

/** The password that the hash below is of: bcrypt, the only hash that the registry knows. */
const password: Canary = { name: 'password', secret: 'canary-password-4d1c7e' };
const htpasswd = 'puller:$2b$05$abcdefghijklmnopqrstuuaTtoZENSr/Bimm1OBgm.uQd2lWdo0ve\n';

const env = fresh('env');
const oddEnv: Canary = { name: 'odd env', secret: `"quoted" \\ <&> ünïcödé\n\t${randomBytes(8).toString('hex')}` };
const wrongPassword = fresh('wrong-password');
const identityToken = fresh('identity-token');
const registryToken = fresh('registry-token');
const canaries = [env, oddEnv, password, wrongPassword, identityToken, registryToken];
const search = searcherFor(canaries);

test('a search finds a secret in every form', () => {
  for (const { name, secret } of canaries) {
    const bytes = Buffer.from(secret);
    for (const before of ['', 'u', 'us:'])
      assert.deepEqual(search(`{"auth":"${Buffer.from(`${before}${secret}!`).toString('base64')}"}`), [name]);
    for (const text of [secret, JSON.stringify({ secret }), bytes.toString('hex'), bytes.toString('base64url')])
      assert.deepEqual(search(Buffer.from(`… ${text} …`)), [name], text);
    assert.deepEqual(search(`${encodeURIComponent(secret)}@host`), [name]);
    assert.ok(formsOf(secret).every((form) => form.length > 8));
  }
});

/** Every verbose answer there is. */
const verboseReplies = async ({ cri }: Daemon): Promise<string> => {
  const { runtime, image } = cri;
  const { items } = await runtime.listPodSandbox();
  const { containers } = await runtime.listContainers();
  const { images } = await image.listImages();
  const replies = await Promise.all([
    runtime.status({ verbose: true }),
    runtime.listContainerStats(),
    ...items.map(({ id }) => runtime.podSandboxStatus({ podSandboxId: id, verbose: true })),
    ...containers.map(({ id }) => runtime.containerStatus({ containerId: id, verbose: true })),
    ...images.map(({ id }) => image.imageStatus({ image: { image: id }, verbose: true })),
  ]);
  return JSON.stringify([items, containers, images, replies]);
};

test('C12: secrets are nowhere but in the bundle of the container they were given to', async (t) => {
  const htpasswdPath = join(await tempDir(t), 'htpasswd');
  await writeFile(htpasswdPath, htpasswd);
  const commandLines = watchCommandLines(search);
  t.after(() => commandLines.stop());
  const { daemon, registry } = await startNode(t, {
    args: ['--log-level', 'trace'],
    config: '[journal]\ndisk_reserve = "16MiB"\n',
    registry: { config: `auth: {htpasswd: {realm: "of the test", path: ${htpasswdPath}}}` },
  });
  const { runtime, image } = daemon.cri;
  const { root, state } = daemon.dirs;
  const bundles: string[] = [];
  const logs: string[] = [];
  const searchAll = async (when: string): Promise<void> => {
    assert.deepEqual(await searchFiles(search, [root, state], bundles), [], when);
    assert.deepEqual(search([...logs, daemon.log()].join('\n')), [], `${when}, in the log`);
    assert.deepEqual(search(await verboseReplies(daemon)), [], `${when}, in a reply`);
  };
  const messages: string[] = [];
  const fails = (call: Promise<unknown>, codes: readonly number[]): Promise<void> =>
    assert.rejects(call, (error) => {
      messages.push(String(error));
      return codes.includes(codeOf(error) ?? -1);
    });

  const pull = (auth: DeepPartial<AuthConfig>): Promise<unknown> =>
    image.pullImage({ image: { image: busyboxName }, auth: { ...auth, serverAddress: registry.host } });
  const { PERMISSION_DENIED, UNAVAILABLE } = GrpcCode;
  const denied = [PERMISSION_DENIED, UNAVAILABLE];
  await fails(pull({}), denied);
  await fails(pull({ username: 'puller', password: wrongPassword.secret }), denied);
  await fails(pull({ auth: Buffer.from(`puller:${wrongPassword.secret}`).toString('base64') }), denied);
  await fails(pull({ identityToken: identityToken.secret }), denied);
  await fails(pull({ registryToken: registryToken.secret }), denied);
  await pull({ auth: Buffer.from(`puller:${password.secret}`).toString('base64') });
  await image.removeImage({ image: { image: busyboxName } });
  await pull({ username: 'puller', password: password.secret });
  await searchAll('after pulls');

  const sandboxConfig = podConfig(daemon, 'secretive');
  const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig });
  const envs = [
    { key: 'PLAIN', value: Buffer.from(env.secret) },
    { key: 'ODD', value: Buffer.from(oddEnv.secret) },
  ];
  const create = async (name: string, command: readonly string[], overrides: object = {}): Promise<string> => {
    const config = containerConfig(name, busyboxName, command, { envs, ...overrides });
    const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig });
    bundles.push(join(state, 'bundles', containerId));
    return containerId;
  };
  const containerId = await create('main', ['sleep', '1000']);
  await searchAll('after a creation');
  await runtime.startContainer({ containerId });
  const { stdout } = await runtime.execSync({ containerId, cmd: ['env'], timeout: '10' });
  assert.ok(stdout.toString().includes(env.secret) && stdout.toString().includes(oddEnv.secret));
  const long = runtime.execSync({ containerId, cmd: ['sh', '-c', 'touch /began; sleep 2; env'], timeout: '10' });
  await eventually('the long exec runs', async () => {
    const { exitCode } = await runtime.execSync({ containerId, cmd: ['test', '-e', '/began'] });
    return exitCode === 0;
  });
  await searchAll('while a command runs');
  await long;
  await fails(runtime.execSync({ containerId, cmd: ['/no/such/program'] }), [GrpcCode.UNKNOWN]);

  const absent = await create('absent', ['/no/such/program']);
  await fails(runtime.startContainer({ containerId: absent }), [GrpcCode.UNKNOWN]);
  const { INVALID_ARGUMENT, ALREADY_EXISTS, NOT_FOUND } = GrpcCode;
  await fails(create('refused', ['true'], { workingDir: 'relative' }), [INVALID_ARGUMENT]);
  await fails(create('nul', ['true'], { envs: [{ key: 'A', value: Buffer.from(`${env.secret}\0`) }] }), [
    INVALID_ARGUMENT,
  ]);
  await fails(create('user', ['true'], { linux: { securityContext: { runAsUsername: 'nobody-knows' } } }), [
    INVALID_ARGUMENT,
    NOT_FOUND,
  ]);
  const renamed = [{ key: 'PLAIN', value: Buffer.from(oddEnv.secret) }];
  await fails(create('main', ['sleep', '1000'], { envs: renamed }), [ALREADY_EXISTS]);
  await searchAll('after failures');

  logs.push(daemon.log());
  await daemon.kill();
  await daemon.start();
  await runtime.execSync({ containerId, cmd: ['env'], timeout: '10' });
  await searchAll('after a restart');

  // Without its spawner the daemon can do nothing: it writes its last words and ends.
  const spawner = (await processesOf(daemon.dirs)).find(({ commandLine }) => commandLine.includes('spawner-main'));
  assert.ok(spawner);
  const late = containerConfig('late', busyboxName, ['true'], { envs });
  const interrupted = runtime.createContainer({ podSandboxId, config: late }).catch((error: unknown) => String(error));
  process.kill(spawner.pid, 'SIGKILL');
  await daemon.ended();
  messages.push(JSON.stringify(await interrupted));
  await access(join(state, 'crash.txt'));
  // The container that was being made may have its bundle already, which the next start takes away.
  assert.deepEqual(await searchFiles(search, [root, state], [join(state, 'bundles')]), [], 'after a crash');
  logs.push(daemon.log());
  await daemon.start();
  // Taken away beside the first calls, not before them.
  await eventually('the bundle of the container that was being made is gone', async () => {
    const left = await searchFiles(search, [join(state, 'bundles')], bundles);
    return left.length === 0;
  });
  await searchAll('after a crash');

  await runtime.stopPodSandbox({ podSandboxId });
  await runtime.removePodSandbox({ podSandboxId });
  bundles.length = 0;
  await searchAll('after all is removed');
  assert.deepEqual(search(messages.join('\n')), [], 'in an error message');
  const formats = ['json', 'ocsf', 'kubernetes-audit', 'cloudevents', 'otlp'];
  const exports = formats.map((format) => ['export', '--level', 'request-response', '--format', format]);
  for (const command of [['history', '--json'], ['history'], ['doctor'], ...exports])
    assert.deepEqual(search(JSON.stringify(await daemon.scribe(...command, '--root', root))), [], command.join(' '));
  assert.deepEqual(await commandLines.stop(), []);
});
