/**
 * The validator that scribe brings along, with the keys that containerd's has: what plugins may not change, and which of
 * them have to be there for a container to be made. Fails closed: an annotation that cannot be read is a refusal. Pure.
 */
import { ProfileType, type SecurityProfile } from '../model/cri.ts';
import type { Failure, FailureReason } from '../model/errors.ts';
import type { FieldOwners, NriField } from '../model/nri.ts';
import type { PluginAnswer } from '../model/nri-plugins.ts';
import type { NriValidatorRules } from '../model/nri-settings.ts';
import type { NriPluginInstance, NriPodSandbox } from '../model/nri-views.ts';
import { shown } from '../oci/refuse.ts';
import { bareKey } from './marks.ts';
import { describeMissing, missingOf, requiredPlugins } from './required.ts';

/** What is to be judged. */
export interface ProposedContainer {
  readonly pod: Pick<NriPodSandbox, 'namespace' | 'name' | 'annotations'>;
  readonly name: string;
  /** That was asked for, before any plugin changed it. */
  readonly seccompProfile: SecurityProfile | undefined;
  readonly owners: FieldOwners;
  /** Those that are there, and did not fail. */
  readonly plugins: readonly NriPluginInstance[];
  /** To the creation. */
  readonly answers: readonly PluginAnswer[];
}

/** null: nothing speaks against it. */
export const defaultValidation = (rules: NriValidatorRules, proposed: ProposedContainer): Failure | null =>
  refusedHooks(rules, proposed) ??
  refusedSeccomp(rules, proposed) ??
  refusedKeys(rules.rejectNamespaceAdjustment, 'Namespace', 'namespaces', proposed) ??
  missingPlugins(rules, proposed) ??
  refusedKeys(rules.rejectSysctlAdjustment, 'Sysctl', 'kernel parameters', proposed);

const rejected = ({ name, pod }: ProposedContainer, why: string, reason: FailureReason = 'PluginRefused'): Failure => ({
  reason,
  message: `NRI's default validator rejects container ${shown(name)} of pod ${pod.namespace ?? ''}/${pod.name ?? ''}: ${why}.`,
});

const changed = (proposed: ProposedContainer, who: string, what: string): Failure =>
  rejected(proposed, `NRI ${who} changed ${what}, which the validator's configuration does not allow`);

const named = (plugins: readonly string[]): string => {
  const names = [...new Set(plugins)].map((plugin) => `"${bareKey(plugin)}"`);
  return `${names.length === 1 ? 'plugin' : 'plugins'} ${names.join(', ')}`;
};

function refusedHooks({ rejectOciHookAdjustment }: NriValidatorRules, proposed: ProposedContainer): Failure | null {
  const owners = proposed.owners.simple['OciHooks' satisfies NriField];
  if (rejectOciHookAdjustment !== true || owners === undefined) return null;
  return changed(proposed, named(owners.split(',')), 'OCI hooks');
}

/** A container that asked for no profile is as unconfined as one that said so. */
function seccompRule(
  rules: NriValidatorRules,
  { profileType = ProfileType.RuntimeDefault }: SecurityProfile = { profileType: ProfileType.Unconfined },
): readonly [rejects: boolean | undefined, what: string] {
  switch (profileType) {
    case ProfileType.RuntimeDefault:
      return [rules.rejectRuntimeDefaultSeccompAdjustment, "the runtime's default seccomp policy"];
    case ProfileType.Unconfined:
      return [rules.rejectUnconfinedSeccompAdjustment, 'an unconfined seccomp policy'];
    default:
      return [rules.rejectCustomSeccompAdjustment, 'a custom seccomp policy'];
  }
}

function refusedSeccomp(rules: NriValidatorRules, proposed: ProposedContainer): Failure | null {
  const owner = proposed.owners.simple['SeccompPolicy' satisfies NriField];
  if (owner === undefined) return null;
  const [rejects, what] = seccompRule(rules, proposed.seccompProfile);
  return rejects === true ? changed(proposed, named([owner]), what) : null;
}

/** Whoever takes something away has changed it too. */
function refusedKeys(
  rejects: boolean | undefined,
  field: NriField,
  what: string,
  proposed: ProposedContainer,
): Failure | null {
  const owners = Object.entries(proposed.owners.compound[field] ?? {});
  if (rejects !== true || owners.length === 0) return null;
  const who = named(owners.map(([, plugin]) => plugin));
  return changed(proposed, who, `${what} (${owners.map(([key]) => shown(key)).join(', ')})`);
}

function missingPlugins(rules: NriValidatorRules, proposed: ProposedContainer): Failure | null {
  const { pod, name, plugins, answers } = proposed;
  const required = requiredPlugins(rules, pod, name);
  if (!required.ok) return rejected(proposed, required.failure.message, required.failure.reason);
  const missing = missingOf(required.value, plugins);
  return missing.length === 0 ? null : rejected(proposed, describeMissing(missing, answers, rules), 'PluginMissing');
}
