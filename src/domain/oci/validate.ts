/**
 * The two questions deciders ask of a config before they accept it. null means that it can be carried out, as far as
 * can be told without looking at the image and the host.
 */
import type { ContainerConfig, PodSandboxConfig } from '../model/cri.ts';
import type { Failure } from '../model/errors.ts';
import type { NodeFacts } from '../model/node-facts.ts';
import { DECISION_RULES } from '../model/rules.ts';
import type { SandboxPaths } from './input.ts';
import type { SpecSettings } from '../model/spec-settings.ts';
import { hasHostNetwork } from './namespaces.ts';
import { podSandboxSpec } from './pod-sandbox-spec.ts';
import { failureIn } from './refuse.ts';
import { checkSwap, RESOURCES_FIELD } from './resources.ts';
import type { SelinuxContexts } from '../model/selinux.ts';
import { checkContainerConfig } from './validate-container.ts';
import { checkPodSandboxConfig } from './validate-pod.ts';

export interface ValidationFacts {
  readonly node: NodeFacts;
  readonly settings: SpecSettings;
  readonly selinux?: SelinuxContexts;
}

/** Stand for what only the pod itself will have; a spec built with them is thrown away. */
const ANY = '/any';
const anyPaths: SandboxPaths = { resolvConf: ANY, hosts: ANY, hostname: ANY, shm: ANY };

/** Also tries the spec, so that building it later cannot fail. */
export function validatePodSandboxConfig(config: PodSandboxConfig, facts: ValidationFacts): Failure | null {
  const failure = failureIn(() => checkPodSandboxConfig(config));
  if (failure !== null) return failure;
  const tried = podSandboxSpec({
    podSandboxId: '',
    config,
    node: facts.node,
    settings: facts.settings,
    ...(facts.selinux === undefined ? {} : { selinux: { process: ANY, mount: ANY } }),
    netnsPath: hasHostNetwork(config) ? null : ANY,
    paths: anyPaths,
    pause: { rootfsPath: ANY, imageName: '', imageConfig: { entrypoint: [ANY] } },
  });
  return tried.ok ? null : tried.failure;
}

/** The spec itself depends on the image and on facts that are not known yet, and may still be refused for them. */
export const validateContainerConfig = (
  config: ContainerConfig,
  sandboxConfig: PodSandboxConfig,
  rules = DECISION_RULES,
): Failure | null =>
  failureIn(() => {
    checkContainerConfig(config, sandboxConfig, rules);
    // Before, it was left to the OCI runtime.
    if (rules >= 11) checkSwap(RESOURCES_FIELD, config.linux?.resources ?? {});
  });
