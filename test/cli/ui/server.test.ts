/**
 * The server of `scribe ui`, asked as a browser would and as nobody should: who gets an answer, what records, lanes, causes
 * and states it tells, and that a journal that grows is followed. That no secret is in any of it: secrets.test.ts.
 */
import assert from 'node:assert/strict';
import { copyFile, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { dirname, join } from 'node:path';
import { before, describe, test } from 'node:test';
import { parseFilterWords } from '../../../src/cli/ui/filter-words.ts';
import { admit } from '../../../src/cli/ui/guard.ts';
import { openJournal } from '../../../src/journal/open.ts';
import type { AtAnswer, EntryRow, ErrorAnswer, Matches, RecordAnswer, WhyAnswer } from '../../../src/ui/answers.ts';
import { linesIn } from '../../../src/ui/lines.ts';
import { BEAT, BEAT_EVERY_MS, createFrameReader, type Frame, type Lane } from '../../../src/ui/frames.ts';
import { kindOf } from '../../../src/ui/kinds.ts';
import Database from 'better-sqlite3';
import { cleanupAfterAll, onCleanup } from '../../support/cleanup.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { seqOf, type Story, tell } from '../story.ts';
import { jsonLines, rootWith, scribe } from '../support.ts';
import { type Served, serveJournal } from './served.ts';

const owner = cleanupAfterAll();
let story: Story;
let served: Served;
let journalPath: string;
before(async () => {
  story = await tell();
  ({ journalPath } = await rootWith(owner, story.records));
  served = await serveJournal(owner, journalPath);
});

interface Answered {
  readonly status: number | undefined;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
}

/** A request as no browser would let a page make it. */
const asked = (path: string, method = 'GET', host?: string, origin?: string): Promise<Answered> =>
  new Promise((resolve, reject) => {
    const headers = { ...(host === undefined ? {} : { host }), ...(origin === undefined ? {} : { origin }) };
    const asking = request(new URL(path, served.url), { method, headers }, (response) => {
      text(response).then((said) => {
        resolve({ status: response.statusCode, headers: response.headers, text: said });
      }, reject);
    });
    asking.on('error', reject).end();
  });

describe('who is answered', () => {
  const token = 'abc';
  const statusOf = (method: string, host: string | undefined, target: string): number => {
    const admission = admit({ method, host, target }, token);
    return admission.kind === 'refused' ? admission.status : 200;
  };

  test('whoever knows the token, by GET, under a name of this machine', () => {
    for (const host of ['127.0.0.1:4711', 'localhost', 'localhost:80', '[::1]:8080'])
      assert.equal(statusOf('GET', host, '/abc/record?seq=1'), 200, host);
    for (const host of [
      undefined,
      'evil.example',
      '127.0.0.1.evil.example',
      'localhost.evil.example:80',
      'evil@127.0.0.1',
    ])
      assert.equal(statusOf('GET', host, '/abc/'), 403, host);
    for (const target of ['/', '/abd/', '/ab/', '/abcd/', '//abc/', '*', '/%61bc/x'])
      assert.equal(statusOf('GET', 'localhost', target), 401, target);
    for (const method of ['POST', 'PUT', 'HEAD', 'OPTIONS']) assert.equal(statusOf(method, 'localhost', '/abc/'), 405);
  });

  test('over the wire: nobody else, and every answer forbids the page everything it does not need', async () => {
    const told = async (path: string, host?: string, origin?: string) => {
      const { status, text } = await asked(path, 'GET', host, origin);
      return `${status} ${text}`;
    };
    assert.match(await told('', 'evil.example'), /^403 scribe ui answers under 127\.0\.0\.1 and localhost alone: open/);
    for (const origin of ['http://evil.example', 'null', 'http://localhost:1', served.url.replace('http:', 'https:')])
      assert.match(
        await told('records', 'localhost', origin),
        /^403 scribe ui answers its own page alone\.\n$/,
        origin,
      );
    assert.match(await told('about', 'localhost:8080', 'http://localhost:8080'), /^200 \{"journal"/);
    for (const path of ['/', '/about', '/AAAA/records'])
      assert.match(
        await told(path),
        /^401 Open the address that scribe ui printed, whole: each start has another\.\n$/,
      );
    assert.deepEqual([(await asked('', 'POST')).status, (await asked('', 'POST')).headers.allow], [405, 'GET']);
    for (const path of ['', 'page.css', 'page.ts', 'about', 'records-of-nothing']) {
      const { headers } = await asked(path);
      assert.match(String(headers['content-security-policy']), /^default-src 'none'; script-src 'self';/, path);
      assert.equal(headers['access-control-allow-origin'], undefined);
      assert.equal(headers['referrer-policy'], 'no-referrer');
    }
  });

  test('no other file is served', async () => {
    for (const path of ['tsconfig.json', 'README.md', '../ui.ts', '..%2fui.ts', 'nothing.ts', '%2e%2e/ui.ts'])
      assert.notEqual((await asked(path)).status, 200, path);
    assert.equal((await asked('page.ts')).status, 200);
  });
});

describe('records', () => {
  const firstFrame = async (): Promise<Frame> => {
    const { value } = await served.frames().next();
    assert.ok(value !== undefined);
    return value;
  };

  test('each has its lane and its kind', async () => {
    const { head, lanes, kinds, seqs } = await firstFrame();
    const labelOf = (lane: Lane | undefined): string =>
      lane?.parent == null ? (lane?.label ?? '') : `${labelOf(head.lanes[lane.parent])} ${lane.label}`;
    const told = Array.from(
      seqs,
      (seq, at) => `${seq} ${labelOf(head.lanes[lanes[at] ?? 0])}: ${kindOf(kinds[at] ?? 0)}`,
    );
    const has = (type: string, id: string, what: string): void =>
      assert.ok(told.includes(`${seqOf(story, type, id)} ${what}`), `${what}\n${told.join('\n')}`);
    assert.equal(seqs.length, story.records.length);
    has('container.started', story.nginx, 'default/web nginx: begin');
    has('container.exited', story.nginx, 'default/web nginx: failed exit');
    has('sandbox.ready', story.other, 'test/web: begin');
    const callOf = (text: string): string =>
      String(story.records.find(({ type, body }) => type === 'call.received' && body.includes(text))?.seq);
    assert.ok(told.includes(`${callOf('"PullImage"')} images: call`));
    assert.ok(told.includes(`${callOf('"ExecSync"')} default/web nginx: failed call`));
    assert.ok(told.includes(`${callOf('"unlucky"')} default/unlucky: failed call`));
    assert.ok(told.includes(`${callOf('"StopPodSandbox"')} test/web: call under way`));
  });

  test('what is written while somebody looks comes, and a call that has ended is another kind', async (t) => {
    const root = await rootWith(owner, story.records.slice(0, 12));
    const growing = await serveJournal(owner, root.journalPath);
    const { journal } = openJournal({ path: root.journalPath });
    onCleanup(t, () => journal.close());
    const frames = growing.frames();
    const first = (await frames.next()).value as Frame;
    assert.equal(first.head.count, 12);
    await journal.append(story.records.slice(12));
    let count = 12;
    const changes: number[] = [];
    while (count < story.records.length) {
      const { head } = (await frames.next()).value as Frame;
      count += head.count;
      changes.push(...head.changes.map(([seq]) => seq));
    }
    const open = first.kinds.findIndex((kind) => kindOf(kind) === 'call under way');
    assert.deepEqual(changes, [first.seqs[open]]);
  });
});

test('between records beats come, which are no frames', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const stream = request(new URL('records?through=99999&lanes=0', served.url)).end();
  const [response] = (await once(stream, 'response')) as [IncomingMessage];
  for (let beats = 0; beats < 2; beats += 1) {
    t.mock.timers.tick(BEAT_EVERY_MS);
    const [chunk] = (await once(response, 'data')) as [Buffer];
    assert.deepEqual([...chunk], [...BEAT]);
    assert.deepEqual(createFrameReader()(chunk), []);
  }
  stream.destroy();
});

describe('questions', () => {
  test('a record says what it says, less what clients chose, and what it was in a history', async () => {
    const seq = seqOf(story, 'container.exited', story.nginx);
    const answer = await served.get<RecordAnswer>(`record?seq=${seq}`);
    assert.equal(answer.type, 'container.exited');
    assert.match(answer.object, /^default\/web nginx /);
    assert.match(answer.hash, /^[0-9a-f]{64}$/);
    assert.equal((answer.body as { exitStatus: number }).exitStatus, 137);
    assert.deepEqual([answer.row?.what, answer.row?.style], ['container exited', 'bad']);
  });

  test('why: of a call its end, of a container why it was as it was, in the words of scribe why', async () => {
    const exited = await served.get<WhyAnswer>(`why?seq=${seqOf(story, 'container.exited', story.nginx)}`);
    assert.match(exited.headline, /^Container nginx of pod default\/web .* was ended by SIGKILL/);
    assert.ok(exited.chain.some(({ text }) => text.startsWith('It exited with exit code 137')));
    const exec = story.records.find(({ type, body }) => type === 'call.received' && body.includes('"ExecSync"'));
    const call = await served.get<WhyAnswer>(`why?seq=${exec?.seq}`);
    assert.ok(
      call.chain.some(({ text }) => /^The call was answered: exit code 3/.test(text)),
      JSON.stringify(call),
    );
    assert.doesNotMatch(JSON.stringify(call), /hostname/);
  });

  test('the state then, whole and of one pod', async () => {
    const started = seqOf(story, 'container.started', story.nginx);
    const cells = async (query: string): Promise<string[]> => {
      const { tables } = await served.get<AtAnswer>(`at?${query}`);
      return tables.flatMap(({ rows }) => rows.map((row) => `${row.cells[0]} ${row.cells[2]}`));
    };
    assert.deepEqual(await cells(`seq=${started}`), ['default/web SANDBOX_READY', 'nginx CONTAINER_RUNNING']);
    assert.deepEqual(await cells(`seq=${started - 1}`), ['default/web SANDBOX_READY', 'nginx CONTAINER_CREATED']);
    const last = story.records.length;
    assert.deepEqual(await cells(`seq=${last}&pod=${story.other}`), [
      'test/web SANDBOX_NOTREADY',
      'nginx CONTAINER_EXITED',
    ]);
  });

  test('rows are those of a history, with a call whole by its beginning', async () => {
    const received = story.records.filter(({ type }) => type === 'call.received').map(({ seq }) => seq);
    const rows = await served.get<EntryRow[]>(`entries?seqs=${received.join(',')}`);
    assert.equal(rows.length, received.length);
    assert.deepEqual(
      rows.slice(0, 3).map(({ what, caller }) => `${what} ${caller}`),
      [
        'PullImage kubelet pid 812 uid 0',
        'RunPodSandbox kubelet pid 812 uid 0',
        'CreateContainer kubelet pid 812 uid 0',
      ],
    );
    assert.equal(rows.find(({ what }) => what === 'ExecSync')?.outcome, 'exit 3 (… …)');
    assert.equal(rows.at(-1)?.outcome, 'no answer yet');
  });

  test('what is not there, or no number, is answered with a sentence', async () => {
    for (const path of ['record?seq=99999', 'why?seq=99999', 'at?seq=99999'])
      assert.match((await served.get<ErrorAnswer>(path)).error, /^There is no record 99999/, path);
    for (const path of ['record', 'record?seq=-1', 'entries?seqs=1,x'])
      assert.match((await served.get<ErrorAnswer>(path)).error, /seq is no number/, path);
  });
});

describe('the filter', () => {
  /** What the first answer that is whole says, in order. */
  const chosen = async (words: string, from: Served = served): Promise<number[]> => {
    const response = await fetch(`${from.url}matches?${new URLSearchParams({ words }).toString()}`);
    assert.equal(response.status, 200, words);
    const seqs: number[] = [];
    for await (const line of linesIn(response.body ?? new ReadableStream())) {
      const matches = JSON.parse(line) as Matches;
      seqs.push(...matches.seqs);
      if (matches.isWhole) break;
    }
    return seqs.sort((a, b) => a - b);
  };
  /** Records of `scribe history --events --json` with these options. */
  const inHistory = async (...words: string[]): Promise<number[]> => {
    const { stdout } = await scribe(['history', '--root', dirname(journalPath), '--events', '--json', ...words]);
    return jsonLines<{ seq: number }>(stdout)
      .map(({ seq }) => seq)
      .sort((a, b) => a - b);
  };

  test('chooses what scribe history chooses, by the same words, with or without their dashes', async () => {
    for (const [typed, ...words] of [
      ['--pod default/web', '--pod', 'default/web'],
      ['pod=default/web failed', '--pod', 'default/web', '--failed'],
      ['--container nginx --exec', '--container', 'nginx', '--exec'],
      ['--method runpodsandbox', '--method', 'RunPodSandbox'],
      ['namespace=test', '--namespace', 'test'],
      ['--executable crictl', '--executable', 'crictl'],
      ['code=UNIMPLEMENTED', '--code', 'UNIMPLEMENTED'],
      ['since=5 until=9', '--since', '5', '--until', '9'],
      ['--image registry.test/app:1', '--image', 'registry.test/app:1'],
      ['unlucky', '--text', 'unlucky'],
    ]) {
      const wanted = await inHistory(...words);
      assert.ok(wanted.length > 0 && wanted.length < story.records.length, typed);
      assert.deepEqual(await chosen(typed ?? ''), wanted, typed);
    }
  });

  test('goes on with what is written, and with calls that were under way', async (t) => {
    const root = await rootWith(owner, story.records.slice(0, 12));
    const { url } = await serveJournal(owner, root.journalPath);
    const { journal } = openJournal({ path: root.journalPath });
    onCleanup(t, () => journal.close());
    const { body } = await fetch(`${url}matches?words=method%3DRunPodSandbox`);
    const lines = linesIn(body ?? new ReadableStream());
    const next = async (): Promise<readonly number[]> =>
      (JSON.parse((await lines.next()).value ?? '{}') as Matches).seqs;
    const before = await next();
    await journal.append(story.records.slice(12));
    const found = [...before];
    const wanted = await inHistory('--method', 'RunPodSandbox');
    while (wanted.some((seq) => !found.includes(seq))) found.push(...(await next()));
    assert.ok(before.length > 0 && before.length < wanted.length);
    assert.deepEqual(
      [...new Set(found)].sort((a, b) => a - b),
      wanted,
    );
  });

  test('finds no text that the level hides', async () => {
    assert.deepEqual(await chosen('--text /etc/hostname'), []);
    const whole = await serveJournal(owner, journalPath, 'request-response');
    assert.deepEqual(await chosen("'/etc/hostname'", whole), await inHistory('--text', '/etc/hostname'));
  });

  test('says what is wrong with it as the command line does', async () => {
    for (const [words, sentence] of [
      ['--pods web', /There is no option --pods; did you mean --pod\?/],
      ['--uid me', /--uid me: that is no user's number/],
      ['since=never', /--since never: that is no time/],
      ['--image a --pod b', /--image goes with none of --pod/],
      ['web --text web', /"web" and --text: give one of them/],
      ['code=NOTFOUND', /--code NOTFOUND: there is no such gRPC code; did you mean NOT_FOUND\?/],
      ['method=RunPodSandbx', /--method RunPodSandbx: there is no such method; did you mean RunPodSandbox\?/],
      ['lable=a=b', /There is no option --lable; did you mean --label\? Text that has a "=" goes in quotes\./],
      ['Pod=web', /^There is no option --Pod; did you mean --pod\?/],
      ['NAMESPACE=shop', /^There is no option --NAMESPACE; did you mean --namespace\?/],
      ['failed=yes', /^--failed takes no value\.$/],
      ['--hlep', /^There is no option --hlep; there are --pod, (?!.*--help)/],
      ['--help', /^There is no option --help; there are --pod, /],
    ] as const)
      assert.match(
        (await served.get<ErrorAnswer>(`matches?${new URLSearchParams({ words }).toString()}`)).error,
        sentence,
      );
  });

  test('refuses the beginning of several ids as the command line does', async (t) => {
    const [last] = story.records.slice(-1);
    assert.ok(last !== undefined);
    const twins = ['0', '1'].map((end, index) => ({
      ...last,
      ...{ seq: last.seq + 1 + index, stream: `sandbox/abcd${end.repeat(60)}`, type: 'sandbox.removing', body: '{}' },
    }));
    const { dir, journalPath: path } = await rootWith(t, [...story.records, ...twins]);
    const { url } = await serveJournal(t, path);
    const response = await fetch(`${url}matches?words=pod%3Dabcd`);
    const { error } = (await response.json()) as ErrorAnswer;
    assert.equal(response.ok, false);
    assert.match(error, /^--pod "abcd" could be any of these: sandbox\/abcd.* Give more of the id\.$/);
    const { stderr } = await scribe(['history', '--root', dir, '--pod', 'abcd']);
    assert.ok(stderr.includes(error), stderr);
  });

  test('takes what has a "=" and is in quotes, or is near no option, for text', () => {
    for (const typed of ['"lable=a=b"', 'app=web', 'APP=web', '"Pod=web"'])
      assert.equal(parseFilterWords(typed).filter.text, typed.replaceAll('"', ''));
  });

  test('words are split as a shell does', () => {
    const { filter, things } = parseFilterWords(`pod="default/web" --label 'a b=c' --method=ExecSync "no such" thing`);
    assert.equal(things.pod, 'default/web');
    assert.deepEqual(things.labels, [{ key: 'a b', value: 'c', negated: false }]);
    assert.deepEqual([filter.methods, filter.text], [['ExecSync'], 'no such thing']);
  });
});

test('what is wrong with the command line is said', async () => {
  for (const [words, message] of [
    [['--port', '70000'], /--port 70000: that is no port/],
    [['--level', 'all'], /--level all: there are metadata/],
    [['--root', '/x', 'journal.db'], /JOURNAL and --root: give one of them/],
    [['/nowhere/journal.db'], /There is no journal at \/nowhere\/journal\.db\./],
  ] as const) {
    const { exitStatus, stderr } = await scribe(['ui', ...words]);
    assert.notEqual(exitStatus, 0);
    assert.match(stderr, message);
  }
});

test('a file that is no journal, or is of a newer scribe, and a port that is taken, are told of with what to do', async (t) => {
  const dir = await tempDir(t);
  const [empty, other, newer] = ['empty.db', 'other.db', 'journal.db'].map((name) => join(dir, name)) as [
    string,
    string,
    string,
  ];
  await writeFile(empty, '');
  const database = new Database(other);
  database.exec('CREATE TABLE things (name)');
  database.close();
  await copyFile(journalPath, newer);
  const written = new Database(newer);
  written.exec('INSERT INTO schema SELECT max(version) + 1, name, sha256 FROM schema');
  written.close();
  for (const [words, message] of [
    [
      [empty],
      /empty\.db is no journal: it is no SQLite database\. Copy the journal anew, with scribe journal backup\./,
    ],
    [[other], /is a database, but no journal of scribe\./],
    [[dir], /of a newer scribe; this one knows up to \d+\. Run the newer scribe/],
    [['--port', new URL(served.url).port, journalPath], /Port \d+ of 127\.0\.0\.1 is taken; give another --port/],
  ] as const) {
    const { exitStatus, stderr, stdout } = await scribe(['ui', ...words]);
    assert.deepEqual([exitStatus, stdout], [1, '']);
    assert.match(stderr, message);
  }
});
