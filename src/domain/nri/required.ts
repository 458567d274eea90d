/**
 * Which NRI plugins have to be there for a container to be made: those that the configuration names, and those that its
 * pod does by annotation, unless the pod tolerates that they are missing. What cannot be read is a refusal. Pure.
 */
import type { Failure } from '../model/errors.ts';
import type { NriValidatorRules } from '../model/nri-settings.ts';
import type { PluginAnswer } from '../model/nri-plugins.ts';
import type { NriPluginInstance, NriPodSandbox } from '../model/nri-views.ts';
import { refused, type Result, succeeded } from '../model/result.ts';
import { shown } from '../oci/refuse.ts';
import { bare } from '../values/sentence.ts';
import { bareName, pluginName } from './plugins.ts';

export interface RequiredPlugin {
  /** "name" or "NN-name". */
  readonly name: string;
  /** The key or annotation that says so. */
  readonly by: string;
}

type Annotated = Pick<NriPodSandbox, 'annotations'>;

/** By which a pod names further plugins that its containers need. */
const REQUIRED = 'required-plugins.noderesource.dev';
const IN_CONFIGURATION = 'nri.default_validator.required_plugins';

/** `container`: its name; null: of the pod itself. Fails with PluginRefused when an annotation cannot be read. */
export function requiredPlugins(
  { requiredPlugins: configured = [], tolerateMissingPluginsAnnotation: toleration }: NriValidatorRules,
  pod: Annotated,
  container: string | null,
): Result<readonly RequiredPlugin[]> {
  const tolerated = toleration ? annotationFor(pod, toleration, container) : null;
  const tolerates = tolerated === null ? false : parseFlag(tolerated.value);
  if (tolerated !== null && tolerates === null) return unreadable(tolerated, 'true or false');
  if (tolerates === true) return succeeded([]);
  const asked = annotationFor(pod, REQUIRED, container);
  const names = asked === null ? [] : parseNames(asked.value);
  if (asked !== null && names === null) return unreadable(asked, 'a YAML list of names of plugins');
  return succeeded([
    ...configured.map((name) => ({ name, by: IN_CONFIGURATION })),
    ...(names ?? []).map((name) => ({ name, by: `the pod's annotation ${asked?.key}` })),
  ]);
}

const isCalled = (plugin: string, name: string): boolean => plugin === name || bareName(plugin) === name;

export const missingOf = (
  required: readonly RequiredPlugin[],
  plugins: readonly NriPluginInstance[],
): readonly RequiredPlugin[] =>
  required.filter(({ name }) => !plugins.some((plugin) => isCalled(pluginName(plugin), name)));

/** Names each that is missing, why it is, and what is to be done. `answers`: to what they were asked just now. */
export function describeMissing(
  missing: readonly RequiredPlugin[],
  answers: readonly PluginAnswer[],
  { tolerateMissingPluginsAnnotation: toleration }: NriValidatorRules,
): string {
  const whyOf = (name: string): string =>
    answers.find(({ plugin, failure }) => failure !== undefined && isCalled(plugin, name))?.failure?.message ??
    'it is not connected';
  const each = [...new Set(missing.map(({ name }) => name))].map((name) => `"${name}" (${bare(whyOf(name))})`);
  const places = [...new Set(missing.map(({ by }) => by))].join(' and ');
  const [plugins, them] = each.length === 1 ? ['plugin', 'it'] : ['plugins', 'them'];
  const tolerate = toleration ? `, or have the pod tolerate that by the annotation ${toleration}: "true"` : '';
  return `it needs NRI ${plugins} ${each.join(', ')}: start ${them}, or take ${them} from ${places}${tolerate}`;
}

interface Annotation {
  readonly key: string;
  readonly value: string;
}

/** A container's own word goes before that for its pod. */
function annotationFor({ annotations = {} }: Annotated, key: string, container: string | null): Annotation | null {
  const keys = [...(container === null ? [] : [`${key}/container.${container}`]), `${key}/pod`, key];
  const found = keys.find((one) => Object.hasOwn(annotations, one));
  return found === undefined ? null : { key: found, value: annotations[found] ?? '' };
}

const unreadable = ({ key, value }: Annotation, what: string) =>
  refused({
    reason: 'PluginRefused',
    message: `its pod's annotation ${key} is ${shown(value)}: it must be ${what}`,
  } satisfies Failure);

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
