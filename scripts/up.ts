/**
 * `npm run up`: starts the daemon unless it serves already, loads a busybox image made on the spot, runs a demo pod and
 * shows its output and what the journal knows of it. Leaves everything running and says how to reach and to stop it.
 */
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram } from '../src/platform/linux/find-program.ts';
import { cacheDir } from './lib/cache-dir.ts';
import { bridgeConfList, cniBinDir, hasCniConfig } from './lib/cni.ts';
import { type CriClient, criClient } from './lib/cri-client.ts';
import {
  type DemoOptions,
  daemonPid,
  demoBridge,
  demoOptions,
  execute,
  giveUp,
  goOnUnheard,
  needRoot,
  say,
  scribe,
  shellWord,
  show,
} from './lib/demo-options.ts';
import { demoImage, demoLog, execInDemo, removeDemoPods, runDemoPod } from './lib/demo-pod.ts';
import { busyboxImage, writeOciArchive } from './lib/image.ts';
import { waitServing } from './lib/serving.ts';

const systemCniDir = '/etc/cni/net.d';
const startTimeoutMs = 30_000;
const logLinesShown = 20;

/** The first candidate that no address or route of this machine is in. */
const freeSubnet = async (): Promise<string> => {
  const candidates = [213, 197, 149, 83].map((second) => `10.${second}.`);
  const { stdout } = await execute('ip', ['-4', 'route', 'show', 'table', 'all']);
  const prefix = candidates.find((candidate) => !stdout.includes(candidate)) ?? '10.213.';
  return `${prefix}0.0/16`;
};

const canMasquerade = (): Promise<boolean> =>
  execute('iptables', ['-t', 'nat', '-S']).then(
    () => true,
    () => false,
  );

/** The directory of the CNI configuration to use: the system's, or one with a bridge network made for this. */
const cniConfDir = async ({ root, state }: DemoOptions): Promise<string> => {
  if (await hasCniConfig(systemCniDir)) return systemCniDir;
  const dir = join(root, 'cni/net.d');
  const path = join(dir, '10-scribe.conflist');
  const isNew = !(await hasCniConfig(dir));
  if (isNew) {
    const [subnet, ipMasq] = await Promise.all([freeSubnet(), canMasquerade()]);
    const dataDir = join(state, 'cni-addresses');
    await mkdir(dir, { recursive: true });
    await writeFile(path, bridgeConfList({ name: 'scribe', bridge: demoBridge, subnet, dataDir, ipMasq }));
    if (!ipMasq) say('iptables has no nat table here: pods will reach the host and each other, and nothing else');
  }
  const bridge = isNew ? 'made a bridge network' : 'taking the bridge network of an earlier start';
  say(`no CNI configuration in ${systemCniDir}: ${bridge}, for this daemon only: ${path}`);
  return dir;
};

const startDaemon = async (options: DemoOptions, cri: CriClient): Promise<void> => {
  const { root, state, socket } = options;
  const running = await daemonPid(state);
  if (running !== null) {
    const version = await waitServing(cri, new Promise(() => {}), startTimeoutMs);
    say(`the daemon runs already: ${version}, pid ${running}`);
    return;
  }
  await mkdir(root, { recursive: true, mode: 0o700 });
  const dirs = ['--cni-conf-dir', await cniConfDir(options), '--cni-bin-dir', await cniBinDir()];
  const logPath = join(root, 'scribe.log');
  const log = await open(logPath, 'a');
  const startedMs = performance.now();
  // Another runtime of this machine may have the usual place.
  const nri = ['--nri-socket', join(state, 'nri.sock')];
  const args = ['serve', '--socket', socket, '--root', root, '--state', state, ...dirs, ...nri];
  const daemon = spawn(scribe, args, { detached: true, stdio: ['ignore', log.fd, log.fd], cwd: '/' });
  await log.close();
  const ended = new Promise<Error>((resolve) => {
    daemon.on('error', resolve);
    daemon.on('exit', (code, signal) => resolve(new Error(`the daemon ended at once (${code ?? signal})`)));
  });
  try {
    const version = await waitServing(cri, ended, startTimeoutMs);
    const tookMs = Math.round(performance.now() - startedMs);
    say(`the daemon serves: ${version}, pid ${daemon.pid}, after ${tookMs} ms; its log is ${logPath}`);
  } catch (error) {
    show((await readFile(logPath, 'utf8')).trimEnd().split('\n').slice(-logLinesShown).join('\n'));
    throw error;
  }
  daemon.unref();
};

