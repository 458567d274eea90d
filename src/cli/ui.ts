/** `scribe ui`: the journal as a page in a browser of this machine, with its daemon up or down. Changes nothing. */
import { dirname, resolve } from 'node:path';
import { readableCopy } from '../journal/readable-copy.ts';
import { command, failure, misuse } from './command.ts';
import { levelOption, parseLevel } from './export/level.ts';
import { counted, grouped, printable } from './format.ts';
import { ENDING, toldToEnd, write } from './io.ts';
import { timesIn } from './local-zone.ts';
import { databaseAt } from './journal-file.ts';
import { configOption, readableJournal, readsInRoot, rootOf, rootOption } from './places.ts';
import { createProgress } from './progress.ts';
import { openFeed } from './ui/feed.ts';
import { newToken } from './ui/guard.ts';
import { findMatches } from './ui/matches.ts';
import { openQuestions } from './ui/questions.ts';
import { startServer } from './ui/server.ts';
import { unreadableText } from '../ui/words.ts';
import { wholeJournal } from './whole-journal.ts';

const options = {
  root: rootOption,
  config: configOption,
  port: { value: 'PORT', about: 'The port on 127.0.0.1; one that is free unless told.' },
  level: {
    value: levelOption.value,
    about:
      'How much of each record is shown: metadata (default: who, what, which object, when, how it ended; no commands, arguments, labels, annotations or messages), request (also what calls asked for) or request-response (all that was recorded).',
  },
  utc: { about: 'Times in UTC, instead of in the local zone.' },
} as const;

const PORT_MAX = 65_535;

const portOf = (text: string | undefined): number => {
  if (text === undefined) return 0;
  if (!/^\d{1,5}$/.test(text) || Number(text) > PORT_MAX)
    throw misuse(`--port ${text}: that is no port; there are 1 to ${PORT_MAX}, and 0 for one that is free.`);
  return Number(text);
};

export const ui = command({
  name: 'ui',
  summary: 'the journal as a page in a browser',
  description: [
    'Serves a page on 127.0.0.1 that draws the journal: pods and containers as lanes over time, calls and exits as marks on them, how many there were above. It prints the address, which has a token in it that is made anew each time: whoever knows the address can read what the page shows. Ends with SIGINT, SIGTERM or SIGHUP, and with the ssh that it was started over.',
    'A record that is opened says what it says, what led to it (as scribe why) and what the node was then (as scribe at). What is written while the page is open appears on it. The address in the browser says what is looked at, for whoever else has the page open.',
    'Reads the journal of this node, or the file JOURNAL, with the daemon up or down, and changes nothing. At the default --level nothing is shown that a client chose freely.',
  ],
  operands: { name: '[JOURNAL]', count: 1, countMin: 0 },
  options,
  examples: [
    ['scribe ui', 'Prints the address of the page.'],
    ['scribe ui /mnt/evidence/journal.db', 'Looks at the journal of another node.'],
    [
      'ssh -L 8080:127.0.0.1:8080 node7 scribe ui --port 8080',
      'From another machine; open the address that it prints.',
    ],
  ],
  readsIn: (values, [file]) => (file === undefined ? readsInRoot(values) : [dirname(resolve(file))]),
  run: async (values, [file], io) => {
    const [level, port] = [parseLevel(values.level), portOf(values.port)];
    if (file !== undefined && values.root !== undefined) throw misuse('JOURNAL and --root: give one of them.');
    const journal = file === undefined ? await readableJournal(await rootOf(values)) : await databaseAt(resolve(file));
    const { path, isCopy, release } = readableCopy(journal);
    const showTime = timesIn(values);
    const questions = openQuestions(path, level, showTime);
    const progress = createProgress(io.stderr);
    const feed = openFeed({
      path,
      live: !isCopy,
      onProgress: (throughSeq, head) => {
        progress.draw(() => [`Reading the journal: ${grouped(throughSeq)} of ${counted(head, 'record')}`]);
      },
      onUnreadable: (stretches) => {
        progress.clear();
        void write(io.stderr, `scribe: ${unreadableText(stretches)}\n`);
      },
      onRead: () => progress.clear(),
    });
    void io.recordRead?.(wholeJournal(path));
    const token = newToken();
    try {
      const about = {
        journal: printable(journal),
        level,
        timeZone: values.utc === true ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone,
      };
      const server = await startServer({
        ...{ token, port, feed, questions, about },
        matches: (chosen, signal) => findMatches(chosen, { path, level, live: !isCopy, signal }),
      });
      // Before the address is known, so that whoever has it can end this.
      const told = toldToEnd(ENDING);
      await write(io.stdout, `${server.url}\n`);
      const why = await Promise.race([told, feed.ended, ...(io.readerGone === undefined ? [] : [io.readerGone()])]);
      feed.close();
      await server.close();
      if (why !== null) throw failure(why);
      return 0;
    } finally {
      feed.close();
      await feed.ended;
      questions.close();
      release();
    }
  },
});
