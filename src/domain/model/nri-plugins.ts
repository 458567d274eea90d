/**
 * NRI plugins as the domain knows them: which are there, what they want to be asked, and what they answered. They are
 * inputs: what follows from an answer is decided here, and again from the journal without any plugin (C13). Types only.
 */
import type { ContainerFacts } from './container-facts.ts';
import type { Int64 } from './cri.ts';
import type { ContainerAdjustment, FieldOwners } from './nri.ts';
import type { NriAnswer, NriHook, NriPluginInstance, NriUpdate } from './nri-views.ts';

/** What plugins subscribe to. */
export type PluginHook = Exclude<NriHook, 'Synchronize'>;

/** A plugin that is there, from its registration until it is closed. */
export interface NriPlugin {
  /** Of this registration: the same plugin has another when it comes back. */
  readonly id: string;
  readonly name: string;
  /** Two digits: plugins are asked in ascending order. */
  readonly index: string;
  /** What it wants to be asked. */
  readonly hooks: readonly PluginHook[];
  /** What it does not answer counts as refused; absent: as not said. */
  readonly isRequired?: true;
}

/** refused: in its own words. unanswered, closed: it is left out, and what it was asked about goes on. */
export interface PluginFailure {
  readonly kind: 'refused' | 'unanswered' | 'closed';
  /** What it did not say counts as no. Older journals have such a failure as refused. */
  readonly isRequired?: true;
  readonly message: string;
}

/** What one plugin said to one hook. */
export interface PluginAnswer {
  /** "NN-name". */
  readonly plugin: string;
  readonly durationNs: Int64;
  /** Absent: it failed. */
  readonly answer?: NriAnswer;
  readonly failure?: PluginFailure;
}

/** failed: nobody can say what plugins were told. */
export type HookState = 'doing' | 'done' | 'failed';

/** How far each hook is that plugins were asked about one object; absent: they were not. */
export type HooksTold = Readonly<Partial<Record<PluginHook, HookState>>>;

/** What NRI plugins have to do with a container. */
export interface ContainerNri {
  readonly hooks: HooksTold;
  /** What they changed in its spec, and who set what; absent: nothing. */
  readonly adjusted?: ContainerAdjusted;
  /** What names in the adjustment stand for; absent: there are none. */
  readonly facts?: ContainerFacts;
}

export interface ContainerAdjusted {
  readonly adjust: ContainerAdjustment;
  readonly owners: FieldOwners;
}

/** What plugins want when a container is created, for validators to judge. */
export interface NriProposal {
  readonly adjust: ContainerAdjustment;
  /** Of other containers. */
  readonly updates: readonly NriUpdate[];
  /** By container. */
  readonly owners: Readonly<Record<string, FieldOwners>>;
  /** Those who are there, without those who were asked in vain. */
  readonly plugins: readonly NriPluginInstance[];
}

/** Plugins come and go, as it is recorded. */
export type NriNote =
  | { readonly type: 'nri.plugin.registered'; readonly body: NriPlugin }
  | { readonly type: 'nri.plugin.closed'; readonly body: { readonly id: string; readonly reason: string } };
