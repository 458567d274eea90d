/** The panel of an open record: what it says, what led to it, and what was there then. Each part comes when it is ready. */
import type { AtAnswer, ChainLink, RecordAnswer, StateTable, WhyAnswer } from './answers.ts';
import { ask, sentenceOf } from './ask.ts';
import { element, made, recordButton } from './dom.ts';
import type { Lane } from './frames.ts';
import { escaped } from './words.ts';

export interface Panel {
  /** @param lane  the pod or container that the record is about; null: none */
  readonly open: (seq: number, podSandboxId: string | null) => void;
  readonly close: () => void;
  readonly hasFocus: () => boolean;
}

export const podOf = (lanes: readonly Lane[], lane: number): string | null => {
  const found = lanes[lane];
  if (found === undefined) return null;
  const pod = found.kind === 'container' && found.parent !== null ? lanes[found.parent] : found;
  return pod?.kind === 'pod' ? pod.id : null;
};

const pairs = (facts: readonly (readonly [string, string | Node])[]): HTMLElement =>
  made(
    'dl',
    {},
    ...facts.flatMap(([name, value]) => {
      const detail = typeof value === 'string' ? made('dd', { text: value }) : made('dd', {}, value);
      return [made('dt', { text: name }), detail];
    }),
  );

const tableOf = ({ title, columns, rows }: StateTable): Node[] => {
  if (rows.length === 0) return [made('p', { class: 'faint', text: `no ${title}` })];
  const head = made('tr', {}, ...columns.map((text) => columnHead(text)));
  const lines = rows.map(({ cells, style }) =>
    made('tr', { class: style }, ...cells.map((text) => made('td', { text }))),
  );
  const table = made('table', {}, made('thead', {}, head), made('tbody', {}, ...lines));
  table.setAttribute('aria-label', title);
  return [scrolling(table, title)];
};

const columnHead = (text: string): HTMLElement => {
  const head = made('th', { text });
  head.scope = 'col';
  return head;
};

const scrolling = (content: Node, name: string): HTMLElement =>
  focusable(made('div', { class: 'scrolls' }, content), name);

/** Where there is not room enough the arrow keys move it, so it takes the focus, and has a name then. */
const focusable = (box: HTMLElement, name: string): HTMLElement => {
  box.tabIndex = 0;
  box.setAttribute('role', 'group');
  box.setAttribute('aria-label', name);
  return box;
};

/** Without numbers in front some browsers tell of no list, unless they are told. */
const listOf = (name: string, items: readonly Node[]): HTMLElement => {
  const list = made('ol', {}, ...items);
  list.setAttribute('role', 'list');
  list.setAttribute('aria-label', name);
  return list;
};

export const createPanel = (openRecord: (seq: number) => void): Panel => {
  const panel = element('panel', HTMLElement);
  const title = element('panel-title', HTMLElement);
  const body = element('panel-body', HTMLElement);
  let asking = new AbortController();

  const ofRecord = (answer: RecordAnswer): Node[] => {
    const { row, seq, time, type, v, object, stream, cause, call, hash, bodyHash } = answer;
    const words: [string, string | Node][] =
      row === null || row.seq !== seq
        ? []
        : [
            ['what', row.what],
            ['caller', row.caller],
            ['took', row.took],
            ['outcome', row.outcome],
          ];
    const columns: [string, string | Node][] = [
      ['time', time],
      ['type', `${type} (version ${v})`],
      ['object', object === '' ? (row?.object ?? '') : object],
      ['stream', stream],
      ...(cause === null ? [] : [['cause', recordButton(cause, openRecord)] as [string, Node]]),
      ...(call === null ? [] : [['call', recordButton(call, openRecord)] as [string, Node]]),
      ['body hash', bodyHash],
      ['hash', hash],
    ];
    return [
      pairs([...words, ...columns].filter(([, text]) => text !== '')),
      made(
        'details',
        {},
        made('summary', { text: 'Body' }),
        focusable(made('pre', { text: escaped(JSON.stringify(answer.body, null, 2)) }), 'Body'),
      ),
    ];
  };

  const linkOf = ({ seq, time, text, took, style }: ChainLink): HTMLElement =>
    made(
      'li',
      { class: style },
      recordButton(seq, openRecord),
      made('span', { class: 'faint', text: ` ${time}${took === '' ? '' : `, took ${took}`} ` }),
      made('span', { text }),
    );

  const ofWhy = ({ headline, facts, chain }: WhyAnswer): Node[] => [
    made('p', { text: headline }),
    pairs(facts.map(({ name, text }) => [name, text])),
    listOf('What led to it', chain.map(linkOf)),
  ];

  const ofState = ({ time, seq, notes, tables }: AtAnswer): Node[] => [
    made('p', { class: 'faint', text: `As of ${time}, after record ${seq}.` }),
    ...notes.map((text) => made('p', { class: 'faint', text })),
    ...tables.flatMap(tableOf),
  ];

  const part = (heading: string): HTMLElement => {
    const section = made('section', {}, made('h3', { text: heading }), made('p', { class: 'faint', text: '…' }));
    section.setAttribute('aria-busy', 'true');
    section.setAttribute('aria-label', heading);
    return section;
  };

  const fill = async <Answer>(
    section: HTMLElement,
    path: string,
    query: Readonly<Record<string, string>>,
    nodes: (answer: Answer) => readonly Node[],
  ): Promise<void> => {
    const { signal } = asking;
    const content = await ask<Answer>(path, query, signal).then(nodes, (error: unknown) => [
      made('p', { class: 'bad', text: sentenceOf(error) }),
    ]);
    if (signal.aborted) return;
    section.replaceChildren(...[section.firstElementChild].flatMap((heading) => heading ?? []), ...content);
    section.setAttribute('aria-busy', 'false');
  };

  return {
    open(seq, podSandboxId) {
      asking.abort();
      asking = new AbortController();
      const [record, why, state] = [part('Record'), part('Why'), part('The node then')];
      title.textContent = `Record ${seq}`;
      body.replaceChildren(record, why, state);
      panel.hidden = false;
      title.focus();
      const query = { seq: String(seq) };
      void fill(record, 'record', query, ofRecord);
      void fill(why, 'why', query, ofWhy);
      void fill(state, 'at', podSandboxId === null ? query : { ...query, pod: podSandboxId }, ofState);
    },
    close() {
      asking.abort();
      panel.hidden = true;
      body.replaceChildren();
    },
    hasFocus: () => panel.contains(document.activeElement),
  };
};
