/**
 * Every key of the configuration file: its form, its default and what is said about it in the documented default
 * file (NRI's are in nri-keys.ts). The only place where a key is named on the side of the file; config.ts gives it its name
 * on ours.
 * Tables are strict: a key that is not here is a mistake.
 */
import { isIP } from 'node:net';
import * as z from 'zod';
import {
  absolutePath,
  annotationGlobs,
  choice,
  count,
  duration,
  fileMode,
  flag,
  id,
  key,
  name,
  pathOrEmpty,
  paths,
  size,
  table,
  text,
  tomlData,
  unset,
} from './key-forms.ts';
import { LOG_LEVELS } from '../domain/values/log-levels.ts';
import { auditTable } from './audit-keys.ts';
import { nriTable } from './nri-keys.ts';
import { parseHostAndPort } from './units.ts';

/** Keys that say something to runc's shim alone. */
export const RUNC_SHIM_KEYS = ['no_pivot_root', 'no_new_keyring', 'io_uid', 'io_gid'] as const;

const witness = z.strictObject(
  {
    url: key(
      text.refine((url) => url === '' || (/^https?:\/\/[^\s/]+/.test(url) && URL.canParse(url)), {
        error: 'must be a URL, like "https://witness.example"',
      }),
      '',
      'Where it takes checkpoints, at URL/add-checkpoint.',
    ),
    key: key(
      text.regex(/^([^\s+]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]+=*)?$/, 'must be a key as signed-note has it: NAME+ID+KEY'),
      '',
      'Its public key, as it tells it (NAME+ID+KEY).',
    ),
  },
  { error: 'must be a table' },
);

const handler = z.strictObject(
  {
    runtime_type: key(
      text.regex(/^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+\.v[0-9]+$/, 'must be like "io.containerd.runc.v2"'),
      'io.containerd.runc.v2',
      'Which shim runs the pods: io.containerd.runc.v2 is the program containerd-shim-runc-v2.',
    ),
    binary_name: key(
      text.regex(/^[^\0\s]+$/, 'must be the name or path of a program'),
      'runc',
      'The OCI runtime that the shim uses, by name (looked up in PATH) or absolute path: runc, crun.',
    ),
    shim_path: key(pathOrEmpty, '', 'Path of the shim program; empty: it is looked up in PATH.'),
    sandboxer: unset(
      choice('pause', 'none', 'shim'),
      'pause',
      'What holds a pod open: pause, a container that does nothing; none: scribe pins its namespaces, and the shim starts while the network is attached (pods that share a PID namespace, have users of their own, or set kernel parameters beyond those of their namespaces get pause all the same); or shim: the sandbox service of the shim itself. Unless written: none with io.containerd.runc shims, pause with others, which may want that container.',
    ),
    pods_per_shim: key(
      count(1, 1000),
      1,
      'How many pods may have one shim process together: with more, a pod takes less memory, and all of them lose their containers when it dies. Pods of different handlers never do. With io.containerd.runc shims.',
    ),
    systemd_cgroup: unset(
      flag,
      false,
      'Whether the OCI runtime has systemd make the cgroups. Unless written, it follows cgroup_driver.',
    ),
    no_pivot_root: unset(
      flag,
      false,
      'Have the OCI runtime enter the root file system by chroot instead of pivot_root, as roots in RAM need it. With io.containerd.runc shims.',
    ),
    no_new_keyring: unset(
      flag,
      false,
      'Have the OCI runtime make no session keyring for a container. With io.containerd.runc shims.',
    ),
    io_uid: unset(id, 0, "Owner of the pipes of a container's output and input. With io.containerd.runc shims."),
    io_gid: unset(id, 0, "Group of the pipes of a container's output and input. With io.containerd.runc shims."),
    options: unset(
      z.record(z.string(), tomlData, { error: 'must be a table' }),
      { ConfigPath: '/etc/example/configuration.toml' },
      'What the shim is told with each task, as runtimeoptions.v1.Options: TypeUrl and ConfigPath are its fields of that name; without a ConfigPath it gets the whole table as TOML. With other shims than io.containerd.runc ones.',
    ),
    base_runtime_spec: unset(
      absolutePath,
      '/etc/scribe/base-spec.json',
      'File with an OCI spec (JSON) that the specs of its containers begin with; what CRI, the image and scribe say is put over it. Read at start.',
    ),
    cni_conf_dir: unset(
      absolutePath,
      '/etc/cni/other.d',
      'Where the network configurations of its pods are. Unless written, cni.conf_dir. It is watched as well.',
    ),
    cni_network: unset(
      name,
      'other',
      'Name of the network of its pods. Unless written, the first valid configuration is used, whatever its name.',
    ),
    pod_annotations: key(
      annotationGlobs,
      [],
      'Annotations of pods that shim and OCI runtime are told, with the pod and with each of its containers: patterns as Go\'s path.Match has them, where "*" matches no "/". What OCI runtimes take as orders (org.systemd.property.*, run.oci.hooks.* and the like) is never told.',
    ),
    container_annotations: key(
      annotationGlobs,
      [],
      'Annotations of containers that shim and OCI runtime are told, in patterns of the same form.',
    ),
    privileged_without_host_devices: key(
      flag,
      false,
      "Give privileged containers none of the node's devices but those that they ask for.",
    ),
    privileged_without_host_devices_all_devices_allowed: key(
      flag,
      false,
      'Let privileged containers make and use any device all the same. Goes with privileged_without_host_devices.',
    ),
  },
  { error: 'must be a table' },
);

