/**
 * OCI specs as the info maps of verbose replies show them: what containers run by, and where a pod's namespaces are. With tokens
 * where secrets were (C12): they are built again from the state, since the files have the secrets' values.
 */
import { resourcesOf } from '../../../domain/model/container-state.ts';
import { OCI_VERSION, type OciArg, type OciEnv, type OciHook, type OciSpec } from '../../../domain/model/oci.ts';
import type { Container, NodeState, PodSandbox } from '../../../domain/model/state.ts';
import { adjustedSpecOf } from '../../../domain/nri/spec.ts';
import { podSandboxView } from '../../../domain/nri/views.ts';
import { sandboxAnnotationsOf, sandboxSpecOf } from '../../../domain/oci/specs.ts';

type Shown = Readonly<Record<string, unknown>>;

const shownArg = (arg: OciArg): string => (typeof arg === 'string' ? arg : arg.token);
const shownEnv = (entry: OciEnv): string => (typeof entry === 'string' ? entry : `${entry.name}=${entry.token}`);
const shownHook = ({ env, ...hook }: OciHook): Shown => ({
  ...hook,
  ...(env === undefined ? {} : { env: env.map(shownEnv) }),
});

const shownHooks = (hooks: NonNullable<OciSpec['hooks']>): Shown =>
  Object.fromEntries(
    Object.entries(hooks).map(([name, list]: [string, readonly OciHook[]]) => [name, list.map(shownHook)]),
  );

/** All of it text, as config.json has it. */
const inText = ({ process, hooks, ...rest }: OciSpec): Shown => ({
  ...rest,
  process: { ...process, args: process.args.map(shownArg), env: process.env.map(shownEnv) },
  ...(hooks === undefined ? {} : { hooks: shownHooks(hooks) }),
});

/** Specs are made of what was asked for; limits may have changed since. */
function withLimitsThatHold(container: Container): Container {
  const resources = resourcesOf(container);
  const { config } = container;
  return resources === undefined
    ? container
    : { ...container, config: { ...config, linux: { ...config.linux, resources } } };
}

/** null for one that has none yet, or for which none can be made any more. */
export function shownContainerSpec(state: Readonly<NodeState>, container: Container): Shown | null {
  if (state.facts === null || container.facts === null) return null;
  const built = adjustedSpecOf(state, state.facts, withLimitsThatHold(container));
  return built.ok ? inText(built.value) : null;
}

/**
 * That of the task that holds the pod. Where no task does, there is no spec: of what one would say, the namespaces that the
 * pod's containers join are there, in their place. Namespaces that are gone have no path.
 */
export function shownPodSpec({ facts }: Readonly<NodeState>, sandbox: PodSandbox): Shown | null {
  if (facts === null) return null;
  const { namespaces = [] } = podSandboxView(facts, sandbox).linux ?? {};
  if (sandbox.sandboxer === 'none')
    return { ociVersion: OCI_VERSION, annotations: sandboxAnnotationsOf(facts, sandbox), linux: { namespaces } };
  const built = sandboxSpecOf(facts, sandbox);
  return built.ok ? { ...inText(built.value), linux: { ...built.value.linux, namespaces } } : null;
}
