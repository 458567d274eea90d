/** Effects on NRI plugins, and what their success says. Types only. */
import type { NriPlugin, NriProposal, PluginAnswer, PluginHook } from '../nri-plugins.ts';
import type { LinuxContainerResources } from '../cri.ts';
import type { NriResources } from '../nri.ts';
import type { NriContainer, NriPodSandbox } from '../nri-views.ts';

export type NriEffect =
  /**
   * Tells a plugin that has just registered what there is, each view made when it is asked for; what the plugin is asked
   * meanwhile waits for that.
   */
  | {
      readonly kind: 'SynchronizePlugin';
      readonly plugin: NriPlugin;
      readonly pods: Iterable<NriPodSandbox>;
      readonly containers: Iterable<NriContainer>;
    }
  /**
   * Asks plugins one after the other; each sees the container as those before it changed it. Validators, who change
   * nothing, are asked all at once. What is asked about one object is asked in the order in which it was requested.
   * Bounded: a plugin that does not answer is left out.
   */
  | {
      readonly kind: 'CallPlugins';
      readonly hook: PluginHook;
      readonly plugins: readonly NriPlugin[];
      readonly pod: NriPodSandbox;
      /** Absent: it is about the pod. */
      readonly container?: NriContainer;
      /** What is to hold, where it is about a change; overhead: of a pod. */
      readonly change?: { readonly resources?: NriResources; readonly overhead?: NriResources };
      /** Of validators: what they are to judge; the container is as it was before any plugin changed it. */
      readonly proposal?: NriProposal;
    };

export interface NriResults {
  /** Of the plugin: the limits that it wants, of what it was told. */
  readonly SynchronizePlugin: { readonly answers: readonly PluginAnswer[] };
  /** In the order in which they were asked; who was not reached any more is not among them. */
  readonly CallPlugins: { readonly answers: readonly PluginAnswer[] };
}

/** What their intents say; the views follow from the state. */
export interface NriIntents {
  readonly SynchronizePlugin: { readonly plugin: string };
  /** Ids of the plugins, in the order in which they are asked. */
  readonly CallPlugins: {
    readonly hook: PluginHook;
    readonly plugins: readonly string[];
    /** All limits that are to hold, where they are to be changed. */
    readonly change?: { readonly resources?: LinuxContainerResources; readonly overhead?: LinuxContainerResources };
    /** Of validators: what plugins want beside the container; what they want of it was written down before. */
    readonly proposal?: Omit<NriProposal, 'adjust'>;
  };
}
