/**
 * The configuration as the rest of scribe sees it: camelCase, plain numbers with their unit in the name, nothing left
 * to default. Must hold no rule: what a key may be is said in schema.ts.
 */
import { join } from 'node:path';
import { stringify } from 'smol-toml';
import {
  type GenericShimOptions,
  type RuncShimOptions,
  type RuntimeHandler,
  takesRuncOptions,
} from '../domain/model/runtime-handler.ts';
import type { AuditPolicy } from '../domain/model/audit-policy.ts';
import type { NriSettings } from '../domain/model/nri-settings.ts';
import type { BaseSpec } from '../domain/model/base-spec.ts';
import type { CgroupDriver } from '../domain/model/spec-settings.ts';
import { auditOf } from './audit-keys.ts';
import { defaultValidatorOf, nriPluginsOf } from './nri-keys.ts';
import { SOCKET_NAME } from './names.ts';
import type { ParsedConfig } from './schema.ts';
import { parseHostAndPort } from './units.ts';

export interface Config {
  /** The files it was read from, in the order they were merged. */
  readonly files: readonly string[];
  /** What they and the flags say, by the keys of the file: to tell an administrator which one it is about. */
  readonly written: ParsedConfig;
  readonly serve: {
    readonly socketPath: string;
    /** Permission bits. */
    readonly socketMode: number;
    /** A name of /etc/group, or a number. */
    readonly socketGroup: string;
    readonly rootDir: string;
    readonly stateDir: string;
    readonly logLevel: ParsedConfig['serve']['log_level'];
    /** Of calls under way when the daemon is told to end. */
    readonly drainTimeoutMs: number;
    /** A path below each hierarchy; null: where the daemon was started. */
    readonly cgroup: string | null;
    /** null: as the daemon was started with. */
    readonly oomScoreAdj: number | null;
    /** Of the daemon's own threads; 0: as it was started. */
    readonly nice: number;
  };
  readonly journal: {
    readonly snapshotEveryRecords: number;
    readonly diskReserveBytes: number;
    readonly witnessIntervalMs: number;
    readonly witnesses: readonly { readonly name: string; readonly url: string; readonly key: string }[];
    readonly retention: {
      readonly readsMs: number;
      readonly execProbesMs: number;
      /** null: as long as their pod. */
      readonly execSessionsMs: number | null;
      /** null: as removed pods. */
      readonly refusedCallsMs: number | null;
      readonly removedPodsMs: number;
      readonly sizeBytesMax: number;
    };
  };
  readonly audit: AuditPolicy;
  readonly cni: {
    readonly confDir: string;
    readonly binDirs: readonly string[];
    readonly pluginTimeoutMs: number;
    readonly ipPreference: ParsedConfig['cni']['ip_preference'];
    readonly maxConfFiles: number;
  };
  readonly nri: NriSettings;
  readonly runtime: {
    /** Name of one of `handlers`. */
    readonly defaultHandler: string;
    readonly handlers: readonly RuntimeHandler[];
    /** Of the default handler: what kubelet is told. */
    readonly cgroupDriver: CgroupDriver;
    readonly restrictOomScoreAdj: boolean | 'auto';
    /** null: the built-in pause program. */
    readonly sandboxImage: string | null;
    readonly enableUnprivilegedPorts: boolean;
    readonly enableUnprivilegedIcmp: boolean;
    readonly enableSelinux: boolean;
    readonly ignoreRdtNotEnabledErrors: boolean;
    readonly ignoreBlockIONotEnabledErrors: boolean;
    /** null: no classes. */
    readonly blockIOConfigFile: string | null;
    /** Later ones win. */
    readonly cdiSpecDirs: readonly string[];
    readonly keptShims: { readonly shimsMax: number; readonly forMs: number };
  };
  readonly checkpoint: {
    /** Of those whose checkpoints are restored here. */
    readonly trustedKeyPaths: readonly string[];
  };
  readonly images: {
    readonly registryConfigDirs: readonly string[];
    readonly mirrorCredentials: boolean;
    readonly maxConcurrentDownloads: number;
    readonly maxConcurrentDownloadsPerRegistry: number;
    /** null: no limit. */
    readonly pullProgressTimeoutMs: number | null;
    /** In each stretch of that time. */
    readonly pullProgressBytesMin: number;
    /** null: the machine's own. */
    readonly platform: { readonly os: string; readonly architecture: string; readonly variant?: string } | null;
    /** Names of images, or their start and "*". */
    readonly pinned: readonly string[];
    /** null: never. */
    readonly checkIntervalMs: number | null;
    readonly checkBytesPerSecond: number;
  };
  readonly streaming: {
    readonly address: string;
    /** 0: one that is free. */
    readonly port: number;
    /** null: no TLS. */
    readonly tls: { readonly certPath: string; readonly keyPath: string } | null;
    readonly idleTimeoutMs: number;
    readonly streamCreationTimeoutMs: number;
  };
  readonly metrics: {
    /** null: nowhere. */
    readonly address: { readonly host: string; readonly port: number } | null;
  };
  readonly tracing: {
    /** null: no traces. */
    readonly endpoint: string | null;
    readonly sampleRatio: number;
  };
  readonly logs: { readonly lineBytesMax: number };
  readonly limits: {
    readonly requestBytesMax: number;
    readonly execOutputBytesMax: number;
    readonly execOutputTotalBytesMax: number;
    readonly layerEntriesMax: number;
    readonly layerBytesMax: number;
    readonly unpackTimeoutMs: number;
    readonly unpackMemoryBytesMax: number;
  };
}

