/** `scribe export`: the journal for other people's tools. */
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { openReader } from '../journal/open.ts';
import { openTree } from '../journal/open-tree.ts';
import { plainUrl } from './bundle/redact.ts';
import { command, misuse, type Values } from './command.ts';
import { type Cursor, type CursorJournal, openCursor, rangeBehind } from './cursor.ts';
import { formatOption, parseFormat, type WritePage, writePageOf } from './export/formats.ts';
import { type Level, levelOption, parseLevel } from './export/level.ts';
import { createItemReader, type ItemPage, type ItemReader } from './export/records.ts';
import { fileTarget, otlpTarget, streamTarget, type Target } from './export/target.ts';
import { exportTlog } from './export/tlog.ts';
import { counted, prunedAmong, prunedOf } from './format.ts';
import { createGiven } from './given.ts';
import { watchJournal } from './history/watch.ts';
import { type Io, tellerTo, write } from './io.ts';
import { newestFacts } from './newest-facts.ts';
import { nearlyChosen } from './near-names.ts';
import { configOption, readableJournal, readsInRoot, rootOf, rootOption } from './places.ts';
import { nothingFits, parseRange, rangeOptions, seqsOf } from './time-argument.ts';
import { choosesAll, refuseAmbiguous, type ThingFilter, thingFilterOf, thingOptions } from './things.ts';
import type { Waiting } from './waiting.ts';

/** As a file's name; ./- is a file that is called so. */
const STDOUT = '-';

const options = {
  root: rootOption,
  config: configOption,
  format: formatOption,
  level: levelOption,
  pod: thingOptions.pod,
  container: thingOptions.container,
  image: thingOptions.image,
  namespace: thingOptions.namespace,
  label: thingOptions.label,
  ...rangeOptions,
  output: {
    value: 'FILE',
    about:
      'Appends to this file, instead of writing to standard output (-); with --follow to the file that is at this path by then, where somebody rotates it.',
  },
  endpoint: {
    value: 'URL',
    about:
      'With --format otlp: sends to this receiver of OTLP over HTTP, at URL/v1/logs. What it refuses for good (partial success) is said, and the exit status is 1 then.',
  },
  follow: {
    short: 'f',
    about:
      'Goes on: exports what is being recorded. Waits for a file whose disk is full, and for a receiver that does not answer.',
  },
  'cursor-file': {
    value: 'FILE',
    about:
      'Where this target has come to: the export begins behind it, the first time at --since, and saves it whenever the target has more. It is of one journal and one target: another export with it is refused meanwhile. What comes twice after a crash has the same node and seq.',
  },
  node: {
    value: 'NAME',
    about:
      'What the node is called in exports; by default the host name that it had when its daemon started last, wherever the journal is by now.',
  },
  tlog: {
    value: 'DIR',
    about:
      "Writes the journal as a tile-based transparency log (c2sp.org/tlog-tiles) into this directory instead: every record's body_hash, the Merkle tree over them and a signed checkpoint.",
  },
} as const;

const tlogTo = async (path: string, dir: string, io: Io): Promise<void> => {
  const tree = openTree(path);
  try {
    const { size } = await exportTlog(tree, dir);
    void io.recordRead?.({ fromSeq: 1, toSeq: size, shown: size });
    await write(io.stdout, `${dir}: ${counted(size, 'record')} of the log ${tree.origin}\n`);
  } finally {
    tree.close();
  }
};

const receiverOf = (endpoint: string): string => {
  const url = URL.parse(endpoint);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw misuse(`--endpoint ${endpoint}: that is no address of a receiver, such as http://127.0.0.1:4318.`);
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw misuse(
      `--endpoint: an address without user, password and query is wanted, ${plainUrl(endpoint)}: have a collector on this node add what the receiver asks for.`,
    );
  return endpoint;
};

const targetOf = async ({ output, endpoint, format, follow }: Values<typeof options>, io: Io): Promise<Target> => {
  const tell = tellerTo(io);
  const waiting: Waiting = follow === true ? tell : null;
  if (endpoint !== undefined && (output !== undefined || format !== 'otlp'))
    throw misuse('--endpoint goes with --format otlp, and without --output.');
  if (endpoint !== undefined) return otlpTarget(receiverOf(endpoint), tell, waiting);
  return output === undefined || output === STDOUT ? streamTarget(io.stdout) : fileTarget(resolve(output), waiting);
};

const cursorOf = async (
  file: string | undefined,
  path: string,
  journal: CursorJournal,
  waiting: Waiting,
): Promise<Cursor> =>
  file === undefined
    ? { seq: 0, isNew: true, save: async () => {}, [Symbol.dispose]: () => {} }
    : openCursor(resolve(file), path, journal, waiting);

interface Export {
  readonly items: ItemReader;
  readonly writePage: WritePage;
  readonly level: Level;
  readonly target: Target;
  readonly cursor: Cursor;
  readonly giving: (page: ItemPage) => Promise<void>;
}

interface Sent {
  readonly records: number;
  /** So many of the range are pruned: the target gets nothing of them. */
  readonly pruned: number;
}

/** Sends a range, and says how many records of it, and saves the cursor after every page that the target has. */
const sendRange = async (
  { items, writePage, level, target, cursor, giving }: Export,
  fromSeq: number,
  toSeq: number,
): Promise<Sent> => {
  let [sent, pruned] = [0, 0];
  for (const page of items.pages(fromSeq, toSeq)) {
    await giving(page);
    sent += page.items.length;
    pruned += page.pruned;
    const text = writePage(page.items, level);
    if (text !== '') await target.send(text);
    await cursor.save(page.throughSeq);
  }
  return { records: sent, pruned };
};

