/** The chain of causes as sentences, a record each: who asked, what plugins changed, what failed, how it ended. Pure. */
import { fieldsOwnedBy } from './plugins.ts';
import { rpcOf, type Sequenced } from '../../domain/model/records.ts';
import { bare } from '../../domain/values/sentence.ts';
import { duration } from '../format.ts';
import { detailOf, wordsOf } from '../history/words.ts';
import type { Link } from './answer.ts';
import { failureWords, signalName, statusWords } from './exit-words.ts';
import { askedFor, askerOf, capital } from './people.ts';
import type { EventOf, Records } from './records.ts';
import { stepLinks, stepsOf } from './steps.ts';
import type { Style } from '../table.ts';

interface Sentence {
  readonly text: string;
  readonly style: Style;
  readonly tookNs?: bigint;
}

const plain = (text: string): Sentence => ({ text, style: 'plain' });
const bad = (text: string): Sentence => ({ text, style: 'bad' });

/** "kubelet (pid 812, uid 0) called StopContainer (record 12, grace 30 s)", and what came of it. */
const askedText = (records: Records, event: Sequenced, then: string): string => {
  const asked = askedFor(records, event);
  if (asked === null) return `${capital(then)}, without a call.`;
  const detail = detailOf(asked.call.body.request);
  return `${asked.by} called ${asked.rpc} (record ${asked.call.seq}${detail === '' ? '' : `, ${detail}`}): ${then}.`;
};

/** "NRI plugin 10-limits called UpdateContainerResources (record 12): its limits changed: cpuShares 200." */
const changedText = (records: Records, event: EventOf<'container.updated' | 'sandbox.updated'>): string => {
  const asked = askedFor(records, event);
  const changed = `its limits changed: ${wordsOf(event)?.outcome ?? ''}.`;
  return asked === null ? capital(changed) : `${asked.by} called ${asked.rpc} (record ${asked.call.seq}): ${changed}`;
};

const calledText = (event: EventOf<'call.received'>): string => {
  const { request } = event.body;
  const isOfImage = request.method === 'PullImage' || request.method === 'RemoveImage';
  const detail = isOfImage ? request.image : detailOf(request);
  return `${askerOf(event)} called ${rpcOf(request)}${detail === '' ? '' : `: ${detail}`}.`;
};

/** null for a record that is no part of a chain by itself. */
const sentenceOf = (records: Records, event: Sequenced): Sentence | null => {
  switch (event.type) {
    case 'effects.requested':
    case 'effect.ended':
    case 'task.exited':
    case 'call.joined':
      return null;
    case 'call.received':
      return plain(calledText(event));
    case 'call.completed': {
      const { failure, durationNs, response } = event.body;
      const tookNs = BigInt(durationNs);
      if (failure !== undefined) return { ...bad(`The call failed: ${failureWords(failure)}`), tookNs };
      const exit = response?.exitCode;
      return { ...plain(`The call was answered${exit === undefined ? '' : `: ${statusWords(exit)}`}.`), tookNs };
    }
    case 'sandbox.requested':
    case 'container.requested':
      return plain(askedText(records, event, 'it was to be made'));
    case 'container.adjusted':
      return plain(`NRI plugins changed it: ${fieldsOwnedBy(event.body.owners)}.`);
    case 'sandbox.updated':
    case 'container.updated':
      return plain(changedText(records, event));
    case 'sandbox.failed':
    case 'container.failed':
      return bad(`Its making was given up: ${failureWords(event.body.failure)}`);
    case 'container.starting':
      return plain(askedText(records, event, 'it was to be started'));
    case 'container.started':
      return plain(`It ran, as process ${event.body.pid}.`);
    case 'container.stopping':
      return plain(askedText(records, event, `it was to be stopped by ${signalName(event.body.signal)}`));
    case 'sandbox.stopping':
      return plain(askedText(records, event, 'it was to be stopped'));
    case 'sandbox.removing':
    case 'container.removing':
      return plain(askedText(records, event, 'it was to be removed'));
    case 'task.oomed':
      return bad('The kernel killed a process of it for lack of memory.');
    case 'container.exited': {
      const { exitStatus, reason, message } = event.body;
      const said = message === '' ? '' : `: ${bare(message)}`;
      return {
        text: `It exited with ${statusWords(exitStatus)} (${reason})${said}.`,
        style: exitStatus === 0 ? 'plain' : 'bad',
      };
    }
    default:
      return otherWords(event);
  }
};

/** Words that a history has for it. */
const otherWords = (event: Sequenced): Sentence | null => {
  // Types that only later versions know have no words.
  const words = wordsOf(event) as ReturnType<typeof wordsOf> | undefined;
  if (words == null) return null;
  return { text: `${capital(words.what)}${words.outcome === '' ? '' : `: ${words.outcome}`}.`, style: words.style };
};

const LINKS_MAX = 40;

const linkOf = ({ seq, atNs }: Sequenced, { text, style, tookNs }: Sentence): Link => ({
  seq,
  atNs,
  text,
  style,
  tookNs: tookNs ?? null,
});

/** Sentences and steps in order; the middle of a long chain is left out, and a link says so. */
export const chainOf = (records: Records, events: readonly Sequenced[], nowNs: bigint): Link[] => {
  const sentences = events.flatMap((event) => {
    const sentence = sentenceOf(records, event);
    return sentence === null ? [] : [linkOf(event, sentence)];
  });
  const links = [...sentences, ...stepLinks(stepsOf(events), nowNs)].toSorted((a, b) => a.seq - b.seq);
  if (links.length <= LINKS_MAX) return links;
  const [first, last] = [links.slice(0, LINKS_MAX / 2), links.slice(-LINKS_MAX / 2)];
  const from = links[LINKS_MAX / 2];
  const text = `(${links.length - LINKS_MAX} more; scribe history --events shows all)`;
  return from === undefined ? links : [...first, { ...from, text, style: 'faint', tookNs: null }, ...last];
};

/** Every one of these records, as a sentence: what led to one. */
export const causeChain = (records: Records, events: readonly Sequenced[]): Link[] =>
  events.map((event) => linkOf(event, sentenceOfAny(records, event)));

/** Of any record, in words. */
export const sentenceOfAny = (records: Records, event: Sequenced): Sentence =>
  sentenceOf(records, event) ?? otherWords(event) ?? plain(`${event.type}.`);

/** When a record was written, against the one before it in the chain. */
export const sinceBefore = (links: readonly Link[], index: number): string => {
  const before = links[index - 1];
  const here = links[index];
  if (before === undefined || here === undefined) return '';
  const ns = here.atNs - before.atNs;
  return ns < 1_000_000n ? '' : `+${duration(ns)}`;
};
