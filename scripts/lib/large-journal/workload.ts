/**
 * What goes on at a busy node: services that come and go with their probes, crashes and lack of memory; jobs; people who
 * look inside; kubelet's rounds. Every choice comes from the seed.
 */
import type { CallDraft } from '../../../src/domain/call/draft.ts';
import type { PodSandboxConfig } from '../../../src/domain/model/cri.ts';
import type { Caller } from '../../../src/domain/model/records.ts';
import type { Engine } from '../../../src/engine/engine.ts';
import type { CallReply } from '../../../src/engine/ports.ts';
import type { Journal } from '../../../src/journal/types.ts';
import type { Random } from '../../../test/simulation/random.ts';
import type { VirtualClock } from './clock.ts';
import type { World } from './world.ts';

export interface Workload {
  readonly engine: Engine;
  readonly journal: Journal;
  readonly clock: VirtualClock;
  readonly random: Random;
  readonly world: World;
}

interface Service {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly containers: readonly { readonly name: string; readonly image: string; readonly probe: readonly string[] }[];
  readonly replicas: number;
}

const registry = 'registry.shop.example';
const SERVICES: readonly Service[] = [
  {
    name: 'web',
    namespace: 'shop',
    labels: { app: 'web', tier: 'front' },
    containers: [
      { name: 'nginx', image: `${registry}/nginx`, probe: ['curl', '-fsS', 'http://127.0.0.1:8080/healthz'] },
      { name: 'metrics', image: `${registry}/exporter`, probe: [] },
    ],
    replicas: 12,
  },
  {
    name: 'cart',
    namespace: 'shop',
    labels: { app: 'cart', tier: 'back' },
    containers: [{ name: 'cart', image: `${registry}/cart`, probe: ['/bin/cart', 'check'] }],
    replicas: 14,
  },
  {
    name: 'orders-db',
    namespace: 'shop',
    labels: { app: 'orders', tier: 'data' },
    containers: [{ name: 'postgres', image: `${registry}/postgres`, probe: ['pg_isready', '-U', 'orders'] }],
    replicas: 3,
  },
  {
    name: 'coredns',
    namespace: 'kube-system',
    labels: { 'k8s-app': 'kube-dns' },
    containers: [{ name: 'coredns', image: 'registry.k8s.io/coredns', probe: [] }],
    replicas: 2,
  },
  {
    name: 'prometheus',
    namespace: 'monitoring',
    labels: { app: 'prometheus' },
    containers: [{ name: 'prometheus', image: 'quay.io/prometheus/prometheus', probe: ['promtool', 'check', 'ready'] }],
    replicas: 2,
  },
  {
    name: 'api',
    namespace: 'default',
    labels: { app: 'api', tier: 'back' },
    containers: [{ name: 'api', image: `${registry}/api`, probe: ['cat', '/tmp/healthy'] }],
    replicas: 10,
  },
];
const JOB_SPACING_MS = 9000;
const PROBE_EVERY_MS = 15_000;
const VERSIONS = 5;

const kubelet: Caller = { pid: 812, uid: 0, executable: '/usr/bin/kubelet', startTicks: '1877' };
const agent: Caller = { pid: 1190, uid: 998, executable: '/opt/agent/bin/node-agent', startTicks: '2411' };
const PEOPLE = [
  { uid: 0, executable: '/usr/local/bin/crictl' },
  { uid: 1000, executable: '/usr/local/bin/crictl' },
  { uid: 1001, executable: '/opt/debug/bin/nerdctl (deleted)' },
] as const;

const replyId = ({ outcome }: CallReply): string | null => (outcome.ok ? (outcome.value.id ?? null) : null);

/** How long until something that happens about so often. */
const waitMs = (random: Random, meanMs: number): number => -Math.log(1 - random.next()) * meanMs;

