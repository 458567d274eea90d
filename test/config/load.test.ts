/** Loading the configuration: layers, defaults, and everything that can be wrong with a file. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { type ConfigOverrides, loadConfig } from '../../src/config/load.ts';
import { FailureError } from '../../src/domain/model/errors.ts';

const writeFiles = async (t: TestContext, files: Readonly<Record<string, string>>): Promise<string> => {
  const dir = await mkdtemp(join(tmpdir(), 'scribe-config-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(dir, name)), { recursive: true });
    await writeFile(join(dir, name), content);
  }
  return dir;
};

const load = async (t: TestContext, text: string, overrides: ConfigOverrides = {}, systemdRuns = false) =>
  loadConfig({
    path: join(await writeFiles(t, { 'config.toml': text }), 'config.toml'),
    overrides,
    runsSystemd: () => Promise.resolve(systemdRuns),
  });

const problemsOf = async (loading: Promise<unknown>): Promise<string> => {
  try {
    await loading;
  } catch (error) {
    assert.ok(error instanceof FailureError);
    assert.equal(error.failure.reason, 'InvalidField');
    return error.message;
  }
  throw new Error('the configuration should have been refused');
};

describe('loading the configuration', () => {
  it('turns units into numbers and empty text into what it stands for', async (t) => {
    const config = await load(
      t,
      `[serve]
      state = "/run/elsewhere"
      socket_mode = "0600"
      [journal]
      disk_reserve = "1GiB"
      [journal.retention]
      reads = "1h30m"
      removed_pods = "365d"
      [images]
      pull_progress_timeout = "0s"
      platform = "linux/arm64/v8"
      [runtime]
      restrict_oom_score_adj = true
      `,
    );
    assert.equal(config.serve.socketPath, '/run/elsewhere/scribe.sock');
    assert.equal(config.serve.socketMode, 0o600);
    assert.equal(config.journal.diskReserveBytes, 2 ** 30);
    assert.equal(config.journal.retention.readsMs, 5_400_000);
    assert.equal(config.journal.retention.removedPodsMs, 365 * 86_400_000);
    assert.equal(config.journal.retention.execProbesMs, 7 * 86_400_000);
    assert.deepEqual([config.images.pullProgressTimeoutMs, config.images.pullProgressBytesMin], [null, 65_536]);
    assert.deepEqual(config.images.platform, { os: 'linux', architecture: 'arm64', variant: 'v8' });
    assert.equal(config.runtime.restrictOomScoreAdj, true);
    assert.equal(config.runtime.sandboxImage, null);
  });

  it('merges drop-ins in lexical order, table by table', async (t) => {
    const dir = await writeFiles(t, {
      'config.toml': '[cni]\nconf_dir = "/a"\nbin_dirs = ["/x", "/y"]\n[runtime.handlers.crun]\nbinary_name = "crun"\n',
      'conf.d/20-second.toml': '[cni]\nconf_dir = "/c"\n',
      'conf.d/10-first.toml': '[cni]\nconf_dir = "/b"\nbin_dirs = ["/z"]\n[runtime.handlers.crun]\nshim_path = "/s"\n',
      'conf.d/ignored.txt': 'not TOML',
      'conf.d/.hidden.toml': 'not TOML',
    });
    const config = await loadConfig({ path: join(dir, 'config.toml') });
    assert.equal(config.cni.confDir, '/c');
    assert.deepEqual(config.cni.binDirs, ['/z']);
    assert.deepEqual(
      config.files,
      ['config.toml', 'conf.d/10-first.toml', 'conf.d/20-second.toml'].map((name) => join(dir, name)),
    );
    const shared = { runtimeType: 'io.containerd.runc.v2', sandboxer: 'none', systemdCgroup: false };
    assert.deepEqual(config.runtime.handlers, [
      { name: 'runc', binaryName: 'runc', ...shared },
      { name: 'crun', binaryName: 'crun', shimPath: '/s', ...shared },
    ]);
  });

  it('takes a shim with a sandbox service as what holds a pod, and nothing that it does not know', async (t) => {
    const handler = (sandboxer: string) => `[runtime.handlers.own]\nsandboxer = "${sandboxer}"\n`;
    const { runtime } = await load(t, handler('shim'));
    assert.equal(runtime.handlers.find(({ name }) => name === 'own')?.sandboxer, 'shim');
    await assert.rejects(load(t, handler('pods')), /"pause", "none", "shim"/);
  });

  it('lets flags win, with paths of the working directory', async (t) => {
    const config = await load(
      t,
      '[serve]\nroot = "/a"\n[runtime]\ndefault_runtime_handler = "other"\n[runtime.handlers.other]\nbinary_name = "x"\n',
      {
        socket: '/s.sock',
        root: 'data',
        cniConfDir: '/net.d',
        cniBinDirs: ['bin', '/bin'],
        registryConfigDirs: ['/certs.d'],
        runtime: 'crun',
        logLevel: 'debug',
      },
    );
    assert.equal(config.serve.socketPath, '/s.sock');
    assert.equal(config.serve.rootDir, resolve('data'));
    assert.equal(config.serve.stateDir, '/run/scribe');
    assert.equal(config.serve.logLevel, 'debug');
    assert.deepEqual(config.cni.binDirs, [resolve('bin'), '/bin']);
    assert.equal(config.cni.confDir, '/net.d');
    assert.deepEqual(config.images.registryConfigDirs, ['/certs.d']);
    const binaries = config.runtime.handlers.map(({ name, binaryName }) => `${name}=${binaryName}`);
    assert.deepEqual(binaries, ['runc=runc', 'other=crun']);
  });

  it('has handlers follow the cgroup driver unless they say otherwise', async (t) => {
    const text = '[runtime]\ncgroup_driver = "systemd"\n[runtime.handlers.own]\nsystemd_cgroup = false\n';
    const { runtime } = await load(t, text);
    assert.deepEqual(
      runtime.handlers.map(({ name, systemdCgroup }) => [name, systemdCgroup]),
      [
        ['runc', true],
        ['own', false],
      ],
    );
  });

  it("has systemd make cgroups where it runs, and tells the default handler's driver", async (t) => {
    const driver = async (text: string, systemdRuns: boolean) => {
      const { runtime } = await load(t, text, {}, systemdRuns);
      const own = runtime.handlers.find(({ name }) => name === runtime.defaultHandler);
      assert.equal(own?.systemdCgroup, runtime.cgroupDriver === 'systemd');
      return runtime.cgroupDriver;
    };
    assert.equal(await driver('', true), 'systemd');
    assert.equal(await driver('', false), 'cgroupfs');
    assert.equal(await driver('[runtime]\ncgroup_driver = "auto"', true), 'systemd');
    assert.equal(await driver('[runtime]\ncgroup_driver = "cgroupfs"', true), 'cgroupfs');
    assert.equal(await driver('[runtime.handlers.runc]\nsystemd_cgroup = true', false), 'systemd');
    assert.equal(await driver('[runtime.handlers.other]\nsystemd_cgroup = true', false), 'cgroupfs');
    const other = '[runtime]\ndefault_runtime_handler = "other"\n[runtime.handlers.other]\nsystemd_cgroup = false';
    assert.equal(await driver(other, true), 'cgroupfs');
  });

  it('gives every handler options of its own, and leaves out what is not written', async (t) => {
    const { runtime } = await load(
      t,
      `[runtime.handlers.crun]
      binary_name = "crun"
      io_uid = 1000
      pods_per_shim = 16
      no_pivot_root = true
      cni_conf_dir = "/etc/cni/other.d"
      cni_network = "other"
      pod_annotations = ["run.oci.*", "vendor.example/*"]
      container_annotations = ["[a-z]*"]
      privileged_without_host_devices = true
      [runtime.handlers.kata]
      runtime_type = "io.containerd.kata-qemu.v2"
      privileged_without_host_devices = true
      privileged_without_host_devices_all_devices_allowed = true
      [runtime.handlers.kata.options]
      ConfigPath = "/etc/kata.toml"
      [runtime.handlers.sand]
      runtime_type = "io.containerd.runsc.v1"
      cni_network = "sand"
      [runtime.handlers.sand.options]
      TypeUrl = "io.containerd.runsc.v1.options"
      debug = true
      [runtime.handlers.sand.options.runsc_config]
      platform = "systrap"
      `,
    );
    const [runc, crun, kata, sand] = runtime.handlers;
    assert.deepEqual(runc, {
      name: 'runc',
      runtimeType: 'io.containerd.runc.v2',
      binaryName: 'runc',
      sandboxer: 'none',
      systemdCgroup: false,
    });
    assert.deepEqual(crun?.runcOptions, { noPivotRoot: true, ioUid: 1000 });
    assert.equal(crun.podsPerShim, 16);
    assert.deepEqual(crun.cni, { confDir: '/etc/cni/other.d', networkName: 'other' });
    assert.deepEqual(sand?.cni, { confDir: '/etc/cni/net.d', networkName: 'sand' });
    assert.deepEqual(crun.podAnnotations, ['run.oci.*', 'vendor.example/*']);
    assert.deepEqual(crun.containerAnnotations, ['[a-z]*']);
    assert.equal(crun.privilegedDevices, 'asked');
    assert.equal(kata?.privilegedDevices, 'allowed');
    assert.deepEqual(kata.shimOptions, { typeUrl: '', configPath: '/etc/kata.toml', configBody: '' });
    assert.equal(sand.shimOptions?.typeUrl, 'io.containerd.runsc.v1.options');
    assert.match(sand.shimOptions.configBody, /debug = true\n+\[runsc_config\]\nplatform = "systrap"/);
    assert.equal(sand.sandboxer, 'pause');
  });

  it('reads the base specs that handlers name, and says which file and field is wrong', async (t) => {
    const dir = await writeFiles(t, {
      'good.json': '{"process":{"rlimits":[{"type":"RLIMIT_NOFILE","soft":1,"hard":2}]}}',
      'field.json': '{"process":{"rlimits":[{"type":"RLIMIT_NOFILE","soft":"1","hard":2}]}}',
      'text.json': '{',
      'large.json': ' '.repeat(70_000),
    });
    const base = (name: string, file: string) => `[runtime.handlers.${name}]\nbase_runtime_spec = "${dir}/${file}"\n`;
    const { runtime } = await load(t, base('a', 'good.json'));
    const rlimits = [{ type: 'RLIMIT_NOFILE', soft: 1, hard: 2 }];
    assert.deepEqual(runtime.handlers.find(({ name }) => name === 'a')?.baseSpec, { rlimits });
    const bad = ['field.json', 'text.json', 'large.json', 'none.json', ''].map((file, index) =>
      base(`b${index}`, file),
    );
    const said = (await problemsOf(load(t, bad.join('')))).split('\n');
    for (const [index, problem] of [
      /b0\.base_runtime_spec \/.*field\.json can't be used: process\.rlimits\[0\]\.soft must be a whole number/,
      /b1\.base_runtime_spec \/.*text\.json can't be used: .*JSON/,
      /b2\.base_runtime_spec \/.*large\.json can't be used: it has 70000 bytes, more than/,
      /b3\.base_runtime_spec \/.*none\.json can't be used: ENOENT/,
      /b4\.base_runtime_spec \/.* can't be used: it is no regular file/,
    ].entries())
      assert.match(said[index + 1] ?? '', problem);
  });

  it('cannot be changed once loaded', async (t) => {
    const config = await load(t, '');
    const write = (): void => {
      Object.assign(config.runtime.handlers[0] ?? {}, { name: 'x' });
    };
    assert.throws(write, TypeError);
  });

  it('names file, key and the nearest valid key, for all mistakes at once', async (t) => {
    const dir = await writeFiles(t, {
      'config.toml': [
        '[serve]',
        'sockets = "/x"',
        'conf_dir = "/y"',
        '[jornal]',
        'a = 1',
        '[journal.retention]',
        'read = "24h"',
        '[runtime.handlers.kata]',
        'runtime_typ = "x"',
      ].join('\n'),
      'conf.d/a.toml': '[images]\nfoo_bar_baz = 1\n[cni]\nplugin_timeout = "30 s"\n',
    });
    const text = await problemsOf(loadConfig({ path: join(dir, 'config.toml') }));
    const main = `- ${dir}/config.toml: `;
    const expected = [
      `${main}"sockets" is not a key of [serve]; did you mean "socket"?`,
      `${main}"conf_dir" is not a key of [serve]; it belongs to [cni]`,
      `${main}"jornal" is not a key at the top; did you mean "journal"?`,
      `${main}"read" is not a key of [journal.retention]; did you mean "reads"?`,
      `${main}"runtime_typ" is not a key of [runtime.handlers.kata]; did you mean "runtime_type"?`,
      `- ${dir}/conf.d/a.toml: "foo_bar_baz" is not a key of [images]; known are registry_config_dirs, mirror_credentials, max_concurrent_downloads, max_concurrent_downloads_per_registry, pull_progress_timeout, pull_progress_min, platform, pinned, check_interval, check_rate`,
      `- ${dir}/conf.d/a.toml: cni.plugin_timeout "30 s" is not a duration in quotes like "24h" or "1h30m" (units: ms, s, m, h, d)`,
    ];
    const lines = text.split('\n');
    assert.equal(lines[0], "The configuration can't be used:");
    assert.deepEqual(lines.slice(1).sort(), expected.sort());
  });

  const mistakes: readonly [text: string, message: RegExp][] = [
    ['[journal.retention]\nreads = 24', /journal\.retention\.reads must be a duration in quotes like "24h"/],
    ['[journal.retention]\nreads = "24hh"', /"24hh" is not a duration/],
    ['[journal.retention]\nreads = "-1h"', /"-1h" is not a duration/],
    ['[journal.retention]\nreads = "99999999999999999999h"', /is not a duration/],
    ['[journal.retention]\nsize_max = "64MB"', /"64MB" is not a size in quotes like "64MiB" \(units: B, KiB, MiB/],
    ['[limits]\nunpack_memory_max = "512MiB"', /unpack_memory_max 512MiB is less than 768MiB/],
    ['[journal.retention]\nsize_max = "1KiB"', /size_max 1KiB is less than 64MiB/],
    ['[logs]\nline_max = "65KiB"', /logs\.line_max 65KiB is more than 64KiB/],
    ['[cni]\nplugin_timeout = "0s"', /cni\.plugin_timeout 0s is less than 1s/],
    ['[cni]\nip_preference = "v4"', /cni\.ip_preference must be one of "ipv4", "ipv6", "cni"/],
    ['[cni]\nbin_dirs = "/x"', /cni\.bin_dirs must be a list of absolute paths/],
    ['[cni]\nbin_dirs = ["x"]', /cni\.bin_dirs\.0 must be an absolute path/],
    ['[cni]\nbin_dirs = []', /cni\.bin_dirs must name a directory/],
    ['[cni]\nmax_conf_files = 1.5', /cni\.max_conf_files must be a whole number from 1 to 1000/],
    ['[serve]\nsocket_mode = "660"', /serve\.socket_mode "660" is not a file mode in quotes like "0660"/],
    ['[serve]\nroot = "relative"', /serve\.root must be an absolute path/],
    ['[runtime]\nenable_unprivileged_icmp = "yes"', /runtime\.enable_unprivileged_icmp must be true or false/],
    ['[runtime]\nrestrict_oom_score_adj = "maybe"', /runtime\.restrict_oom_score_adj must be true, false or "auto"/],
    ['[runtime.handlers."a b"]', /runtime\.handlers\.a b must start with a letter or digit/],
    ['[runtime]\ndefault_runtime_handler = "kata"', /there is no \[runtime\.handlers\.kata\]; there are runc/],
    ['[runtime.handlers.x]\npod_annotations = ["a["]', /handlers\.x\.pod_annotations\.0 must be a pattern like/],
    ['[runtime.handlers.x]\ncontainer_annotations = "a"', /x\.container_annotations must be a list of patterns/],
    ['[runtime.handlers.x]\ncni_conf_dir = "net.d"', /runtime\.handlers\.x\.cni_conf_dir must be an absolute path/],
    ['[runtime.handlers.x]\ncni_network = "a/b"', /runtime\.handlers\.x\.cni_network must start with a letter/],
    ['[runtime.handlers.x]\nio_uid = -1', /runtime\.handlers\.x\.io_uid must be a whole number from 0/],
    ['[runtime.handlers.x]\nruntime_type = "kata"', /x\.runtime_type must be like "io\.containerd\.runc\.v2"/],
    ['[runtime.handlers.x]\npods_per_shim = 0', /runtime\.handlers\.x\.pods_per_shim must be a whole number from 1 to/],
    [
      '[runtime.handlers.x]\nruntime_type = "io.containerd.kata.v2"\npods_per_shim = 2',
      /handlers\.x\.pods_per_shim is for io\.containerd\.runc shims, and io\.containerd\.kata\.v2 has one for each pod/,
    ],
    [
      '[runtime.handlers.x]\nsandboxer = "shim"\npods_per_shim = 2',
      /handlers\.x\.pods_per_shim does not go with sandboxer = "shim"/,
    ],
    ['[runtime.handlers.x.options]\na = 1', /runtime\.handlers\.x\.options is for other shims than/],
    [
      '[runtime.handlers.x]\nruntime_type = "io.containerd.kata.v2"\nno_pivot_root = true',
      /handlers\.x\.no_pivot_root is for io\.containerd\.runc shims, and not for io\.containerd\.kata\.v2/,
    ],
    [
      '[runtime.handlers.x]\nruntime_type = "io.containerd.kata.v2"\n[runtime.handlers.x.options]\nConfigPath = 1',
      /handlers\.x\.options\.ConfigPath must be text in quotes/,
    ],
    [
      '[runtime.handlers.x]\nprivileged_without_host_devices_all_devices_allowed = true',
      /all_devices_allowed goes with privileged_without_host_devices/,
    ],
    [
      '[runtime]\ncgroup_driver = "cgroupfs"\n[runtime.handlers.runc]\nsystemd_cgroup = true',
      /runtime\.cgroup_driver is "cgroupfs", but runtime\.handlers\.runc\.systemd_cgroup of the default handler is true/,
    ],
    [
      '[runtime]\ncgroup_driver = "systemd"\n[runtime.handlers.runc]\nsystemd_cgroup = false',
      /runtime\.cgroup_driver is "systemd", but runtime\.handlers\.runc\.systemd_cgroup of the default handler is false/,
    ],
    [
      '[streaming]\naddress = "127.0.0.1"\nport = 9324\n[metrics]\naddress = "127.0.0.1:9324"',
      /streaming and metrics\.address are both to listen on port 9324 of 127\.0\.0\.1/,
    ],
    ['[limits]\nrequest_max = "17MiB"', /limits\.request_max 17MiB is more than 16MiB/],
    ['cni = 3', /config\.toml: cni must be a table/],
    ['serve = 2026-01-01', /config\.toml: serve must be a table/],
    ['[serve]\nroot = "/x"\nstate = "/x"', /serve\.root and serve\.state are both \/x/],
    ['[streaming]\naddress = "localhost"', /streaming\.address must be an IP address/],
    ['[metrics]\naddress = ":9324"', /metrics\.address must be an IP address with a port/],
    ['[metrics]\naddress = "[127.0.0.1]:9324"', /metrics\.address must be an IP address with a port/],
    ['[tracing]\nendpoint = "collector:4318"', /tracing\.endpoint must be a URL with a path/],
    ['[tracing]\nendpoint = "http://collector:65536/v1/traces"', /tracing\.endpoint must be a URL with a path/],
    ['[tracing]\nsample_ratio = 2', /tracing\.sample_ratio must be a number from 0 to 1/],
    ['[streaming]\nport = 65536', /streaming\.port must be a whole number from 0 to 65535/],
    ['[streaming]\ntls_cert = "/cert.pem"', /streaming\.tls_cert and streaming\.tls_key go together/],
    [`[serve]\nstate = "/${'x'.repeat(120)}"`, /longer than the 107 bytes a socket may have/],
    ['[serve\n', /config\.toml:\d+:\d+: Invalid TOML document/],
    ['__proto__ = 1', /"__proto__" is not a key at the top/],
  ];
  for (const [text, message] of mistakes) {
    it(`refuses ${JSON.stringify(text)}`, async (t) => {
      assert.match(await problemsOf(load(t, text)), message);
    });
  }

  it('refuses wrong flags', async (t) => {
    assert.match(
      await problemsOf(load(t, '', { logLevel: 'loud' })),
      /the command line: serve\.log_level must be one of/,
    );
  });

  it('refuses a named file that is not there', async () => {
    assert.match(await problemsOf(loadConfig({ path: '/nonexistent/config.toml' })), /can't be read: ENOENT/);
  });
});
