/**
 * The OCI spec of a pod's pause task: the process that holds the pod's namespaces while containers come and go. It
 * needs nothing, so it gets nothing: no capabilities, a read-only root, no /sys. Its view of /proc is masked all the
 * same, because a container that shares its PID namespace can look through /proc/1/root.
 */
import type { Result } from '../model/result.ts';
import type { LinuxSandboxSecurityContext } from '../model/cri.ts';
import { sandboxAnnotations } from './annotations.ts';
import { noCapabilities } from './capabilities.ts';
import { standardRules } from './devices.ts';
import type { PodSandboxSpecInput } from './input.ts';
import { sandboxMounts } from './mounts.ts';
import { hasHostNetwork, sandboxNamespaces } from './namespaces.ts';
import { processArgs, processCwd, processEnv } from './process.ts';
import { refuse, resultOf, shown } from './refuse.ts';
import { cgroupsPath, oomScoreAdj, sandboxResources } from './resources.ts';
import { pauseSeccomp, seccompProfileOf } from './seccomp.ts';
import { checkSelinux, taskLabels } from './selinux.ts';
import { podHostname } from './etc-files.ts';
import { podSysctls } from './sysctls.ts';
import { OCI_VERSION, type OciSpec, type OciUser } from '../model/oci.ts';
import { ociMappings } from './user-namespace.ts';
import { words } from '../values/words.ts';

/** The last to be killed for lack of memory, but for what the node itself runs on. */
const PAUSE_OOM_SCORE_ADJ = -998;

const maskedPaths = words(`
  /proc/acpi /proc/asound /proc/interrupts /proc/kcore /proc/keys /proc/latency_stats /proc/timer_list
  /proc/timer_stats /proc/sched_debug /proc/scsi
`);
const readonlyPaths = words('/proc/bus /proc/fs /proc/irq /proc/sys /proc/sysrq-trigger');

/** "uid" or "uid:gid" of the pause image. */
function imageUser(text: string): OciUser {
  const match = /^(\d{1,10})(?::(\d{1,10}))?$/.exec(text);
  if (match === null) return refuse('ImageInvalid', `the pause image's User ${shown(text)} is not numeric`);
  return { uid: Number(match[1]), gid: Number(match[2] ?? 0) };
}

function sandboxUser(context: LinuxSandboxSecurityContext | undefined, imageUserText: string | undefined): OciUser {
  const own: OciUser | null =
    context?.runAsUser === undefined
      ? null
      : { uid: Number(context.runAsUser.value ?? 0), gid: Number(context.runAsGroup?.value ?? 0) };
  const user = own ?? (imageUserText ? imageUser(imageUserText) : { uid: 0, gid: 0 });
  const groups = context?.supplementalGroups ?? [];
  return groups.length === 0 ? user : { ...user, additionalGids: groups.map(Number) };
}

/** Fails with what of the config cannot be done on this node; the config itself was validated before. */
export function podSandboxSpec(input: PodSandboxSpecInput): Result<OciSpec> {
  return resultOf(() => build(input));
}

function build(input: PodSandboxSpecInput): OciSpec {
  const { podSandboxId, config, node, settings, netnsPath, paths, pause, selinux } = input;
  const context = config.linux?.securityContext;
  checkSelinux(config, node, selinux);
  const labels = taskLabels(selinux, config);
  const seccomp = pauseSeccomp(seccompProfileOf(context), node);
  const sysctl = podSysctls(config, settings);
  return {
    ociVersion: OCI_VERSION,
    process: {
      user: sandboxUser(context, pause.imageConfig.user),
      args: processArgs({}, pause.imageConfig),
      env: processEnv({}, pause.imageConfig, podHostname(config, node)),
      cwd: processCwd({}, pause.imageConfig),
      capabilities: noCapabilities,
      noNewPrivileges: true,
      oomScoreAdj: oomScoreAdj(PAUSE_OOM_SCORE_ADJ, node, settings.restrictOomScoreAdj),
      ...(labels.process === undefined ? {} : { selinuxLabel: labels.process }),
    },
    root: { path: pause.rootfsPath, readonly: true },
    // Without a UTS namespace of its own, setting the name would rename the node.
    ...(config.hostname && !hasHostNetwork(config) ? { hostname: config.hostname } : {}),
    mounts: sandboxMounts(config, paths),
    annotations: sandboxAnnotations(podSandboxId, config, pause.imageName, settings),
    linux: {
      ...ociMappings(config),
      namespaces: sandboxNamespaces(config, netnsPath),
      cgroupsPath: cgroupsPath(settings.cgroupDriver, config.linux?.cgroupParent, podSandboxId),
      resources: { devices: standardRules(settings), ...sandboxResources(node) },
      ...(sysctl === undefined ? {} : { sysctl }),
      ...(seccomp === undefined ? {} : { seccomp }),
      ...(labels.mount === undefined ? {} : { mountLabel: labels.mount }),
      maskedPaths,
      readonlyPaths,
    },
  };
}
