/**
 * The validator that scribe brings along, with the keys that containerd's has: what plugins may not change, and which of
 * them have to be there for a container to be made. Fails closed: an annotation that cannot be read is a refusal. Pure.
 */
import { ProfileType, type SecurityProfile } from '../model/cri.ts';
import type { Failure } from '../model/errors.ts';
import type { FieldOwners, NriField } from '../model/nri.ts';
import type { NriContainer, NriPluginInstance, NriPodSandbox } from '../model/nri-views.ts';
import { shown } from '../oci/refuse.ts';
import { bareKey } from './marks.ts';

/** Absent or false: it may be changed. */
export interface DefaultValidator {
  readonly rejectOciHookAdjustment?: boolean;
  readonly rejectRuntimeDefaultSeccompAdjustment?: boolean;
  readonly rejectUnconfinedSeccompAdjustment?: boolean;
  readonly rejectCustomSeccompAdjustment?: boolean;
  readonly rejectNamespaceAdjustment?: boolean;
  readonly rejectSysctlAdjustment?: boolean;
  /** "name" or "NN-name"; absent: none. */
  readonly requiredPlugins?: readonly string[];
  /** The annotation by which a pod does without the required ones; absent or empty: none can. */
  readonly tolerateMissingPluginsAnnotation?: string;
}

/** What is to be judged. */
export interface ProposedContainer {
  readonly pod: NriPodSandbox;
  /** As it was before any plugin changed it. */
  readonly container: NriContainer;
  readonly owners: FieldOwners;
  /** Those that are there, and answered. */
  readonly plugins: readonly NriPluginInstance[];
}

/** null: nothing speaks against it. */
export const defaultValidation = (settings: DefaultValidator, proposed: ProposedContainer): Failure | null =>
  refusedHooks(settings, proposed) ??
  refusedSeccomp(settings, proposed) ??
  refusedKeys(settings.rejectNamespaceAdjustment, 'Namespace', 'namespaces', proposed) ??
  missingPlugins(settings, proposed) ??
  refusedKeys(settings.rejectSysctlAdjustment, 'Sysctl', 'kernel parameters', proposed);

const rejected = ({ container, pod }: ProposedContainer, why: string): Failure => ({
  reason: 'PluginRefused',
  message: `NRI's default validator rejects container ${shown(container.name)} of pod ${pod.namespace ?? ''}/${pod.name ?? ''}: ${why}.`,
});

const changed = (proposed: ProposedContainer, who: string, what: string): Failure =>
  rejected(proposed, `NRI ${who} changed ${what}, which the validator's configuration does not allow`);

const named = (plugins: readonly string[]): string => {
  const names = [...new Set(plugins)].map((plugin) => `"${bareKey(plugin)}"`);
  return `${names.length === 1 ? 'plugin' : 'plugins'} ${names.join(', ')}`;
};

function refusedHooks({ rejectOciHookAdjustment }: DefaultValidator, proposed: ProposedContainer): Failure | null {
  const owners = proposed.owners.simple['OciHooks' satisfies NriField];
  if (rejectOciHookAdjustment !== true || owners === undefined) return null;
  return changed(proposed, named(owners.split(',')), 'OCI hooks');
}

/** A container that asked for no profile is as unconfined as one that said so. */
function seccompRule(
  settings: DefaultValidator,
  { profileType = ProfileType.RuntimeDefault }: SecurityProfile = { profileType: ProfileType.Unconfined },
): readonly [rejects: boolean | undefined, what: string] {
  switch (profileType) {
    case ProfileType.RuntimeDefault:
      return [settings.rejectRuntimeDefaultSeccompAdjustment, "the runtime's default seccomp policy"];
    case ProfileType.Unconfined:
      return [settings.rejectUnconfinedSeccompAdjustment, 'an unconfined seccomp policy'];
    default:
      return [settings.rejectCustomSeccompAdjustment, 'a custom seccomp policy'];
  }
}

