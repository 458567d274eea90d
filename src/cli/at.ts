/** `scribe at`: the node as it was at a moment, from the journal, with its daemon up or down. Changes nothing. */
import { resolve } from 'node:path';
import { nearest } from '../config/nearest.ts';
import { openReader } from '../journal/open.ts';
import type { JournalReader } from '../journal/reader.ts';
import { command, misuse, type Values } from './command.ts';
import { jsonLine } from './format.ts';
import { type Io, toldToEnd, write } from './io.ts';
import { timesIn } from './local-zone.ts';
import { nearlyChosen } from './near-names.ts';
import { COLUMNS, type Kind, KINDS, listed } from './past/rows.ts';
import { type PastState, stateAt } from './past/state.ts';
import { configOption, jsonOption, readableJournal, readsInRoot, rootOf, rootOption } from './places.ts';
import { createTable } from './table.ts';
import { refuseAmbiguous, thingFilterOf, thingOptions } from './things.ts';
import { MOMENT_FORMS, parseMoment } from './time-argument.ts';

const { pod, container, image, namespace, label } = thingOptions;

const options = {
  root: rootOption,
  config: configOption,
  pod,
  container,
  image,
  namespace,
  label,
  listen: {
    value: 'SOCKET',
    about:
      'Serves CRI at this socket as of the moment, until it is told to end: lists and statuses as they were, for crictl and whoever else reads; everything else is refused.',
  },
  utc: { about: 'Times in UTC, instead of in the local zone.' },
  json: jsonOption,
} as const;

const isKind = (text: string): text is Kind => KINDS.some((kind) => kind === text);

/** What chooses, or says how, things are listed: a socket shows all of the node, and nobody is to take that for a choice. */
const OF_GET = ['pod', 'container', 'image', 'namespace', 'label', 'json'] as const;

const checkListen = (values: Values<typeof options>, verb: string | undefined): void => {
  if (values.listen === undefined) return;
  if (verb !== undefined) throw misuse('"get" and --listen: give one of them.');
  const other = OF_GET.find((name) => values[name] !== undefined);
  if (other !== undefined) throw misuse(`--listen serves all of the node: it does not go with --${other}.`);
};

/** What "get pods" asks for; any number and short forms will do. */
const kindOf = (moment: string, verb: string | undefined, text: string | undefined): Kind => {
  if (moment === 'get')
    throw misuse(`MOMENT comes before "get": scribe at ${text ?? 'now'} get ${verb ?? KINDS.join('|')}.`);
  const forms = `say "get" and one of ${KINDS.join(', ')}`;
  if (verb !== undefined && isKind(verb)) throw misuse(`"get" is missing before "${verb}".`);
  if (verb !== 'get')
    throw misuse(`${verb === undefined ? 'What to show is missing' : `"${verb}" is not known`}: ${forms}.`);
  if (text === undefined) throw misuse(`What to get is missing: ${forms}.`);
  const kind = [text, `${text}s`].find(isKind);
  if (kind !== undefined) return kind;
  const meant = nearest(text, KINDS);
  throw misuse(`There are no "${text}" to get; ${meant === null ? `${forms}.` : `did you mean ${meant}?`}`);
};

const show = async (
  past: PastState,
  reader: JournalReader,
  kind: Kind,
  values: Values<typeof options>,
  io: Io,
): Promise<void> => {
  const wanted = thingFilterOf(values);
  const rows = listed(kind, past.state, wanted, past.atNs);
  void io.recordRead?.({ fromSeq: 1, toSeq: past.seq, shown: rows.length });
  if (values.json === true) return write(io.stdout, rows.map(({ json }) => jsonLine(json)).join(''));
  const showTime = timesIn(values);
  await write(io.stderr, `As of ${showTime(past.atNs)}, after record ${past.seq}.\n`);
  if (rows.length === 0)
    return write(io.stderr, `There were no such ${kind}.${nearlyChosen(reader, wanted, past.seq)}\n`);
  const table = createTable(
    io.stdout,
    COLUMNS[kind].map((title) => ({ title, widthMax: 60 })),
  );
  for (const { cells, style } of rows) await table.add(cells, style);
  await table.flush();
};

const listen = async (
  past: PastState,
  socket: string,
  { config, utc }: Values<typeof options>,
  io: Io,
): Promise<void> => {
  const [{ loadConfig }, { pinnedNames }, { servePast }] = await Promise.all([
    import('../config/load.ts'),
    import('../daemon/pinned-names.ts'),
    import('./past/serve.ts'),
  ]);
  const configured = await loadConfig({ path: config });
  const socketPath = resolve(socket);
  // Nobody but its owner may connect, not even before the mode is set.
  process.umask(0o077);
  const server = await servePast({
    past,
    socketPath,
    messageBytesMax: configured.limits.requestBytesMax,
    pinned: pinnedNames(configured),
    report: (message) => void write(io.stderr, `scribe: ${message}\n`),
  });
  // Before it is told: whoever waits for that may end it at once, and the socket is to go with it.
  const ended = toldToEnd(['SIGINT', 'SIGTERM']);
  const showTime = timesIn({ utc });
  const then = `as of ${showTime(past.atNs)}, after record ${past.seq}`;
  await write(io.stderr, `Listening at unix://${socketPath}, ${then}. SIGINT or SIGTERM ends it.\n`);
  await ended;
  await server.close();
};

export const at = command({
  name: 'at',
  summary: 'the node as it was at a moment',
  description: [
    `Shows the pods, containers or images of this node as they were at a moment. ${MOMENT_FORMS} The state just after that record is shown.`,
    'Reads the journal itself, with the daemon up or down, and changes nothing. What was removed since and is pruned by now is missing; a note says so. With --listen the time of an answer (timestamp of PodSandboxStatus) is the moment; numbers of what ran then (stats) are not recorded.',
  ],
  operands: { name: 'MOMENT [get pods|containers|images]', count: 3, countMin: 1 },
  options,
  examples: [
    ['scribe at 03:12 get containers', 'Which containers there were today at 03:12, and what they did.'],
    ['scribe at 2h get pods --namespace shop', 'The pods of a namespace two hours ago.'],
    ['scribe at 48211 get images --json', 'The images just after a record.'],
    [
      'scribe at 03:12 --listen /tmp/then.sock & crictl -r unix:///tmp/then.sock ps -a',
      'crictl shows the containers of 03:12.',
    ],
  ],
  readsIn: readsInRoot,
  run: async (values, [moment = '', verb, what], io) => {
    const socket = values.listen;
    checkListen(values, verb);
    const kind = socket === undefined ? kindOf(moment, verb, what) : null;
    const wanted = parseMoment(moment, 'MOMENT');
    const path = await readableJournal(await rootOf(values));
    const reader = openReader(path);
    try {
      refuseAmbiguous(thingFilterOf(values), reader.streamsBeginning);
      const past = stateAt(path, reader, wanted);
      for (const note of past.notes) await write(io.stderr, `scribe: ${note}\n`);
      // With --listen it goes on until it is ended.
      if (socket !== undefined) void io.recordRead?.({ fromSeq: 1, toSeq: past.seq });
      if (kind !== null) await show(past, reader, kind, values, io);
      else if (socket !== undefined) await listen(past, socket, values, io);
    } finally {
      reader.close();
    }
    return 0;
  },
});
