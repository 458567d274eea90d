/**
 * Witnesses: a real one (litewitness) cosigns checkpoints of a journal that grows, and refuses one that was rewritten or put
 * back; one with a post-quantum key, of which there is no program, cosigns by the library of others; and one that is down, or
 * lies, holds nothing up. Needs ssh-agent, where litewitness has its key.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { before, describe, test, type TestContext } from 'node:test';
import Database from 'better-sqlite3';
import { addCheckpoint } from '../../src/adapters/witnesses/client.ts';
import { createFindings, reportTo } from '../../src/daemon/findings.ts';
import { startWitnesses } from '../../src/daemon/witnesses.ts';
import { cosignedAtSeconds, cosignedPath, cosignerOf, readCosigned } from '../../src/journal/cosigned.ts';
import { createTree, leafHash, rootOf } from '../../src/journal/merkle.ts';
import { openJournal } from '../../src/journal/open.ts';
import { openTree } from '../../src/journal/open-tree.ts';
import { scribe } from '../cli/support.ts';
import { recordAt, recordsFrom } from '../journal/support.ts';
import { cleanupAfterAll, onCleanup } from '../support/cleanup.ts';
import { freePort } from '../support/free-port.ts';
import { goProgram, goTool } from '../support/go-program.ts';
import { eventually } from '../support/pods.ts';
import { run, runOk, startProcess } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const owner = cleanupAfterAll();
const NAME = 'real';

/** The key of a witness that nobody runs. */
const strangeKey = (): string => {
  const [name, bytes] = ['witness.test/one', Buffer.concat([Buffer.from([4]), Buffer.alloc(32, 1)])];
  const id = createHash('sha256').update(`${name}\n`).update(bytes).digest('hex').slice(0, 8);
  return `${name}+${id}+${bytes.toString('base64')}`;
};

/** A journal, or more of one, with the checkpoint that closing leaves beside it. */
const write = async (dir: string, records: ReturnType<typeof recordsFrom>): Promise<string> => {
  const path = join(dir, 'journal.db');
  const { journal } = openJournal({ path });
  await journal.append(records);
  await journal.close();
  return path;
};

let dir = '';
let journalPath = '';
let url = '';
let witnessKey = '';

const said: string[] = [];
const asking = (path: string) => {
  const say = (_fields: object, message: string): void => void said.push(message);
  const witnesses = [{ name: NAME, url, key: witnessKey }];
  const report = (sentence: string): void => void said.push(sentence);
  return startWitnesses({ journalPath: path, witnesses, everyMs: 50, report, log: { info: say, warn: say } });
};

const cosignedSize = (path: string, size: number): Promise<true> =>
  eventually(`${size} records are cosigned; said: ${said.join(' | ')}`, async () => {
    const note = await readCosigned(path, NAME);
    return note?.size === size ? true : undefined;
  });

