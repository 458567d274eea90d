/** `scribe journal backup`: a copy of the journal of one moment, beside the daemon that goes on writing it. */
import { copyFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { messageOf } from '../../domain/model/errors.ts';
import { backUpJournal, unfinishedCopyOf } from '../../journal/backup.ts';
import { readSigningKey } from '../../journal/checkpoints.ts';
import { journalFiles } from '../../journal/files.ts';
import { passing } from '../../journal/left-behind.ts';
import { openReader } from '../../journal/open.ts';
import { vkeyIn } from '../../journal/open-tree.ts';
import { type VerifyReport, verifyJournal } from '../../journal/verify.ts';
import { makeDirectories } from '../../platform/linux/make-directories.ts';
import { command, failure, misuse } from '../command.ts';
import { bytes, counted, grouped } from '../format.ts';
import { write } from '../io.ts';
import { configOption, journalOf, readableJournal, readsInRoot, rootOf, rootOption } from '../places.ts';
import { createProgress, type Progress } from '../progress.ts';

const PAGE_BYTES = 4096;

const options = {
  root: rootOption,
  config: configOption,
  'with-key': {
    about:
      'Copies the key that signs, too: for putting the journal back on this node. Without, the copy has the public half only, and whoever holds it can check but not sign.',
  },
} as const;

/** What checks the copy's signatures when the key is not there. */
const VKEY_FILE = 'journal.vkey';

/** The inner one first. */
const directoriesUpTo = (outermost: string, dir: string): readonly string[] =>
  dir.length <= outermost.length ? [dir] : [dir, ...directoriesUpTo(outermost, dirname(dir))];

interface Copying {
  readonly path: string;
  readonly copyPath: string;
  readonly vkey: string;
  readonly vkeyPath: string;
  readonly withKey: boolean | undefined;
}

const copyVerified = async (
  { path, copyPath, vkey, vkeyPath, withKey }: Copying,
  progress: Progress,
): Promise<VerifyReport> => {
  await backUpJournal(path, copyPath, ({ pagesDone, pages }) =>
    progress.draw(() => [`copying ${bytes(pagesDone * PAGE_BYTES)} of ${bytes(pages * PAGE_BYTES)}`]),
  );
  await writeFile(vkeyPath, `${vkey}\n`, { mode: 0o600 });
  if (withKey === true) await copyFile(journalFiles(path).key, journalFiles(copyPath).key);
  return verifyJournal(copyPath, {
    key: vkeyPath,
    onProgress: (records, of) => progress.draw(() => [`verifying ${grouped(records)} of ${counted(of, 'record')}`]),
  });
};

export const journalBackup = command({
  name: 'journal backup',
  summary: 'copy the journal, of one moment, with the daemon up or down',
  description: [
    'Copies the journal and the checkpoints beside it into DIR, which is made and must hold no journal, and verifies every hash of the copy. The daemon goes on: no call waits for the copy, and what is recorded meanwhile is not in it.',
    `The copy is a root directory for every command that reads a journal (scribe history --root DIR). ${VKEY_FILE} in it is the public key: scribe verify --root DIR --key DIR/${VKEY_FILE}.`,
    'To put a journal back: stop the daemon, copy journal.db and journal.db-wal of a backup over those of the root directory, both of them, start the daemon. The second is empty, and takes the place of what a daemon that was killed had not moved into journal.db yet, which would make one broken journal of two. Leave journal.db.head there as it is: by it the journal is doubted then until scribe journal acknowledge, since the node has gone on without it. Where the root directory itself is gone, copy all files of a backup made --with-key.',
  ],
  operands: { name: 'DIR', count: 1 },
  options,
  exitStatus: '0 when the copy is there and is what was written, 1 when it is not',
  examples: [['scribe journal backup /mnt/backup/node7/2026-11-21', "Tonight's copy."]],
  readsIn: readsInRoot,
  run: async (values, [operand], io) => {
    if (operand === undefined) throw misuse('DIR is missing.');
    const path = await readableJournal(await rootOf(values));
    const [dir, from] = [resolve(operand), journalFiles(path)];
    // Before anything is copied that could not be verified, or not be put back.
    openReader(path).close();
    const vkey = vkeyIn(path);
    if (values['with-key'] === true && readSigningKey(from.key) === null)
      throw failure(`--with-key: ${from.key} is no key that signs.`);
    const copyPath = journalOf(dir);
    if (existsSync(copyPath)) throw failure(`There is a journal at ${copyPath} already; name another directory.`);
    const outermost = await makeDirectories(dir, 0o700).catch((error: unknown) => {
      throw failure(`The directory ${dir} cannot be made: ${messageOf(error)}.`, error);
    });
    const made = outermost === undefined ? [] : directoriesUpTo(outermost, dir);
    const progress = createProgress(io.stderr);
    const vkeyPath = resolve(dir, VKEY_FILE);
    const files = Object.values<string>({ ...journalFiles(copyPath) }).filter((file) => !existsSync(file));
    // A copy that nobody has verified is none yet.
    const { keep } = passing(
      [unfinishedCopyOf(copyPath), `${unfinishedCopyOf(copyPath)}-journal`, vkeyPath, ...files],
      made,
    );
    const report = await copyVerified({ path, copyPath, vkey, vkeyPath, withKey: values['with-key'] }, progress)
      .finally(keep)
      .catch(async (error: unknown) => {
        for (const one of made) await rmdir(one).catch(() => undefined);
        throw error;
      });
    progress.clear();
    // Of a reader that verified it: nothing is in them. An empty log stays, to be put over another that is not.
    await rm(`${copyPath}-shm`, { force: true });
    await writeFile(journalFiles(copyPath).wal, '', { mode: 0o600 });
    void io.recordRead?.({ fromSeq: 1, toSeq: report.headSeq });
    const [first] = report.findings;
    if (first !== undefined)
      throw failure(
        `The copy ${copyPath} is not what was written: ${first.seq === null ? '' : `record ${grouped(first.seq)}: `}${first.what} See what scribe verify says of the journal.`,
      );
    await write(io.stdout, `${copyPath}: ${counted(report.headSeq, 'record')}, every hash is right\n`);
    return 0;
  },
});