/** What is in the files that handlers name, by handler. */
export type BaseSpecs = ReadonlyMap<string, BaseSpec>;

type ParsedHandler = ParsedConfig['runtime']['handlers'][string];

/** The keys that have a value; undefined when none has, so that what is not configured is not written down. */
const written = <T extends object>(fields: { readonly [K in keyof T]: T[K] | undefined }): T | undefined => {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as T);
};

const textOrNone = (value: unknown): string => (typeof value === 'string' ? value : '');

const shimOptionsOf = (options: ParsedHandler['options']): GenericShimOptions | undefined => {
  if (options === undefined) return undefined;
  const configPath = textOrNone(options['ConfigPath']);
  const configBody = configPath === '' ? stringify(options) : '';
  return { typeUrl: textOrNone(options['TypeUrl']), configPath, configBody };
};

const privilegedDevicesOf = (handler: ParsedHandler): RuntimeHandler['privilegedDevices'] => {
  if (!handler.privileged_without_host_devices) return undefined;
  return handler.privileged_without_host_devices_all_devices_allowed ? 'allowed' : 'asked';
};

const cniOf = ({ cni_conf_dir, cni_network }: ParsedHandler, confDir: string): RuntimeHandler['cni'] => {
  if (cni_conf_dir === undefined && cni_network === undefined) return undefined;
  return { confDir: cni_conf_dir ?? confDir, ...(cni_network === undefined ? {} : { networkName: cni_network }) };
};

const unlessEmpty = (list: readonly string[]): readonly string[] | undefined => (list.length === 0 ? undefined : list);

/** Options that only some handlers have. */
const optionalOf = (handler: ParsedHandler, cniConfDir: string, baseSpec: BaseSpec | undefined) =>
  written<Partial<RuntimeHandler>>({
    shimPath: handler.shim_path === '' ? undefined : handler.shim_path,
    runcOptions: written<RuncShimOptions>({
      noPivotRoot: handler.no_pivot_root,
      noNewKeyring: handler.no_new_keyring,
      ioUid: handler.io_uid,
      ioGid: handler.io_gid,
    }),
    podsPerShim: handler.pods_per_shim === 1 ? undefined : handler.pods_per_shim,
    shimOptions: shimOptionsOf(handler.options),
    baseSpec,
    cni: cniOf(handler, cniConfDir),
    podAnnotations: unlessEmpty(handler.pod_annotations),
    containerAnnotations: unlessEmpty(handler.container_annotations),
    privilegedDevices: privilegedDevicesOf(handler),
  });

/** What the machine tells where the files leave it open. */
export interface Surroundings {
  readonly baseSpecs: BaseSpecs;
  readonly systemdRuns: boolean;
}

const handlersOf = (
  { handlers, cgroup_driver }: ParsedConfig['runtime'],
  cniConfDir: string,
  { baseSpecs, systemdRuns }: Surroundings,
): readonly RuntimeHandler[] =>
  Object.entries(handlers).map(([name, handler]) => ({
    name,
    runtimeType: handler.runtime_type,
    ...optionalOf(handler, cniConfDir, baseSpecs.get(name)),
    binaryName: handler.binary_name,
    // A shim of runc's can start any container first; others may want the pause container.
    sandboxer: handler.sandboxer ?? (takesRuncOptions({ runtimeType: handler.runtime_type }) ? 'none' : 'pause'),
    systemdCgroup: handler.systemd_cgroup ?? (cgroup_driver === 'auto' ? systemdRuns : cgroup_driver === 'systemd'),
  }));

const platformOf = (text: string): Config['images']['platform'] => {
  const [os, architecture, variant] = text.split('/');
  if (os === undefined || architecture === undefined) return null;
  return { os, architecture, ...(variant === undefined ? {} : { variant }) };
};

const tlsOf = ({ tls_cert, tls_key }: ParsedConfig['streaming']): Config['streaming']['tls'] =>
  tls_cert === '' && tls_key === '' ? null : { certPath: tls_cert, keyPath: tls_key };

const nriOf = (nri: ParsedConfig['nri']): NriSettings => ({
  enabled: nri.enable,
  socketPath: nri.socket,
  pluginDir: nri.plugin_dir,
  configDir: nri.config_dir,
  disableConnections: nri.disable_connections,
  registrationTimeoutMs: nri.registration_timeout,
  requestTimeoutMs: nri.request_timeout,
  missesMax: nri.misses_max,
  plugins: nriPluginsOf(nri),
  startupWaitMs: nri.startup_wait,
  defaultValidator: defaultValidatorOf(nri),
});

