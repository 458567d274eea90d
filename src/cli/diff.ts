/** `scribe diff`: what changed on the node between two moments, from the journal. Changes nothing. */
import { subjectOf } from '../domain/model/records.ts';
import { openReader } from '../journal/open.ts';
import { command, misuse } from './command.ts';
import { jsonLine } from './format.ts';
import { createNames, labelOf, type Names } from './history/names.ts';
import { type Io, write } from './io.ts';
import { timesIn } from './local-zone.ts';
import { nearlyChosen } from './near-names.ts';
import { type Change, chosenChanges } from './past/changes.ts';
import { type PastState, stateAt } from './past/state.ts';
import { configOption, jsonOption, readableJournal, readsInRoot, rootOf, rootOption } from './places.ts';
import { createTable, type Style } from './table.ts';
import { choosesAll, refuseAmbiguous, thingFilterOf, thingOptions } from './things.ts';
import { isBackwards, MOMENT_FORMS, parseMoment, type Range } from './time-argument.ts';

const { pod, container, image, namespace, label } = thingOptions;

const STYLES = { came: 'plain', went: 'doubtful', changed: 'plain' } as const satisfies Record<Change['what'], Style>;

const valueText = (value: unknown): string =>
  value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);

const rowsOf = (names: Names, { what, stream, state, fields }: Change): string[][] => {
  const label = labelOf(names, stream);
  switch (what) {
    case 'came':
      return [[what, label, '', '', state]];
    case 'went':
      return [[what, label, '', state, '']];
    case 'changed':
      return fields.map(({ field, before, after }, index) => [
        index === 0 ? what : '',
        index === 0 ? label : '',
        field,
        valueText(before),
        valueText(after),
      ]);
  }
};

const showTable = async (names: Names, changes: readonly Change[], io: Io): Promise<void> => {
  const table = createTable(
    io.stdout,
    ['CHANGE', 'OBJECT', 'FIELD', 'BEFORE', 'AFTER'].map((title) => ({ title, widthMax: 60 })),
  );
  for (const change of changes) {
    for (const row of rowsOf(names, change)) await table.add(row, STYLES[change.what]);
  }
  await table.flush();
};

const jsonOf = (names: Names, { what, stream, state, fields }: Change): string =>
  jsonLine({ change: what, ...subjectOf(stream), name: labelOf(names, stream), state, fields });

type Words = readonly [first: string, second: string];

/** What came would be shown as what went: a range that ends before it begins is refused in every command. */
const refuseBackwards = (range: Range, [from, to]: readonly [PastState, PastState], [first, second]: Words): void => {
  if (from.seq === to.seq ? !isBackwards(range) : from.seq < to.seq) return;
  throw misuse(`${first} is later than ${second}: give the earlier moment first, scribe diff ${second} ${first}.`);
};

export const diff = command({
  name: 'diff',
  summary: 'what changed on the node between two moments',
  description: [
    `Shows which pods, containers and images came, went or changed between two moments, and of those that changed every field that differs, by its name in the state that is folded from the journal. What is chosen by a label or a tag had it at one of the two moments. ${MOMENT_FORMS}`,
    'Reads the journal itself, with the daemon up or down, and changes nothing.',
  ],
  operands: { name: 'MOMENT MOMENT', count: 2 },
  options: {
    root: rootOption,
    config: configOption,
    pod,
    container,
    image,
    namespace,
    label,
    utc: { about: 'Times in UTC, instead of in the local zone.' },
    json: jsonOption,
  },
  examples: [
    ['scribe diff 03:00 03:12', 'What happened to the node in these twelve minutes, as a result.'],
    ['scribe diff 03:00 03:12 --namespace shop', 'The same, of the pods of a namespace and their containers.'],
    ['scribe diff 48211 48212', 'What one record changed.'],
  ],
  readsIn: readsInRoot,
  isPaged: () => true,
  run: async (values, [first = '', second = ''], io) => {
    const moments = [parseMoment(first, 'MOMENT'), parseMoment(second, 'MOMENT')] as const;
    const wanted = thingFilterOf(values);
    const path = await readableJournal(await rootOf(values));
    const reader = openReader(path);
    try {
      refuseAmbiguous(wanted, reader.streamsBeginning);
      const [a, b] = [stateAt(path, reader, moments[0]), stateAt(path, reader, moments[1])];
      refuseBackwards({ since: moments[0], until: moments[1] }, [a, b], [first, second]);
      const changes = chosenChanges(wanted, a.state, b.state);
      const names = createNames(reader);
      void io.recordRead?.({ fromSeq: a.seq, toSeq: b.seq, shown: changes.length });
      if (values.json === true) {
        await write(io.stdout, changes.map((change) => jsonOf(names, change)).join(''));
        return 0;
      }
      const showTime = timesIn(values);
      const from = `${showTime(a.atNs)} (record ${a.seq})`;
      await write(io.stderr, `From ${from} to ${showTime(b.atNs)} (record ${b.seq}).\n`);
      if (changes.length === 0)
        await write(
          io.stderr,
          choosesAll(wanted)
            ? 'Nothing changed.\n'
            : `Nothing of that changed.${nearlyChosen(reader, wanted, b.seq)}\n`,
        );
      else await showTable(names, changes, io);
      for (const note of new Set([...a.notes, ...b.notes])) await write(io.stderr, `scribe: ${note}\n`);
      return 0;
    } finally {
      reader.close();
    }
  },
});