/** A target whose feed stood still for longer than records are kept misses some: nothing else would tell that. */
const notePruned = async ({ pruned }: Sent, wanted: ThingFilter, { stderr }: Io): Promise<void> => {
  if (pruned === 0) return;
  const note = choosesAll(wanted) ? prunedOf(pruned, 'nothing of that is exported.') : prunedAmong(pruned);
  await write(stderr, `scribe: ${note}\n`);
};

const records = async (path: string, values: Values<typeof options>, io: Io): Promise<0 | 1> => {
  const { since, until, follow = false } = values;
  if (follow && until !== undefined) throw misuse('--follow goes on, and --until ends: give one of them.');
  const [format, level] = [parseFormat(values.format), parseLevel(values.level)];
  const [range, wanted] = [parseRange({ since, until }), thingFilterOf(values)];
  const nodeName = values.node ?? newestFacts(path)?.node.hostname ?? hostname();
  const reader = openReader(path);
  refuseAmbiguous(wanted, reader.streamsBeginning);
  // Before anything is read, so that nothing can be written unseen.
  const watch = follow ? watchJournal(path) : null;
  const target = await targetOf(values, io);
  try {
    const headSeq = reader.headSeq();
    using cursor = await cursorOf(values['cursor-file'], path, reader, follow ? tellerTo(io) : null);
    const items = createItemReader(reader, nodeName, wanted);
    const { fromSeq, toSeq } = seqsOf(reader, rangeBehind(cursor, range));
    let next = Math.max(fromSeq, cursor.seq + 1);
    // Where there is nothing yet it began here all the same.
    if (cursor.isNew) await cursor.save(Math.min(next - 1, headSeq));
    let readSeq = next - 1;
    const given = createGiven(next, () => readSeq);
    const giving = (page: ItemPage): Promise<void> => {
      readSeq = page.throughSeq;
      return given.giving(page.items.length);
    };
    const run: Export = { items, writePage: writePageOf(format), level, target, cursor, giving };
    if (follow) void io.recordRead?.({ fromSeq: next }, given.atEnd);
    const firstSeq = next;
    items.learnThrough(toSeq);
    const sent = await sendRange(run, next, toSeq);
    void io.recordRead?.({ fromSeq: firstSeq, toSeq, shown: sent.records });
    await notePruned(sent, wanted, io);
    if (sent.records + sent.pruned === 0 && !follow)
      await write(
        io.stderr,
        `scribe: ${cursor.seq > 0 ? 'There is nothing new that fits.' : `${nothingFits(range, headSeq)}${nearlyChosen(reader, wanted, headSeq)}`}\n`,
      );
    next = Math.max(next, toSeq + 1);
    while (watch !== null) {
      await watch.changed();
      await watch.reading(async () => {
        const head = reader.headSeq();
        await notePruned(await sendRange(run, next, head), wanted, io);
        next = Math.max(next, head + 1);
      });
    }
    return target.refused() === 0 ? 0 : 1;
  } finally {
    await target.close();
    watch?.close();
    reader.close();
  }
};

export const exportCommand = command({
  name: 'export',
  summary: "write the journal for other people's tools",
  description: [
    'Writes records, all or those of a pod, container, image or time, in a format that other tools read, to standard output, a file, or a receiver of OTLP. A record is known by its node and seq: with --cursor-file every record comes at least once, over crashes of whoever reads and writes, and one that comes twice is the same.',
    'What is chosen is what scribe history --events shows of it: a call that had to do with it comes with all of its records, also where its request does not name it. With --follow that is known as far as the call has gone when each is recorded, and at its call.completed whole: that one also says which object a call was given that another had made, where its call.received has the id that it would have had.',
    'A range is one of records. Formats that tell of whole calls (ocsf, kubernetes-audit) tell of one where it ended; scribe history, report and sql count it where it began.',
    'At the default --level nothing is written that a client chose freely: no commands, arguments, environment, labels, annotations, paths or messages. Values of environment variables and credentials are in no journal, and so in no export.',
    "With --tlog DIR every record's body_hash, the Merkle tree over them (RFC 6962) and a signed checkpoint become files that verifiers of transparency logs read, such as fsck of Tessera. No body is among them, so they show nothing of what was recorded, and a journal that was pruned has all of them. Written again into the same directory, they grow.",
    'Reads the journal itself, with the daemon up or down, and changes nothing in it. Of what is pruned a target gets nothing; how much that is, is said. What checks signatures is printed by scribe journal vkey.',
  ],
  options,
  examples: [
    ['scribe export --since yesterday --pod default/web', 'All that was recorded of a pod, as lines of JSON.'],
    [
      'scribe export --format ocsf --follow --cursor-file /var/lib/siem/scribe.cursor --output /var/lib/siem/scribe.json',
      'Feeds a SIEM, and goes on where it was.',
    ],
    [
      'scribe export --format otlp --endpoint http://127.0.0.1:4318 --follow',
      'Sends logs to an OpenTelemetry collector.',
    ],
    ['scribe export --tlog /mnt/audit/node7.tlog', 'Writes the tree and its checkpoint.'],
  ],
  readsIn: readsInRoot,
  run: async (values, _operands, io) => {
    const path = await readableJournal(await rootOf(values));
    if (values.tlog === undefined) return records(path, values, io);
    const { root: _root, config: _config, tlog, ...others } = values;
    const [other] = Object.keys(others);
    if (other !== undefined) throw misuse(`--tlog writes all of the tree: it does not go with --${other}.`);
    await tlogTo(path, resolve(tlog), io);
    return 0;
  },
});
