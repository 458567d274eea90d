/** What is asked of the page's server as people do: an address that is not whole, a search that nobody waits for, and one for what is no record. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { before, test } from 'node:test';
import type { Matches } from '../../../src/ui/answers.ts';
import { linesIn } from '../../../src/ui/lines.ts';
import { cleanupAfterAll } from '../../support/cleanup.ts';
import { tell } from '../story.ts';
import { rootWith } from '../support.ts';
import { serveJournal } from './served.ts';

const owner = cleanupAfterAll();
let journalPath: string;
before(async () => {
  ({ journalPath } = await rootWith(owner, (await tell()).records));
});

test('a search ends with whoever asked for it, also before it has found anything', async (t) => {
  const ended = Promise.withResolvers<null>();
  const begun = Promise.withResolvers<null>();
  async function* matches(_: unknown, signal: AbortSignal): AsyncGenerator<Matches> {
    try {
      begun.resolve(null);
      await once(signal, 'abort');
      yield { seqs: [], throughSeq: 1, isWhole: true, note: '' };
    } finally {
      ended.resolve(null);
    }
  }
  const { url } = await serveJournal(t, journalPath, 'metadata', matches);
  const asking = request(new URL('matches?words=failed', url)).on('error', () => {});
  asking.end();
  await begun.promise;
  asking.destroy();
  assert.equal(await ended.promise, null);
});

test('of calls that only read it is said where they are shown', async (t) => {
  const { url } = await serveJournal(t, journalPath);
  const { body } = await fetch(`${url}matches?words=${encodeURIComponent('method=ListContainers')}`);
  const { value: line = '' } = await linesIn(body as AsyncIterable<Uint8Array>).next();
  const { seqs, note } = JSON.parse(line) as Matches;
  assert.deepEqual(
    { seqs, note },
    { seqs: [], note: 'Calls that only read are no records, and so not on this page: scribe history shows them.' },
  );
});

test('an address without its last slash leads to the page', async (t) => {
  const { url } = await serveJournal(t, journalPath);
  const { status, headers } = await fetch(url.slice(0, -1), { redirect: 'manual' });
  assert.deepEqual([status, headers.get('location')], [308, new URL(url).pathname]);
  assert.equal((await fetch(url.slice(0, -2))).status, 401);
});
