/** `scribe verify`: whether the journal is what was written, and folds to what the daemon holds. */
import { readdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type KeptResult, readKept } from '../journal/kept-checkpoints.ts';
import type { KeptElsewhere } from '../journal/surroundings-check.ts';
import { createVerifyLanes, type VerifyReport, verifyJournal } from '../journal/verify.ts';
import { command, failure, type Values } from './command.ts';
import type { Compared } from './verify/fold.ts';
import { counted, grouped, jsonLine } from './format.ts';
import { type Io, write } from './io.ts';
import { configOption, jsonOption, readableJournal, readsInRoot, rootOf, rootOption, socketOption } from './places.ts';
import { createProgress, type Progress } from './progress.ts';
import { wholeJournal } from './whole-journal.ts';
import { planFold } from './verify/fold-plan.ts';
import type { Folded, Holder } from './verify/held-states.ts';

/** Enough to see what sort of damage it is. */
const FINDINGS_SHOWN_MAX = 20;

const options = {
  root: rootOption,
  socket: socketOption,
  config: configOption,
  against: {
    value: 'FILE',
    repeatable: true,
    about:
      'A copy of journal.db.head or journal.db.checkpoint that was kept elsewhere, or a directory of such copies: the journal must contain each of them, whatever is beside it now.',
  },
  key: {
    value: 'FILE',
    about:
      'The public key, as scribe journal vkey prints it or in PEM, or a copy of journal.db.key, that was kept elsewhere: signatures must be by it.',
  },
  json: jsonOption,
} as const;

const showCount = (progress: Progress, what: string, records: number, of: number): void =>
  progress.draw(() => [`${what} ${grouped(records)} of ${counted(of, 'record')}`]);

type Report = Omit<VerifyReport, 'folded'>;

interface Checked {
  readonly report: Report;
  /** null where something is known to be wrong with the journal. */
  readonly folded: Folded | null;
}

/** What was looked at is as it was written, whether all of it could be looked at or not. */
const isAsWritten = ({ findings }: Report): boolean => findings.every(({ isUnchecked }) => isUnchecked === true);

const check = async (
  values: Values<typeof options>,
  rootDir: string,
  path: string,
  kept: KeptElsewhere,
  progress: Progress,
): Promise<Checked> => {
  const lanes = createVerifyLanes();
  const ended = new AbortController();
  // Of one that cannot be read the check says why.
  const { toSeq: headSeq = 0 } = wholeJournal(path);
  let isChecked = false;
  const onFolded = (seq: number): void => {
    if (isChecked) showCount(progress, 'folding', seq, headSeq);
  };
  try {
    const plan = planFold({ values, rootDir, path, headSeq, lanes, onFolded, signal: ended.signal });
    const onProgress = (records: number, of: number): void => showCount(progress, 'checking', records, of);
    const fold = plan.then(({ asked }) => asked);
    const { folded, ...report } = await verifyJournal(path, { onProgress, lanes, ...kept, fold });
    isChecked = true;
    progress.clear();
    return { report, folded: isAsWritten(report) ? await (await plan).finish(folded) : null };
  } finally {
    ended.abort();
  }
};

const sentenceOf = ({ seq, what }: Report['findings'][number]): string =>
  seq === null ? what : `record ${grouped(seq)}: ${what}`;

const countsOf = (report: Report): string => {
  const { headSeq, prunedRecords, checkpoints, snapshots, readSegments } = report;
  const pruned = prunedRecords === 0 ? '' : ` (${grouped(prunedRecords)} pruned)`;
  const rest = [counted(checkpoints, 'checkpoint'), counted(snapshots, 'snapshot'), counted(readSegments, 'segment')];
  return `${counted(headSeq, 'record')}${pruned}, ${rest.join(', ')} of read calls`;
};

/** Those that it does not contain are findings. */
const keptLines = ({ file, seq, verdict }: KeptResult): string[] =>
  verdict === 'contained' && seq !== null
    ? [`${file}: the journal contains it, up to record ${grouped(seq)}, and the same key signed`]
    : [];

const differenceOf = ({ held, foldedHash }: Compared<Holder>): string =>
  `${whereOf(held)} is ${held.stateHash}, but the journal folds to ${foldedHash}`;

const NAMES = {
  snapshot: 'the snapshot',
  daemon: "the daemon's live state",
  decisions: 'the state that the daemon decides from',
} as const satisfies Record<Holder['who'], string>;

const whereOf = ({ who, seq }: Holder): string => `${NAMES[who]} at record ${grouped(seq)}`;

const foldLines = ({ compared, whole, doubts, noDaemon }: Folded): string[] => [
  ...doubts,
  `folded from record 1: the state at record ${grouped(whole.seq)} has SHA-256 ${whole.stateHash}`,
  ...compared.map((one) => (one.isSame ? `${whereOf(one.held)} is the same, byte for byte` : differenceOf(one))),
  ...(noDaemon === null ? [] : [`the daemon's live state was not compared: ${noDaemon}`]),
];

