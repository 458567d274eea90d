/** What daemon.started says of the node and the configuration, so that decisions can be made again elsewhere (C13). */
import type { Config } from '../config/config.ts';
import type { RuntimeHandler } from '../domain/model/runtime-handler.ts';
import type { DaemonFacts } from '../domain/model/daemon-facts.ts';
import { DECISION_RULES } from '../domain/model/rules.ts';
import type { NodeFacts } from '../domain/model/node-facts.ts';
import type { SelinuxContexts } from '../domain/model/selinux.ts';

export function daemonFacts(
  config: Config,
  node: NodeFacts,
  handlers: readonly RuntimeHandler[],
  version: string,
  pauseRootfs: string,
  selinux: SelinuxContexts | null,
): DaemonFacts {
  const { nri, runtime, serve } = config;
  const restrict = runtime.restrictOomScoreAdj;
  return {
    rules: DECISION_RULES,
    version,
    rootDir: serve.rootDir,
    stateDir: serve.stateDir,
    node,
    handlers,
    defaultHandler: runtime.defaultHandler,
    settings: {
      cgroupDriver: runtime.cgroupDriver,
      restrictOomScoreAdj: restrict === 'auto' ? !node.canRaiseLimits : restrict,
      enableUnprivilegedPorts: runtime.enableUnprivilegedPorts,
      enableUnprivilegedIcmp: runtime.enableUnprivilegedIcmp,
      ignoreRdtNotEnabledErrors: runtime.ignoreRdtNotEnabledErrors,
      ignoreBlockIONotEnabledErrors: runtime.ignoreBlockIONotEnabledErrors,
    },
    sandboxImage: runtime.sandboxImage,
    pauseRootfs,
    ...(selinux === null ? {} : { selinux }),
    ...(nri.enabled && nri.defaultValidator.enable
      ? { nri: { validator: nri.defaultValidator.rules, startupWaitMs: nri.startupWaitMs } }
      : {}),
  };
}