export const startWorkload = ({ engine, journal, clock, random, world }: Workload): void => {
  const pulled = new Set<string>();
  /** Containers that run, and who waits for their end. */
  const running = new Map<string, { readonly podSandboxId: string; readonly ended: (status: number) => void }>();

  const ask = (draft: CallDraft, caller: Caller = kubelet, deadlineMs = 120_000): Promise<CallReply> =>
    engine.call(draft, { caller, deadlineNs: String(clock.nowNs() + BigInt(deadlineMs) * 1_000_000n) as never });
  const person = (): Caller => ({
    ...random.pick(PEOPLE),
    pid: 10_000 + random.below(50_000),
    startTicks: String(clock.monoNs() / 10_000_000n),
  });
  const read = (method: string, subject: string, caller = kubelet): void =>
    journal.appendRead({
      atNs: clock.nowNs(),
      method,
      durationNs: BigInt(80_000 + random.below(900_000)),
      code: 0,
      callerPid: caller.pid,
      callerUid: caller.uid,
      subject,
    });

  const exit = (containerId: string, exitStatus: number, oomKills = 0): void => {
    const found = running.get(containerId);
    if (found === undefined) return;
    running.delete(containerId);
    const { podSandboxId, ended } = found;
    const exitedAtNs = String(clock.nowNs());
    void engine
      .observe({
        kind: 'TaskExited',
        podSandboxId,
        containerId,
        execId: null,
        exit: { pid: world.pidOf(containerId), exitStatus, exitedAtNs, oomKills },
      })
      .then(() => ended(exitStatus));
  };
  world.onKill = (_pod, containerId, signal) => exit(containerId, 128 + signal);

  const pull = async (image: string): Promise<boolean> => {
    for (let tries = 0; tries < 4 && !pulled.has(image); tries += 1) {
      if ((await ask({ method: 'PullImage', image, credentials: null })).outcome.ok) pulled.add(image);
      else await clock.sleep(10_000 * 2 ** tries);
    }
    return pulled.has(image);
  };

  /** Runs a container to its end; its exit status, or null when it did not come to run. */
  const runOnce = async (
    podSandboxId: string,
    config: PodSandboxConfig,
    { name, image, probe }: { readonly name: string; readonly image: string; readonly probe: readonly string[] },
    attempt: number,
    lifeMs: () => number,
  ): Promise<{ readonly containerId: string; readonly exitStatus: number | null } | null> => {
    const labels = { 'io.kubernetes.container.name': name, ...config.labels };
    const envs = [
      { key: 'NODE_NAME', token: 'hmac:0b1c2d3e4f5a6978' },
      { key: 'TOKEN', token: 'hmac:aa55aa55deadbeef' },
    ];
    const created = await ask({
      method: 'CreateContainer',
      podSandboxId,
      config: {
        metadata: { name, attempt },
        image: { image, userSpecifiedImage: image },
        command: [`/usr/bin/${name}`],
        args: ['--config', `/etc/${name}.yaml`],
        envs,
        mounts: [
          {
            containerPath: '/var/run/secrets/kubernetes.io/serviceaccount',
            hostPath: `/var/lib/kubelet/pods/${config.metadata?.uid}/volumes/token`,
            readonly: true,
          },
        ],
        labels,
        annotations: { 'io.kubernetes.container.restartCount': String(attempt) },
        logPath: `${name}/${attempt}.log`,
        linux: { resources: { cpuShares: '512', memoryLimitInBytes: '268435456', oomScoreAdj: '985' } },
      },
    });
    const containerId = replyId(created);
    if (containerId === null) return null;
    const end = new Promise<number>((resolve) => running.set(containerId, { podSandboxId, ended: resolve }));
    if (!(await ask({ method: 'StartContainer', containerId })).outcome.ok) {
      running.delete(containerId);
      return { containerId, exitStatus: null };
    }
    if (probe.length > 0) void probing(containerId, probe);
    void dying(containerId, lifeMs());
    return { containerId, exitStatus: await end };
  };

  const probing = async (containerId: string, cmd: readonly string[]): Promise<void> => {
    await clock.sleep(waitMs(random, PROBE_EVERY_MS));
    while (running.has(containerId)) {
      await ask({ method: 'ExecSync', containerId, cmd, timeoutSeconds: '5' }, random.chance(0.02) ? agent : kubelet);
      await clock.sleep(PROBE_EVERY_MS);
    }
  };

  const dying = async (containerId: string, afterMs: number): Promise<void> => {
    await clock.sleep(afterMs);
    if (random.chance(0.2)) {
      await engine.observe({ kind: 'TaskOomed', containerId });
      exit(containerId, 137, 1);
    } else exit(containerId, random.pick([0, 1, 1, 1, 2, 139]));
  };

  const remove = async (containerId: string): Promise<void> => {
    await ask({ method: 'RemoveContainer', containerId });
    world.forget(containerId);
  };

  const podConfig = (service: Service): PodSandboxConfig => {
    const name = `${service.name}-${(0x10000 + random.below(0xf0000)).toString(36)}-${random.below(60_466_176).toString(36).padStart(5, 'x')}`;
    const uid = world.ids.uuid();
    const own = {
      'io.kubernetes.pod.name': name,
      'io.kubernetes.pod.namespace': service.namespace,
      'io.kubernetes.pod.uid': uid,
    };
    return {
      metadata: { name, namespace: service.namespace, uid, attempt: 0 },
      hostname: name,
      logDirectory: `/var/log/pods/${service.namespace}_${name}_${uid}`,
      dnsConfig: { servers: ['10.96.0.10'], searches: [`${service.namespace}.svc.cluster.local`, 'cluster.local'] },
      labels: { ...service.labels, ...own },
      annotations: { 'kubernetes.io/config.source': 'api' },
      linux: { cgroupParent: `/kubepods/burstable/pod${uid}`, securityContext: { namespaceOptions: { pid: 1 } } },
    };
  };

  /** One pod from its making to its removal. */
  const live = async (service: Service, lifeMs: number, restarts: boolean, version: number): Promise<void> => {
    const config = podConfig(service);
    const podSandboxId = replyId(await ask({ method: 'RunPodSandbox', config, runtimeHandler: '' }));
    if (podSandboxId === null) return;
    let over = false;
    const containers = service.containers.map(async (container) => {
      const image = `${container.image}:1.${version}`;
      const left: string[] = [];
      for (let attempt = 0; !over && attempt < 12; attempt += 1) {
        if (!(await pull(image))) break;
        const run = await runOnce(podSandboxId, config, { ...container, image }, attempt, () =>
          restarts ? waitMs(random, 5_400_000) : lifeMs * random.next(),
        );
        if (run !== null) left.push(run.containerId);
        if (left.length > 1) await remove(left.shift() ?? '');
        if (!restarts) break;
        await clock.sleep(Math.min(300_000, 10_000 * 2 ** attempt));
      }
      for (const containerId of left) await remove(containerId);
    });
    await clock.sleep(lifeMs);
    over = true;
    for (const [containerId, found] of running) {
      if (found.podSandboxId === podSandboxId)
        await ask({ method: 'StopContainer', containerId, timeoutSeconds: '30' });
    }
    await Promise.all(containers);
    await ask({ method: 'StopPodSandbox', podSandboxId });
    await ask({ method: 'RemovePodSandbox', podSandboxId });
  };

  const keeping = async (service: Service): Promise<void> => {
    await clock.sleep(waitMs(random, 60_000));
    for (;;) {
      await live(service, 60_000 + waitMs(random, 1_500_000), true, random.below(VERSIONS));
      await clock.sleep(waitMs(random, 5000));
    }
  };

  const jobs = async (): Promise<void> => {
    for (let count = 0; ; count += 1) {
      await clock.sleep(waitMs(random, JOB_SPACING_MS));
      const container = { name: 'run', image: `${registry}/batch`, probe: [] };
      const labels = { 'batch.kubernetes.io/job-name': `nightly-${count % 40}` };
      const job = { name: `nightly-${count % 40}`, namespace: 'ci', labels, containers: [container], replicas: 1 };
      void live(job, 20_000 + waitMs(random, 60_000), false, random.below(VERSIONS));
    }
  };

  /** Somebody who looks inside, by a session. */
  const looking = async (): Promise<void> => {
    for (;;) {
      await clock.sleep(waitMs(random, 180_000));
      const containerId = [...running.keys()][random.below(Math.max(1, running.size))];
      if (containerId === undefined) continue;
      const caller = person();
      const cmd = random.pick([
        ['sh'],
        ['bash', '-l'],
        ['cat', '/etc/passwd'],
        ['env'],
        ['psql', '-c', 'select 1'],
        ['kill', '1'],
      ]);
      const tty = cmd[0] === 'sh' || cmd[0] === 'bash';
      const newId = world.ids.hex64();
      const session = { newId, containerId, tty, stdin: tty, stdout: true, stderr: !tty, cmd };
      if (!(await ask({ method: 'Exec', ...session }, caller)).outcome.ok) continue;
      void ask({ method: 'ExecSession', ...session, newId: world.ids.hex64(), allowedBy: newId }, caller, 3_600_000);
      if (random.chance(0.1)) await ask({ method: 'StopContainer', containerId, timeoutSeconds: '0' }, person());
    }
  };

  const rounds = async (): Promise<void> => {
    for (;;) {
      await clock.sleep(10_000);
      read('ListPodSandbox', '');
      read('ListContainers', '');
      if (random.chance(0.1)) read('ImageFsInfo', '');
      const containerId = [...running.keys()][0];
      if (containerId !== undefined) read('ContainerStatus', containerId, random.chance(0.1) ? agent : kubelet);
    }
  };

  /** kubelet's collection of images that nothing runs from, and of those that something does. */
  const collecting = async (): Promise<void> => {
    for (;;) {
      await clock.sleep(waitMs(random, 600_000));
      const image = [...pulled][random.below(Math.max(1, pulled.size))];
      if (image === undefined) continue;
      pulled.delete(image);
      await ask({ method: 'RemoveImage', image });
    }
  };

  for (const service of SERVICES) for (let index = 0; index < service.replicas; index += 1) void keeping(service);
  for (const goesOn of [jobs, looking, rounds, collecting]) void goesOn();
};