const show = async (path: string, report: Report, folded: Folded | null, tookMs: number, io: Io): Promise<void> => {
  const findings = report.findings.slice(0, FINDINGS_SHOWN_MAX).map(sentenceOf);
  const more = report.findings.length - findings.length;
  const lines = [
    `${path}: ${countsOf(report)}`,
    ...(isAsWritten(report) ? ['every hash is right'] : []),
    ...findings,
    ...report.against.flatMap(keptLines),
    ...(more > 0 ? [`and ${counted(more, 'finding')} more`] : []),
    ...(folded === null ? ['not folded: the journal is not what was written'] : foldLines(folded)),
    `took ${(tookMs / 1000).toFixed(1)} s`,
  ];
  await write(io.stdout, lines.map((line) => `${line}\n`).join(''));
};

const jsonOf = (path: string, report: Report, folded: Folded | null, tookMs: number): string => {
  const compared = folded?.compared.map(({ held: { who, seq }, isSame, foldedHash }) => ({
    who,
    seq,
    isSame,
    foldedHash,
  }));
  const fold = folded === null ? null : { ...folded.whole, compared, doubts: folded.doubts, noDaemon: folded.noDaemon };
  const object = { path, ...report, fold, tookMs: Math.round(tookMs) };
  return jsonLine(object);
};

/** What a backup, or an auditor, has in the directory besides checkpoints. */
const BESIDE_CHECKPOINTS = /^(journal\.db(-wal|-shm|\.key|\.lock)?|.*\.vkey)$/;

/** The files of a directory, in order of their names; anything else stands for itself. */
const filesOf = async (path: string): Promise<string[]> => {
  const stats = await stat(path).catch(() => null);
  if (stats?.isDirectory() !== true) return [path];
  const names = (await readdir(path)).filter((name) => !BESIDE_CHECKPOINTS.test(name)).sort();
  if (names.length === 0) throw failure(`--against ${path}: there is no checkpoint in it.`);
  return names.map((name) => join(path, name));
};

/** What an auditor has, and whoever owns this machine could not change. */
const keptElsewhere = async ({ against = [], key }: Values<typeof options>): Promise<KeptElsewhere> => {
  const files = (await Promise.all(against.map((path) => filesOf(resolve(path))))).flat();
  for (const file of files) {
    const kept = readKept(file);
    // That says nothing of the journal, which is not blamed for it.
    if (kept.kind === 'none') throw failure(`--against: ${kept.problem} Nothing was verified.`);
  }
  return { against: files, ...(key === undefined ? {} : { key: resolve(key) }) };
};

export const verify = command({
  name: 'verify',
  summary: 'check every hash of the journal, and what it folds to',
  description: [
    'Computes every hash of the journal anew: the chain of records, checkpoints and their signatures, what was pruned and by which record, segments of read calls, snapshots. Finds a single flipped bit, and names the first record that is not what was written, and why.',
    'Then folds the journal from record 1 on and compares: with every snapshot, and, when the daemon runs, with its live state, and with the state that it decides from while nothing is on its way to the disk. All must be the same, byte for byte. Of a large journal each snapshot is folded to the next, side by side, which says the same; where one differs, all is folded from record 1 on.',
    'Changes nothing, and works with the daemon up or down. Copy <root>/journal.db.head or journal.db.checkpoint to another machine now and then: --against tells whether the journal still contains every copy, or was put back to an older state, rewritten, replaced by another or signed again with another key, and between which copies. --key names the key that must have signed.',
    'A journal that was put back, cut or begun anew is doubted until somebody acknowledges it, and is not verified before.',
  ],
  options,
  exitStatus: '0 when the journal is what was written, 1 when it is not, or could not be read or checked whole',
  examples: [
    ['scribe verify', 'Takes four to seven seconds for a million records, with two processors.'],
    ['scribe verify --against /mnt/audit/node7 --key /mnt/audit/node7.vkey', 'Trusts nothing on this machine.'],
  ],
  readsIn: readsInRoot,
  run: async (values, _operands, io) => {
    const startedMs = performance.now();
    const rootDir = await rootOf(values);
    const path = await readableJournal(rootDir);
    const progress = createProgress(io.stderr);
    const kept = await keptElsewhere(values);
    const { report, folded } = await check(values, rootDir, path, kept, progress);
    progress.clear();
    void io.recordRead?.({ fromSeq: 1, toSeq: report.headSeq, shown: report.findings.length });
    const tookMs = performance.now() - startedMs;
    if (values.json === true) await write(io.stdout, jsonOf(path, report, folded, tookMs));
    else await show(path, report, folded, tookMs, io);

    const [first] = report.findings;
    if (first !== undefined) {
      const told = isAsWritten(report)
        ? 'Not all of the journal could be checked'
        : 'The journal is not what was written';
      throw failure(`${told}: ${sentenceOf(first)}`);
    }
    const [doubt] = folded?.doubts ?? [];
    if (doubt !== undefined)
      throw failure(`The journal is doubted until scribe journal acknowledge ends that: ${doubt}`);
    const differing = folded?.compared.find(({ isSame }) => !isSame);
    if (differing !== undefined)
      throw failure(`The journal does not fold to what is held: ${differenceOf(differing)}.`);
    return 0;
  },
});
