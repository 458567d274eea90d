/**
 * What a journal knows that is called nearly as somebody asked: people name a Deployment in place of its pod, or an image
 * without its registry or tag. Only for the sentence that says that nothing is called so; chooses nothing itself.
 */
import type { BodyTests, MarkRule } from '../journal/marks.ts';
import type { JournalReader } from '../journal/reader.ts';
import type { JournalRecord } from '../journal/types.ts';
import { unlessDamaged } from './damage.ts';
import { printable, someOf } from './format.ts';
import { knownAs } from './history/entries.ts';
import { commonPart, MAKINGS_OF } from './history/makings.ts';
import { podNameOf, recordOf } from './history/names.ts';
import { nobodyIs, type Thing, type ThingFilter, type ThingName } from './things.ts';

/** What it is looked for in. */
export type NamesSource = Pick<JournalReader, 'makings' | 'marked' | 'page'>;
type Kind = Thing['kind'];

const SHOWN_MAX = 3;
/** Of a letter or two nearly everything holds it. */
const CHARS_MIN = 3;

const MANY = { pod: 'Pods', container: 'Containers', image: 'Images' } as const satisfies Record<Kind, string>;

/** In the body at all, which is looked for in a fifth of the time, and then in the name. */
const testsFor = (kind: Kind, text: string): BodyTests => [
  [{ kind: 'holds', text }],
  ...(kind === 'image' ? [] : [[{ kind: 'holds', path: '$.config.metadata.name', text } as const]]),
];

/** How people name what the record tells of. */
const namesIn = (record: JournalRecord): readonly string[] => {
  const pod = knownAs('sandbox.requested', record)?.event.body.config.metadata;
  if (pod !== undefined) {
    const { namespace, name } = podNameOf(pod);
    return [`${namespace}/${name}`];
  }
  const container = knownAs('container.requested', record)?.event.body.config.metadata;
  if (container !== undefined) return [container.name ?? ''];
  return knownAs('image.pulled', record)?.event.body.image.repoTags ?? [];
};

/** The part of a name that is all of it to whoever leaves out the rest. */
const lastPart = (kind: Kind, text: string): string =>
  kind === 'image' ? commonPart(text) : text.slice(text.lastIndexOf('/') + 1);

const holds = (name: string, part: string): boolean => name.toLowerCase().includes(part.toLowerCase());

/** The newest first. */
const nearNames = (reader: NamesSource, kind: Kind, text: string, toSeq: number): readonly string[] => {
  const part = lastPart(kind, text);
  if (part.length < CHARS_MIN) return [];
  const made = reader.makings({ ...MAKINGS_OF[kind], allOf: testsFor(kind, part) }, toSeq);
  const names = [...new Set(made.toReversed().flatMap(namesIn))].filter((name) => holds(name, part));
  // What is called just so lacks something else that was asked for.
  return names.some((name) => name === text || name.endsWith(`/${text}`)) ? [] : names;
};

/** Records in which pulls are looked for: nothing leads to a call but to look at each. */
const PULLS_LOOKED_AT = 100_000;
/** Of kubelet, which tries again and again, most are of one image. */
const PULLS_READ_MAX = 200;

/** What pulls asked for, the newest first: those that failed made no image that could be named. */
const nearPulls = (reader: NamesSource, text: string, toSeq: number): readonly string[] => {
  const part = commonPart(text);
  if (part.length < CHARS_MIN) return [];
  const pulls = {
    types: ['call.received'],
    allOf: [[{ kind: 'holds', text: part }], [{ kind: 'holds', text: '"method":"PullImage"', isExact: true }]],
  } as const satisfies MarkRule;
  const marks = reader.marked([pulls], Math.max(1, toSeq - PULLS_LOOKED_AT), toSeq);
  // What is pruned is marked, too.
  const kept = marks.filter(({ type }) => type !== null).slice(-PULLS_READ_MAX);
  const names = kept.toReversed().flatMap(({ seq }) => {
    const record = recordOf(reader, seq);
    const request = record === undefined ? undefined : knownAs('call.received', record)?.event.body.request;
    return request?.method === 'PullImage' ? [request.image] : [];
  });
  return [...new Set(names)].filter((name) => holds(name, part));
};

/** What is meant where no kind is named: containers of many pods are called the same, and to look at all of them takes longest. */
const KINDS_MEANT: readonly Kind[] = ['pod', 'image'];

/** A sentence with a space before it, or nothing. Up to a record. */
export const nearNamed = (reader: NamesSource, { kind, text }: ThingName, toSeq: number): string => {
  const kinds = kind === null ? KINDS_MEANT : [kind];
  for (const one of kinds) {
    const names = nearNames(reader, one, text, toSeq);
    if (names.length > 0) return ` ${MANY[one]} with that in their names: ${someOf(names.map(printable), SHOWN_MAX)}.`;
  }
  const pulls = kinds.includes('image') ? nearPulls(reader, text, toSeq) : [];
  return pulls.length === 0 ? '' : ` Pulls asked for: ${someOf(pulls.map(printable), SHOWN_MAX)}.`;
};

/** Of several choices the widest, which the others lie in. */
const askedName = ({ pod, container, image }: ThingFilter): ThingName | null => {
  if (image !== null) return { kind: 'image', text: image };
  if (pod !== null) return { kind: 'pod', text: pod };
  return container === null ? null : { kind: 'container', text: container };
};

/**
 * A sentence with a space before it for whoever chose things and found nothing: it may be that none is called so. Nothing where
 * some is, or where nobody knows.
 */
export const nearlyChosen = (reader: NamesSource, filter: ThingFilter, toSeq: number): string => {
  const name = askedName(filter);
  return name === null ? '' : (unlessDamaged(() => nearNamed(reader, name, toSeq)) ?? '');
};

/** What is said where nothing bears what was chosen. */
export const nobodyNearly = (reader: NamesSource, filter: ThingFilter, toSeq: number): string =>
  `${nobodyIs(filter)}${nearlyChosen(reader, filter, toSeq)}`;