const loadImage = async ({ socket }: DemoOptions): Promise<void> => {
  const dir = await mkdtemp(join(tmpdir(), 'scribe-up-'));
  try {
    const archive = join(dir, 'busybox.tar');
    const image = await busyboxImage();
    await writeOciArchive(archive, demoImage, image);
    await execute(scribe, ['image', 'load', '--socket', socket, archive]);
    say(`loaded ${demoImage}, made of this machine's busybox: ${image.configDigest}`);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
};

const showPod = async (options: DemoOptions, cri: CriClient): Promise<void> => {
  const logDirectory = join(options.root, 'demo-logs');
  await removeDemoPods(cri);
  await rm(logDirectory, { recursive: true, force: true });
  await mkdir(logDirectory, { recursive: true });
  const pod = await runDemoPod(cri, logDirectory);
  say(`pod ${pod.podSandboxId.slice(0, 13)} runs, its address is ${pod.ip}; what it has logged:`);
  show(await demoLog(logDirectory));
  say('an exec in it, "ip addr show eth0":');
  show(await execInDemo(cri, pod, ['ip', 'addr', 'show', 'eth0']));
  say('what the journal knows of it (scribe history):');
  // As the log has its times; and it may be that TZ says a zone that only the C library knows.
  const { stdout } = await execute(scribe, ['history', '--utc', '--root', options.root, '--pod', pod.podSandboxId]);
  show(stdout);
};

/** crictl as a shell here finds it, and what to do where it would not. */
const crictlHere = async (): Promise<{ readonly command: string; readonly remedy: string }> => {
  const remedy = '     (sh scripts/setup.sh cri-tools builds crictl)';
  if ((await findProgram('crictl', process.env['PATH'] ?? '')) !== null) return { command: 'crictl', remedy: '' };
  const built = await findProgram(join(cacheDir(), 'bin/crictl'), '');
  return built === null ? { command: 'crictl', remedy } : { command: shellWord(built), remedy: '' };
};

const showHowTo = async ({ root, state, socket }: DemoOptions): Promise<void> => {
  const [rootWord, stateWord, endpoint] = [root, state, `unix://${socket}`].map(shellWord);
  const own =
    root === '/var/lib/scribe' && state === '/run/scribe' ? '' : ` -- --root ${rootWord} --state ${stateWord}`;
  const crictl = await crictlHere();
  say('the daemon and the pod keep running:');
  show(
    [
      `${crictl.command} --runtime-endpoint ${endpoint} pods${crictl.remedy}`,
      `containerRuntimeEndpoint: unix://${socket}     in kubelet's configuration file`,
      `--containerd=${socket}     among kubelet's flags, for its metrics of containers`,
      `bin/scribe history --root ${rootWord} --follow`,
      `npm run down${own}     removes the demo pod and stops the daemon`,
    ].join('\n'),
  );
};

const main = async (): Promise<void> => {
  const options = demoOptions('up');
  // What a root shell by plain su leaves out, and scripts/setup.sh looks in too: iptables is there.
  process.env['PATH'] = `${process.env['PATH'] ?? ''}:/usr/local/sbin:/usr/sbin:/sbin`;
  needRoot('npm run up starts containers');
  const cri = criClient(options.socket);
  try {
    await startDaemon(options, cri);
    await loadImage(options);
    await showPod(options, cri);
    await showHowTo(options);
  } finally {
    cri.close();
  }
};

goOnUnheard();
await main().catch(giveUp);