/** Gives every key its name and form on our side. */
export const configOf = (parsed: ParsedConfig, files: readonly string[], surroundings: Surroundings): Config => {
  const { serve, journal, audit, cni, nri, runtime, checkpoint, images, streaming, metrics, tracing, logs, limits } =
    parsed;
  const handlers = handlersOf(runtime, cni.conf_dir, surroundings);
  const defaultHandler = handlers.find(({ name }) => name === runtime.default_runtime_handler);
  return {
    files,
    written: parsed,
    serve: {
      socketPath: serve.socket === '' ? join(serve.state, SOCKET_NAME) : serve.socket,
      socketMode: serve.socket_mode,
      socketGroup: serve.socket_group,
      rootDir: serve.root,
      stateDir: serve.state,
      logLevel: serve.log_level,
      drainTimeoutMs: serve.drain_timeout,
      cgroup: serve.cgroup === '' ? null : serve.cgroup,
      oomScoreAdj: serve.oom_score_adj ?? null,
      nice: serve.nice,
    },
    journal: {
      snapshotEveryRecords: journal.snapshot_every,
      diskReserveBytes: journal.disk_reserve,
      witnessIntervalMs: journal.witness_interval,
      witnesses: Object.entries(journal.witnesses).map(([name, { url, key }]) => ({ name, url, key })),
      retention: {
        readsMs: journal.retention.reads,
        execProbesMs: journal.retention.exec_probes,
        execSessionsMs: journal.retention.exec_sessions ?? null,
        refusedCallsMs: journal.retention.refused_calls ?? null,
        removedPodsMs: journal.retention.removed_pods,
        sizeBytesMax: journal.retention.size_max,
      },
    },
    audit: auditOf(audit),
    cni: {
      confDir: cni.conf_dir,
      binDirs: cni.bin_dirs,
      pluginTimeoutMs: cni.plugin_timeout,
      ipPreference: cni.ip_preference,
      maxConfFiles: cni.max_conf_files,
    },
    nri: nriOf(nri),
    runtime: {
      defaultHandler: runtime.default_runtime_handler,
      handlers,
      cgroupDriver: defaultHandler?.systemdCgroup === true ? 'systemd' : 'cgroupfs',
      restrictOomScoreAdj: runtime.restrict_oom_score_adj,
      sandboxImage: runtime.sandbox_image === '' ? null : runtime.sandbox_image,
      enableUnprivilegedPorts: runtime.enable_unprivileged_ports,
      enableUnprivilegedIcmp: runtime.enable_unprivileged_icmp,
      enableSelinux: runtime.enable_selinux,
      ignoreRdtNotEnabledErrors: runtime.ignore_rdt_not_enabled_errors,
      ignoreBlockIONotEnabledErrors: runtime.ignore_blockio_not_enabled_errors,
      blockIOConfigFile: runtime.blockio_config_file === '' ? null : runtime.blockio_config_file,
      cdiSpecDirs: runtime.cdi_spec_dirs,
      keptShims: { shimsMax: runtime.kept_shims, forMs: runtime.kept_shims_for },
    },
    checkpoint: { trustedKeyPaths: checkpoint.trusted_keys },
    images: {
      registryConfigDirs: images.registry_config_dirs,
      mirrorCredentials: images.mirror_credentials,
      maxConcurrentDownloads: images.max_concurrent_downloads,
      maxConcurrentDownloadsPerRegistry: images.max_concurrent_downloads_per_registry,
      pullProgressTimeoutMs: images.pull_progress_timeout === 0 ? null : images.pull_progress_timeout,
      pullProgressBytesMin: images.pull_progress_min,
      platform: platformOf(images.platform),
      pinned: images.pinned,
      checkIntervalMs: images.check_interval === 0 ? null : images.check_interval,
      checkBytesPerSecond: images.check_rate,
    },
    streaming: {
      address: streaming.address,
      port: streaming.port,
      tls: tlsOf(streaming),
      idleTimeoutMs: streaming.idle_timeout,
      streamCreationTimeoutMs: streaming.creation_timeout,
    },
    metrics: { address: parseHostAndPort(metrics.address) },
    tracing: { endpoint: tracing.endpoint === '' ? null : tracing.endpoint, sampleRatio: tracing.sample_ratio },
    logs: { lineBytesMax: logs.line_max },
    limits: {
      requestBytesMax: limits.request_max,
      execOutputBytesMax: limits.exec_output_max,
      execOutputTotalBytesMax: limits.exec_output_total,
      layerEntriesMax: limits.layer_entries_max,
      layerBytesMax: limits.layer_unpacked_max,
      unpackTimeoutMs: limits.unpack_timeout,
      unpackMemoryBytesMax: limits.unpack_memory_max,
    },
  };
};
