/** Who asked for something, in words, and how things are called in sentences. Pure, but for the names it looks up. */
import type { Caller, Sequenced } from '../../domain/model/records.ts';
import { rpcOf, subjectOf } from '../../domain/model/records.ts';
import { shortId } from '../format.ts';
import { type Names, podLabel } from '../history/names.ts';
import { callerText } from '../history/rows.ts';
import { isOf, type EventOf, type Records } from './records.ts';

/** "kubelet (pid 812, uid 0)". */
const callerWords = (caller: Caller | null): string => {
  if (caller === null) return 'scribe itself';
  const [program = '?'] = callerText(caller).split(' pid ');
  return `${program} (pid ${caller.pid}, uid ${caller.uid})`;
};

/** Who a call is from, in a word or two: an NRI plugin asks through scribe. */
export const askerOf = ({ body: { request, caller } }: EventOf<'call.received'>): string => {
  if (request.method === 'StopContainer' && request.evicted !== undefined)
    return `NRI plugin ${request.evicted.plugin}`;
  if (request.method === 'UpdateContainerResources' && request.plugin !== undefined)
    return `NRI plugin ${request.plugin}`;
  return callerWords(caller);
};

export interface Asked {
  readonly by: string;
  readonly rpc: string;
  readonly call: EventOf<'call.received'>;
}

export const askedFor = (records: Records, event: Sequenced): Asked | null => {
  const call = records.callOf(event);
  return call === null ? null : { by: askerOf(call), rpc: rpcOf(call.body.request), call };
};

/** What led to a record that nobody called for: the input it was decided from. */
export const causeOf = (records: Records, event: Sequenced): Sequenced | null =>
  event.cause === null ? null : records.at(event.cause);

export const isReboot = (event: Sequenced | null): boolean => isOf(event, 'daemon.started') && event.body.rebooted;

/** A name for sentences: "container nginx of pod default/web (8d1b7e3f2a9c4)". */
export const thingWords = (names: Names, stream: string): string => {
  const { kind, id } = subjectOf(stream);
  const short = shortId(id);
  switch (kind) {
    case 'sandbox': {
      const pod = names.pod(id);
      return pod === null ? `pod ${short}` : `pod ${podLabel(pod)} (${short})`;
    }
    case 'container': {
      const container = names.container(id);
      if (container === null) return `container ${short}`;
      const pod = names.pod(container.podSandboxId);
      const where = pod === null ? '' : ` of pod ${podLabel(pod)}`;
      const again = container.attempt === 0 ? '' : `#${container.attempt}`;
      return `container ${container.name}${again}${where} (${short})`;
    }
    case 'image':
      return `image ${names.image(id) ?? short}`;
    case 'call':
    case 'node':
      return 'the node';
  }
};

export const capital = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
