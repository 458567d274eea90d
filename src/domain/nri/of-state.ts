/** What NRI plugins are told of a container at this moment: with what plugins changed in it, and its process if there is one. */
import type { DaemonFacts } from '../model/daemon-facts.ts';
import type { NriContainer } from '../model/nri-views.ts';
import type { PluginHook } from '../model/nri-plugins.ts';
import type { Container, NodeState } from '../model/state.ts';
import { adjustedSpecOf } from './spec.ts';
import { containerView } from './views.ts';

/** `hook`: absent when a plugin is told of all there is. */
export function containerNow(
  state: NodeState,
  facts: DaemonFacts,
  container: Container,
  hook?: PluginHook,
): NriContainer {
  const { phase, nri, podSandboxId } = container;
  const built = adjustedSpecOf(state, facts, withLimitsThatHold(container));
  const blockioClass = nri?.adjusted?.adjust.linux?.resources?.blockioClass;
  const made = 'made' in phase ? phase.made : undefined;
  return containerView(state, {
    container,
    sandbox: state.sandboxes.get(podSandboxId),
    spec: built.ok ? built.value : null,
    ...(blockioClass === undefined ? {} : { blockioClass }),
    ...(made === undefined ? {} : { task: made }),
    ...(hook === 'StopContainer' ? { handlesExit: true } : {}),
  });
}

/** As it was asked for, before any plugin changed it: what validators judge. */
export const containerAsAsked = (
  state: NodeState,
  facts: DaemonFacts,
  { nri: _nri, resources: _limits, ...asked }: Container,
): NriContainer => containerNow(state, facts, asked, 'ValidateContainerAdjustment');

/** A spec is made of what was asked for; limits have changed since. */
function withLimitsThatHold(container: Container): Container {
  const { config, resources } = container;
  return resources === undefined
    ? container
    : { ...container, config: { ...config, linux: { ...config.linux, resources } } };
}