function refusedSeccomp(settings: DefaultValidator, proposed: ProposedContainer): Failure | null {
  const owner = proposed.owners.simple['SeccompPolicy' satisfies NriField];
  if (owner === undefined) return null;
  const [rejects, what] = seccompRule(settings, proposed.container.linux?.seccompProfile);
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

/** By which a pod names further plugins that its containers need. */
const REQUIRED = 'required-plugins.noderesource.dev';

/** A container's own word goes before that for its pod. */
function annotationFor(
  { pod, container }: ProposedContainer,
  key: string,
): readonly [key: string, value: string] | null {
  const annotations = pod.annotations ?? {};
  for (const one of [`${key}/container.${container.name}`, `${key}/pod`, key]) {
    const value = Object.hasOwn(annotations, one) ? annotations[one] : undefined;
    if (value !== undefined) return [one, value];
  }
  return null;
}

function missingPlugins(settings: DefaultValidator, proposed: ProposedContainer): Failure | null {
  const { requiredPlugins = [], tolerateMissingPluginsAnnotation: toleration } = settings;
  const tolerated = toleration ? annotationFor(proposed, toleration) : null;
  if (tolerated !== null) {
    const tolerates = parseFlag(tolerated[1]);
    if (tolerates === null) return unreadable(proposed, tolerated, 'true or false');
    if (tolerates) return null;
  }
  const asked = annotationFor(proposed, REQUIRED);
  const more = asked === null ? [] : parseNames(asked[1]);
  if (asked !== null && more === null) return unreadable(proposed, asked, 'a YAML list of names of plugins');
  const present = new Set(proposed.plugins.flatMap(({ name, index }) => [name, `${index}-${name}`]));
  const missing = [...requiredPlugins, ...(more ?? [])].filter((name) => !present.has(name));
  if (missing.length === 0) return null;
  return rejected(
    proposed,
    `it needs NRI ${named(missing)}, and does not have ${missing.length === 1 ? 'it' : 'them'}`,
  );
}

const unreadable = (
  proposed: ProposedContainer,
  [key, value]: readonly [key: string, value: string],
  what: string,
): Failure => rejected(proposed, `its pod's annotation ${key} is ${shown(value)}: it must be ${what}`);

const TRUE = ['1', 't', 'T', 'true', 'TRUE', 'True'];
const FALSE = ['0', 'f', 'F', 'false', 'FALSE', 'False'];

/** As Go reads flags; null for what is none. */
const parseFlag = (text: string): boolean | null => (TRUE.includes(text) ? true : FALSE.includes(text) ? false : null);

const NAME = /^(?:"([\w.+-]+)"|'([\w.+-]+)'|([\w.+-]+))$/;
const LIST_MAX_LENGTH = 10_000;

/**
 * A list of names as YAML writes one: in brackets, or a line with a dash each. More of YAML names of plugins do not need;
 * null for what is no such list.
 */
function parseNames(text: string): readonly string[] | null {
  const body = text.trim();
  if (body === '' || body.length > LIST_MAX_LENGTH) return body === '' ? [] : null;
  const items = body.startsWith('[') ? inBrackets(body) : inLines(body);
  const names = items?.map((item) => NAME.exec(item.trim())) ?? [null];
  return names.every((match) => match !== null) ? names.map(([, a, b, c]) => a ?? b ?? c ?? '') : null;
}

function inBrackets(body: string): readonly string[] | null {
  if (!body.endsWith(']')) return null;
  const inner = body.slice(1, -1).trim();
  return inner === '' ? [] : inner.replace(/,$/, '').split(',');
}

function inLines(body: string): readonly string[] | null {
  const lines = body.split('\n').map((line) => line.trim());
  const items = lines.filter((line) => line !== '' && line !== '---' && !line.startsWith('#'));
  return items.every((line) => line.startsWith('- ')) ? items.map((line) => line.slice(2).replace(/\s#.*$/, '')) : null;
}