/** Handlers that are there without being written. */
export const BUILT_IN_HANDLERS: Readonly<Record<string, z.input<typeof handler>>> = { runc: {} };

export const configSchema = z.strictObject({
  serve: table('The daemon itself.', {
    socket: key(pathOrEmpty, '', 'Where kubelet and crictl connect to; empty: scribe.sock in the state directory.'),
    socket_mode: key(fileMode, '0660', 'Permissions of the socket. Whoever may write to it is root on this node.'),
    socket_group: key(name, 'root', 'Group of the socket, by name or number.'),
    root: key(
      absolutePath,
      '/var/lib/scribe',
      'Directory of all that outlives a reboot: the journal, images, containers.',
    ),
    state: key(absolutePath, '/run/scribe', 'Directory of all that a reboot ends: sockets, bundles, mounts.'),
    log_level: key(
      choice(...LOG_LEVELS),
      'info',
      "Least severity that the daemon's own log shows: trace, debug, info, warn, error or fatal.",
    ),
    drain_timeout: key(
      duration('0s'),
      '5s',
      'Time that calls under way have to come to their end when the daemon is told to end. What has not by then is answered Unavailable, and carried on or undone by the next start.',
    ),
    cgroup: key(
      pathOrEmpty,
      '',
      'Control group of the daemon, its spawner and log keeper, below every hierarchy; made if missing. Empty: where it is started.',
    ),
    oom_score_adj: unset(
      count(-1000, 1000),
      -999,
      "The daemon's oom_score_adj; to lower it takes CAP_SYS_RESOURCE. Unless written, it stays as it was started with.",
    ),
    nice: key(
      count(-20, 19),
      -20,
      "The daemon's own nice value, and that of its session where it leads one; what it starts has the value that the daemon was started with. A negative one takes CAP_SYS_NICE. 0: as it was started.",
    ),
  }),
  journal: table('The record of everything that happened on this node, <root>/journal.db.', {
    snapshot_every: key(
      count(100, 10_000_000),
      5_000,
      'Records between two snapshots. A start folds what came after the last one.',
    ),
    disk_reserve: key(
      size('16MiB'),
      '256MiB',
      'Free space below which calls that make something are refused. As much again is kept in <root>/reserve and given up when the disk fills all the same, so that stopping and removing still get recorded; until there is room for both, the disk then counts as full.',
    ),
    witness_interval: key(duration('1s'), '1m', 'How often witnesses are asked to cosign what is new.'),
    witnesses: z.record(name, witness, { error: 'must be a table of tables' }).prefault({}).meta({
      description:
        'Witnesses by a name of your choice: they cosign checkpoints of the journal (c2sp.org/tlog-witness), so that whoever trusts them need keep none.',
    }),
    retention: table('How long what was recorded is kept. The chain of hashes stays whole without the pruned bodies.', {
      reads: key(duration('0s'), '24h', 'Calls that only read: List, Status, Stats.'),
      exec_sessions: unset(
        duration('0s'),
        '30d',
        'Exec, attach and port-forward, with what their sessions did. Unless written, as long as their pod.',
      ),
      refused_calls: unset(
        duration('0s'),
        '30d',
        'Calls that failed and did nothing. Unless written, as removed_pods.',
      ),
      exec_probes: key(duration('0s'), '7d', 'Commands run in containers (ExecSync): most are probes.'),
      removed_pods: key(duration('0s'), '90d', 'All else of pods that are removed, and of NRI plugins that have gone.'),
      size_max: key(size('64MiB'), '2GiB', 'Size of the journal above which the oldest of the above goes early.'),
    }),
  }),
  audit: auditTable,
  cni: table('The pod network.', {
    conf_dir: key(
      absolutePath,
      '/etc/cni/net.d',
      'Where network configurations are: the first valid .conflist, .conf or .json in lexical order is used. It is watched.',
    ),
    bin_dirs: key(
      paths.min(1, 'must name a directory'),
      ['/opt/cni/bin', '/usr/lib/cni', '/usr/libexec/cni'],
      'Where CNI plugins are, first match wins.',
    ),
    plugin_timeout: key(duration('1s'), '30s', 'Time that one plugin has for one command; then it is killed.'),
    ip_preference: key(
      choice('ipv4', 'ipv6', 'cni'),
      'ipv4',
      "Family of a dual-stack pod's first address: ipv4, ipv6, or cni for the order that the plugins gave.",
    ),
    max_conf_files: key(count(1, 1000), 64, 'Files of conf_dir that are looked at until a valid one is found.'),
  }),
  nri: nriTable,
  runtime: table('How pods are run.', {
    default_runtime_handler: key(name, 'runc', 'The runtime handler of pods that name none.'),
    cgroup_driver: key(
      choice('auto', 'cgroupfs', 'systemd'),
      'auto',
      'Who makes cgroups: cgroupfs, systemd, or auto: systemd where it runs. kubelet asks which the default runtime handler has, and does the same.',
    ),
    restrict_oom_score_adj: key(
      z.union([z.boolean(), z.literal('auto')], { error: 'must be true, false or "auto"' }),
      'auto',
      "Never give a container an oom_score_adj below the daemon's own. auto: only where the kernel forbids it anyway.",
    ),
    sandbox_image: key(
      text.regex(/^\S*$/, 'must be an image reference or empty'),
      '',
      'Image of the container that holds a pod open; empty: a program that scribe brings along, nothing to pull.',
    ),
    enable_unprivileged_ports: key(
      flag,
      true,
      'Let pods with a network of their own bind ports below 1024 without a capability.',
    ),
    enable_unprivileged_icmp: key(flag, true, 'Let pods with a network of their own ping without CAP_NET_RAW.'),
    enable_selinux: key(
      flag,
      false,
      "Label pods on a node with SELinux: processes, their files and, where asked for, volumes. Each pod gets categories of its own; the node's policy has to know containers (container-selinux).",
    ),
    blockio_config_file: key(
      pathOrEmpty,
      '',
      'File of block I/O classes (YAML, or JSON when its name ends with .json) that annotations put containers in; empty: no classes. Only root may be able to write to it.',
    ),
    ignore_blockio_not_enabled_errors: key(
      flag,
      false,
      'Without blockio_config_file, leave block I/O classes out instead of refusing containers that ask for one.',
    ),
    ignore_rdt_not_enabled_errors: key(
      flag,
      false,
      'Where resctrl is not mounted, leave RDT classes out instead of refusing containers that ask for one.',
    ),
    cdi_spec_dirs: key(
      paths,
      ['/etc/cdi', '/var/run/cdi'],
      'Where the descriptions of CDI devices are, *.json and *.yaml; of one device in two directories, the later one counts. Only root may be able to write to them. Empty: no CDI devices.',
    ),
    kept_shims: key(
      count(0, 1000),
      8,
      'How many shims are kept at most when their pods have gone, for the next pods of the same handler, which start sooner. A shim serves one pod at a time. 0: none is kept. io.containerd.runc shims of one pod only.',
    ),
    kept_shims_for: key(duration('1s'), '10s', 'How long a shim is kept for the next pod before it is ended.'),
    handlers: z
      .record(name, handler, { error: 'must be a table of tables' })
      .prefault(BUILT_IN_HANDLERS)
      .meta({ description: 'Runtime handlers by name, as RuntimeClass names them. The handler runc is always there.' }),
  }),
  checkpoint: table('Checkpoints of containers and pods, and what is restored from them.', {
    trusted_keys: key(
      paths,
      [],
      'Files with public keys (Ed25519, PEM). A checkpoint that this node did not make is restored only if one of them signed it (ARCHIVE.sig). Read when something is restored; only root may be able to write to them.',
    ),
  }),
  images: table('Pulling images.', {
    registry_config_dirs: key(
      paths,
      ['/etc/scribe/certs.d'],
      'Directories with one directory per registry, which holds its hosts.toml (mirrors, certificates). First match wins.',
    ),
    mirror_credentials: key(flag, true, 'Whether credentials that name no server go to mirrors in hosts.toml too.'),
    max_concurrent_downloads: key(count(1, 100), 3, 'Layers of one image that are fetched at once.'),
    max_concurrent_downloads_per_registry: key(
      count(1, 1000),
      12,
      'Layers that are fetched at once from one registry, whatever images they are of.',
    ),
    pull_progress_timeout: key(duration('0s'), '5m', 'A pull that got no byte for this long is given up; "0s": never.'),
    pull_progress_min: key(
      size('0B'),
      '64KiB',
      'A pull is given up, too, when a request of it got less than this in all of that time; "0B": any byte does.',
    ),
    platform: key(
      text.regex(/^([a-z0-9]+\/[a-z0-9]+(\/[a-z0-9]+)?)?$/, 'must be like "linux/arm64" or empty'),
      '',
      "Which of an image's platforms is pulled, as os/architecture or os/architecture/variant; empty: this machine's.",
    ),
    pinned: key(
      z.array(text.regex(/^[^\s*]+\*?$/, 'must be a name, or the start of a whole name and "*"'), {
        error: 'must be a list of image names',
      }),
      [],
      'Images that a client\'s garbage collection leaves alone, besides sandbox_image: names, or "registry.example/team/*".',
    ),
    check_interval: key(
      duration('0s'),
      '7d',
      'How often what is stored of images is read again, to see whether it is damaged; "0s": never.',
    ),
    check_rate: key(size('64KiB'), '8MiB', 'Bytes a second that this check reads at most.'),
  }),
  streaming: table('The server for the streams of exec, attach and port-forward.', {
    address: key(
      text.refine((address) => isIP(address) !== 0, { error: 'must be an IP address' }),
      '127.0.0.1',
      'IP address that it listens on. kubelet connects to it from the same node.',
    ),
    port: key(count(0, 65_535), 0, 'Port that it listens on; 0: one that is free, while there are sessions.'),
    tls_cert: key(pathOrEmpty, '', 'Certificate chain (PEM) of the server; empty: no TLS. Goes with tls_key.'),
    tls_key: key(pathOrEmpty, '', 'Private key (PEM) of the server; empty: no TLS. Goes with tls_cert.'),
    idle_timeout: key(duration('1s'), '4h', 'A session that moved no byte for this long is ended.'),
    creation_timeout: key(duration('1s'), '30s', 'Time that a client has to open the streams of its session.'),
  }),
  metrics: table('Figures for Prometheus.', {
    address: key(
      text.refine((address) => address === '' || parseHostAndPort(address) !== null, {
        error: 'must be an IP address with a port, like "127.0.0.1:9324" or "[::1]:9324", or empty',
      }),
      '',
      'IP address and port where GET /metrics is answered (HTTP, no TLS: keep it on loopback); empty: nowhere.',
    ),
  }),
  tracing: table('Traces of calls, for OpenTelemetry: each call is a span, each of its effects a span below it.', {
    endpoint: key(
      text.refine((url) => url === '' || (/^https?:\/\/[^\s/]+\/\S*$/.test(url) && URL.canParse(url)), {
        error: 'must be a URL with a path, like "http://127.0.0.1:4318/v1/traces", or empty',
      }),
      '',
      'URL where a collector takes traces (OTLP over HTTP, JSON); empty: no traces.',
    ),
    sample_ratio: key(
      z
        .number({ error: 'must be a number from 0 to 1' })
        .min(0, 'must be a number from 0 to 1')
        .max(1, 'must be a number from 0 to 1'),
      1,
      'Share of the calls that are traced; a caller that is traced itself, as kubelet may be, decides for its calls.',
    ),
  }),
  logs: table("Containers' output.", {
    line_max: key(
      size('1KiB', '64KiB'),
      '16KiB',
      'Bytes of a line in a log file; a longer line is split, its parts marked P. Kept by containers that run.',
    ),
  }),
  limits: table('Bounds on what clients, images and containers may ask for.', {
    request_max: key(size('1MiB', '16MiB'), '16MiB', 'Size of one CRI request or answer; kubelet takes no more.'),
    exec_output_max: key(
      size('64KiB'),
      '16MiB',
      'Output of one ExecSync, stdout and stderr together, and never more than fits its answer (request_max). The rest is cut off, and the last line of what is left says so.',
    ),
    exec_output_total: key(size('1MiB'), '64MiB', 'Memory for the output of all ExecSync under way; more is cut off.'),
    layer_entries_max: key(count(1000, 100_000_000), 1_000_000, 'Files, directories and links of one image layer.'),
    layer_unpacked_max: key(size('1MiB'), '64GiB', 'Size of one image layer as unpacked.'),
    unpack_timeout: key(duration('10s'), '1h', 'Time that unpacking one layer may take.'),
    unpack_memory_max: key(
      size('768MiB'),
      '1GiB',
      'Memory of the process that unpacks one layer. Some 600 MiB of it are set aside before a layer is read.',
    ),
  }),
});

export type ParsedConfig = z.output<typeof configSchema>;