describe('witnesses', () => {
  before(async () => {
    dir = await tempDir(owner);
    journalPath = await write(dir, recordsFrom(1, 300));
    const tree = openTree(journalPath);
    const { origin } = tree;
    const vkey = tree.vkey();
    tree.close();

    const [agent, key, db] = ['agent.sock', 'witness', 'witness.db'].map((name) => join(dir, name)) as [
      string,
      string,
      string,
    ];
    await startProcess(owner, ['ssh-agent', '-D', '-a', agent]);
    await runOk(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', key]);
    await eventually('the agent listens', async () => existsSync(agent));
    await runOk(['ssh-add', '-q', key], { env: { ...process.env, SSH_AUTH_SOCK: agent } });
    const [, fingerprint = ''] = (await runOk(['ssh-keygen', '-lf', key])).split(' ');
    const port = await freePort();
    const argv = ['-name', 'witness.test/one', '-db', db, '-ssh-agent', agent, '-key', fingerprint];
    const witness = await startProcess(owner, [
      await goTool('tlog-judges', 'litewitness'),
      ...argv,
      '-listen',
      `127.0.0.1:${port}`,
    ]);
    [, witnessKey = ''] = await witness.until(/vkey=(\S+)/);
    witnessKey = witnessKey.replaceAll('"', '');
    url = `http://127.0.0.1:${port}`;
    await eventually('the witness listens', async () =>
      fetch(url).then(
        () => true,
        () => false,
      ),
    );
    // As witnessctl adds a log.
    const known = new Database(db);
    known.prepare('INSERT INTO log VALUES (?, 0, ?)').run(origin, createHash('sha256').digest('base64'));
    known.prepare('INSERT INTO key VALUES (?, ?)').run(origin, vkey);
    known.close();
    writeFileSync(join(dir, 'vkey'), `${vkey}\n`);
  });

  test('a real one cosigns two checkpoints in a row, by a consistency proof; its cosignature goes along with proofs', async () => {
    const first = asking(journalPath);
    await cosignedSize(journalPath, 300);
    await first.close();
    await write(dir, recordsFrom(301, 411));
    const second = asking(journalPath);
    await cosignedSize(journalPath, 711);
    await second.close();
    const note = await readCosigned(journalPath, NAME);
    const cosigner = cosignerOf(witnessKey);
    assert.ok(note !== null && cosigner !== null);
    const atSeconds = cosignedAtSeconds(cosigner, note) ?? 0;
    assert.ok(Math.abs(atSeconds - Date.now() / 1000) < 60);
    assert.equal(cosignedAtSeconds(cosigner, { ...note, size: 710 }), null);

    const proof = await scribe(['prove', '--root', dir, '5']);
    assert.match(proof.stdout, /^— witness\.test\/one /m);
    writeFileSync(join(dir, 'proof'), proof.stdout);
    const tree = openTree(journalPath);
    const [hash = new Uint8Array()] = tree.leaves(4, 1);
    tree.close();
    const judge = [await goProgram('tlog-judges'), 'proof', join(dir, 'vkey'), join(dir, 'proof')];
    assert.equal((await run([...judge, Buffer.from(hash).toString('hex')])).stdout.trim(), 'accepted');

    const config = join(dir, 'config.toml');
    writeFileSync(
      config,
      `[journal.witnesses.${NAME}]\nurl = "${url}"\nkey = "${witnessKey}"\n
       [journal.witnesses.other]\nurl = "${url}"\nkey = "${witnessKey}"\n`,
    );
    const info = await scribe(['journal', 'info', '--root', dir, '--config', config]);
    assert.match(info.stdout, /^witness +real: has cosigned 711 records, /m);
    assert.match(info.stdout, /^witness +other: has cosigned nothing yet$/m);
    const doctor = await scribe(['doctor', '--root', dir, '--config', config, '--json']);
    assert.match(doctor.stdout, /"check":"witnesses","status":"ok","detail":"real has cosigned 711 records of 711"/);
    assert.match(doctor.stdout, /"check":"witnesses","status":"warning","detail":"other has cosigned nothing/);
  });

  test('a rewritten journal, and one that was put back, are refused and reported', async () => {
    for (const [records, words] of [
      [
        [...recordsFrom(1, 699), ...Array.from({ length: 300 }, (_, n) => recordAt(n + 700, { body: '{"forged":1}' }))],
        /has cosigned other records/,
      ],
      [recordsFrom(1, 500), /has cosigned 711 records of this journal, which has 500: the journal was put back or cut/],
    ] as const) {
      const forged = await tempDir(owner);
      copyFileSync(`${journalPath}.key`, join(forged, 'journal.db.key'));
      const path = await write(forged, [...records]);
      said.length = 0;
      const asked = asking(path);
      await eventually(`it is reported: ${said.join(' | ')}`, async () =>
        said.some((sentence) => words.test(sentence)),
      );
      await asked.close();
      assert.equal(existsSync(cosignedPath(path, NAME)), false);
    }
  });

  test('one that is down is told of once, and keeps nobody from closing', async () => {
    const port = await freePort();
    said.length = 0;
    const say = (fields: object, message: string): void => void said.push(message, JSON.stringify(fields));
    const witnesses = [{ name: 'down', url: `http://127.0.0.1:${port}`, key: witnessKey }];
    const asked = startWitnesses({
      journalPath,
      witnesses,
      everyMs: 50,
      report: () => {},
      log: { info: say, warn: say },
    });
    await eventually('it is told of', async () => said.length > 0);
    const startedMs = performance.now();
    await asked.close();
    assert.ok(performance.now() - startedMs < 1000);
    const [message, fields, ...more] = said;
    assert.deepEqual([message, more], ['a witness has not cosigned; it is tried again', []]);
    assert.match(fields ?? '', new RegExp(`127\\.0\\.0\\.1:${port} cannot be reached: connect ECONNREFUSED`));
  });
});

/** Answers each request with what comes of its checkpoint; resolves with its URL. */
const startAnswering = async (
  scope: TestContext,
  answer: (checkpoint: string, response: ServerResponse) => Promise<unknown>,
): Promise<string> => {
  const server = createServer((request, response) => {
    // A witness that goes away in the middle of it is none that is told of.
    void text(request).then((body) => answer(body.slice(body.indexOf('\n\n') + 2), response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onCleanup(scope, () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

test('one with a post-quantum key (ML-DSA-44) cosigns, and no time that nobody can show is taken from it', async (t) => {
  const path = await write(await tempDir(t), recordsFrom(1, 300));
  const shown = join(path, '..', 'shown');
  let seconds = '99999999999999999';
  const cosign = async (checkpoint: string): Promise<readonly [vkey: string, line: string]> => {
    writeFileSync(shown, checkpoint);
    const said = await runOk([await goProgram('tlog-judges'), 'cosign', 'witness.test/pq', seconds, shown]);
    const [vkey = '', line = ''] = said.split('\n');
    return [vkey, `${line}\n`];
  };
  const [key] = await cosign(readFileSync(`${path}.checkpoint`, 'utf8'));
  const cosigner = cosignerOf(key);
  assert.ok(cosigner !== null);
  const pqUrl = await startAnswering(t, async (checkpoint, response) => response.end((await cosign(checkpoint))[1]));
  const findings = createFindings();
  const asked = startWitnesses({
    journalPath: path,
    witnesses: [{ name: NAME, url: pqUrl, key }],
    everyMs: 50,
    report: reportTo(findings, { warn: () => {} }),
    log: { info: () => {}, warn: () => {} },
  });
  onCleanup(t, () => asked.close());
  await eventually('it is reported', async () => findings.list().some((one) => one.includes('is no cosignature')));
  seconds = '1795740000';
  const note = await eventually('it has cosigned', async () => (await readCosigned(path, NAME)) ?? undefined);
  assert.equal(cosignedAtSeconds(cosigner, note), 1_795_740_000);
  for (const other of [
    { ...note, size: 299 },
    { ...note, origin: `${note.origin}x` },
    { ...note, root: note.root.toReversed() },
  ])
    assert.equal(cosignedAtSeconds(cosigner, other), null);
});

test('of one that answers without an end no more is read than a note takes', async (t) => {
  const path = await write(await tempDir(t), recordsFrom(1, 3));
  let written = 0;
  const ended = Promise.withResolvers<void>();
  const endlessUrl = await startAnswering(t, async (_checkpoint, response) => {
    response.on('error', () => {}).once('close', ended.resolve);
    const chunk = 'x'.repeat(65_536);
    while (!response.destroyed) {
      written += chunk.length;
      if (!response.write(chunk)) await Promise.race([once(response, 'drain'), ended.promise]);
    }
  });
  const answer = await addCheckpoint(
    endlessUrl,
    { oldSize: 0, proof: [], checkpoint: readFileSync(`${path}.checkpoint`, 'utf8') },
    new AbortController().signal,
  );
  assert.equal(answer.kind === 'cosigned' && answer.lines.length, 16_384);
  await ended.promise;
  assert.ok(written < 16 * 1024 * 1024, `it could write ${written} bytes`);
});

/** Cosigned by nobody that is known here, in the form that cosignatures have. */
const NO_COSIGNATURE = `— witness.test/one ${Buffer.alloc(76, 1).toString('base64')}\n`;

for (const [how, status, answerTo, words] of [
  [
    'says a size that cannot be',
    409,
    (size: number) => String(size + 1),
    /which has 711: the journal was put back or cut/,
  ],
  ['gives no cosignature', 200, () => NO_COSIGNATURE, /answers with what is no cosignature by its key/],
] as const) {
  test(`one that ${how} is one finding however the journal grows, with how often`, async (t) => {
    const path = await write(await tempDir(t), recordsFrom(1, 300));
    const sizes: number[] = [];
    const lyingUrl = await startAnswering(t, async (checkpoint, response) => {
      const size = Number(checkpoint.split('\n')[1]);
      sizes.push(size);
      response.writeHead(status).end(answerTo(size));
    });
    const findings = createFindings();
    const logged: string[] = [];
    const asked = startWitnesses({
      journalPath: path,
      witnesses: [{ name: NAME, url: lyingUrl, key: strangeKey() }],
      everyMs: 50,
      report: reportTo(findings, { warn: (message) => void logged.push(message) }),
      log: { info: () => {}, warn: () => {} },
    });
    onCleanup(t, () => asked.close());
    await eventually('it was asked', async () => findings.list().length > 0);
    await write(join(path, '..'), recordsFrom(301, 411));
    const [finding = '', ...more] = await eventually('it was asked of the grown journal', async () => {
      const list = findings.list();
      return sizes.at(-1) === 711 && list.some((sentence) => sentence.includes('2 times')) && list;
    });
    assert.deepEqual([more, logged.length], [[], 1]);
    assert.match(finding, words);
    assert.match(finding, / So 2 times since 20\d\d-\S+Z, the last time at 20\d\d-\S+Z\.$/);
  });
}

test('a consistency proof leads from the old root to the new one, for every pair of sizes up to 70', () => {
  const leaves = Array.from({ length: 70 }, (_, n) => leafHash(createHash('sha256').update(String(n)).digest()));
  const tree = createTree((level, n, width) => {
    assert.equal(level, 0);
    return leaves.slice(n * 256, n * 256 + width);
  });
  for (let size = 1; size <= leaves.length; size++)
    for (let old = 1; old <= size; old++) {
      const proof = tree.consistencyProof(old, size);
      assert.deepEqual(verifyConsistency(old, size, proof, tree.root(old)), [tree.root(old), tree.root(size)].map(hex));
    }
});

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** RFC 9162, 2.1.4.2: the two roots that a proof leads to. */
const verifyConsistency = (old: number, size: number, proof: readonly Uint8Array[], oldRoot: Uint8Array): string[] => {
  if (old === size) return [oldRoot, oldRoot].map(hex);
  const path = (old & (old - 1)) === 0 ? [oldRoot, ...proof] : [...proof];
  let [fn, sn] = [old - 1, size - 1];
  while (fn & 1) [fn, sn] = [fn >> 1, sn >> 1];
  let [fr, sr] = [path[0] ?? oldRoot, path[0] ?? oldRoot];
  for (const next of path.slice(1)) {
    if ((fn & 1) === 1 || fn === sn) {
      [fr, sr] = [rootOf([next, fr]), rootOf([next, sr])];
      while ((fn & 1) === 0 && fn !== 0) [fn, sn] = [fn >> 1, sn >> 1];
    } else sr = rootOf([sr, next]);
    [fn, sn] = [fn >> 1, sn >> 1];
  }
  return [fr, sr].map(hex);
};
