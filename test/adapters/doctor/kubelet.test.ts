/** What `scribe doctor` says of kubelets that run here: of made-up command lines and configurations, and of a process. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkKubelet, checkKubelets, type KubeletConfiguration } from '../../../src/adapters/doctor/kubelet.ts';

const SOCKET = '/run/scribe/scribe.sock';
const HERE = `unix://${SOCKET}`;

const judged = (flags: readonly string[], ...configurations: KubeletConfiguration[]) => {
  const { status, detail, remedy } = checkKubelet(
    { pid: 7, args: ['/usr/bin/kubelet', ...flags], configurations },
    SOCKET,
  );
  return { status, detail, remedy };
};

const noMetrics = {
  status: 'warning',
  detail:
    'process 7 has its pods from here, but its cAdvisor asks /run/containerd/containerd.sock whose control groups are: /metrics/cadvisor has no container',
  remedy: `Start it with the flag --containerd=${SOCKET}.`,
};
const allHere = {
  status: 'ok',
  detail: 'process 7 has its pods from here, and its metrics of containers',
  remedy: null,
};
const elsewhere = (endpoint: string) => ({
  status: 'ok',
  detail: `process 7 has its pods from ${endpoint}, not from here`,
  remedy: null,
});

test('a kubelet of this daemon is to ask it whose control groups are, by its flag or its gate', () => {
  const gate = (open: boolean): KubeletConfiguration => ({ featureGates: { PodAndContainerStatsFromCRI: open } });
  assert.deepEqual(judged([`--container-runtime-endpoint=${HERE}`]), noMetrics);
  assert.deepEqual(judged(['--container-runtime-endpoint', SOCKET]), noMetrics);
  assert.deepEqual(judged([], { containerRuntimeEndpoint: HERE }), noMetrics);
  assert.deepEqual(judged([`--containerd=${SOCKET}`], { containerRuntimeEndpoint: HERE }), allHere);
  assert.deepEqual(judged(['--containerd', SOCKET], { containerRuntimeEndpoint: HERE }), allHere);
  assert.deepEqual(
    judged(['--feature-gates=A=true,PodAndContainerStatsFromCRI=true'], { containerRuntimeEndpoint: HERE }),
    allHere,
  );
  assert.deepEqual(judged([], { containerRuntimeEndpoint: HERE, ...gate(true) }), allHere);
  assert.deepEqual(judged([], { containerRuntimeEndpoint: HERE }, gate(true), gate(false)), noMetrics);
  assert.deepEqual(
    judged(['--feature-gates=PodAndContainerStatsFromCRI=false'], { containerRuntimeEndpoint: HERE, ...gate(true) }),
    noMetrics,
  );
});

test('a kubelet of another runtime is said to be that', () => {
  assert.deepEqual(judged([]), elsewhere('unix:///run/containerd/containerd.sock'));
  assert.deepEqual(
    judged(['--container-runtime-endpoint=unix:///run/crio/crio.sock'], { containerRuntimeEndpoint: HERE }),
    elsewhere('unix:///run/crio/crio.sock'),
  );
  assert.deepEqual(
    judged([], { containerRuntimeEndpoint: HERE }, { containerRuntimeEndpoint: 'unix:///run/crio/crio.sock' }),
    elsewhere('unix:///run/crio/crio.sock'),
  );
});

test('a kubelet that runs is found, with its configuration from where it was started, drop-ins last', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'scribe-doctor-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  await mkdir(join(dir, 'drop-ins'));
  await writeFile(join(dir, 'kubelet.yaml'), 'containerRuntimeEndpoint: unix:///run/other.sock\nmaxPods: 10\n');
  await writeFile(join(dir, 'drop-ins', '20-here.conf'), `containerRuntimeEndpoint: ${HERE}\n`);
  await writeFile(join(dir, 'drop-ins', '10-bad.conf'), ': {');
  await writeFile(join(dir, 'drop-ins', '30-not-read.yaml'), 'containerRuntimeEndpoint: unix:///run/other.sock\n');
  const flags = ['--config=kubelet.yaml', '--config-dir', join(dir, 'drop-ins')];
  const child = spawn(process.execPath, ['-e', 'console.log(1); setInterval(() => {}, 1000)', '--', ...flags], {
    argv0: '/opt/bin/kubelet',
    cwd: dir,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill());
  await once(child.stdout, 'data');
  const own = (await checkKubelets(SOCKET)).filter(({ detail }) => detail.startsWith(`process ${child.pid} `));
  assert.deepEqual(own, [{ check: 'kubelet', ...noMetrics, detail: noMetrics.detail.replace('7', String(child.pid)) }]);
});
