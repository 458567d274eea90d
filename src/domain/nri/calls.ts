/** What plugins are asked, as far as it follows from the pod alone. Whatever is about a container is added there. */
import type { DaemonFacts } from '../model/daemon-facts.ts';
import type { EffectOf } from '../model/effects.ts';
import type { Intent } from '../model/records.ts';
import type { NodeState, PodSandbox } from '../model/state.ts';
import { changeTold, pluginsOf } from './plugins.ts';
import { podSandboxView } from './views.ts';

/** `intent`: of the hook. */
export const pluginCall = (
  state: NodeState,
  facts: DaemonFacts,
  sandbox: PodSandbox,
  { hook, plugins, change }: Extract<Intent, { readonly kind: 'CallPlugins' }>,
): EffectOf<'CallPlugins'> => ({
  kind: 'CallPlugins',
  hook,
  plugins: pluginsOf(state, plugins),
  pod: podSandboxView(facts, sandbox),
  ...changeTold(change),
});
