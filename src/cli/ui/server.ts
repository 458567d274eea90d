/**
 * The page's server: on loopback, behind the guard, answers by GET only. Hands out the page's files, the stream of
 * frames, and answers to questions; decides nothing about records itself.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { errorCodeOf } from '../../platform/error-code.ts';
import { messageOf } from '../../domain/model/errors.ts';
import { CliError, failure } from '../command.ts';
import { withRemedy } from '../damage.ts';
import { assetAt } from './assets.ts';
import type { Matches } from '../../ui/answers.ts';
import { BEAT, BEAT_EVERY_MS } from '../../ui/frames.ts';
import type { Feed } from './feed.ts';
import { BEGINNING, type Place } from './frame-log.ts';
import { type Chosen, parseFilterWords } from './filter-words.ts';
import { admit, SECURITY_HEADERS } from './guard.ts';
import type { Questions } from './questions.ts';
import { shownText } from './shown-text.ts';

export interface ServerParts {
  readonly token: string;
  /** 0: one that is free. */
  readonly port: number;
  readonly feed: Feed;
  readonly questions: Questions;
  readonly matches: (chosen: Chosen, signal: AbortSignal) => AsyncGenerator<Matches>;
  readonly about: object;
}

export interface UiServer {
  readonly url: string;
  readonly close: () => Promise<void>;
}

/** So long whoever reads on may take for what is said at the end. */
const LAST_WORDS_MS = 500;
const SEQ = /^[1-9]\d{0,14}$/;
const SEQS_MAX = 200;
const COUNT = /^\d{1,15}$/;

const seqOf = (text: string | null): number => {
  if (text === null || !SEQ.test(text)) throw new CliError(2, 'seq is no number of a record.');
  return Number(text);
};

const placeOf = (query: URLSearchParams): Place => {
  const [through, lanes] = [query.get('through'), query.get('lanes')];
  if (through === null && lanes === null) return BEGINNING;
  if (!COUNT.test(through ?? '') || !COUNT.test(lanes ?? ''))
    throw new CliError(2, 'through and lanes are not how far a page has come.');
  return { throughSeq: Number(through), lanes: Number(lanes) };
};

const answerTo = (path: string, query: URLSearchParams, { questions, about }: ServerParts): object | null => {
  switch (path) {
    case '/about':
      return about;
    case '/record':
      return questions.record(seqOf(query.get('seq')));
    case '/why':
      return questions.why(seqOf(query.get('seq')));
    case '/at':
      return questions.at(seqOf(query.get('seq')), query.get('pod'));
    case '/entries': {
      const seqs = (query.get('seqs') ?? '').split(',').filter((text) => text !== '');
      return questions.entries(seqs.slice(0, SEQS_MAX).map(seqOf));
    }
    default:
      return null;
  }
};

const send = (response: ServerResponse, status: number, type: string, content: Buffer | string): void => {
  response.writeHead(status, { ...SECURITY_HEADERS, 'Content-Type': type });
  response.end(content);
};

/** Under an address without its last slash, as it may have been copied, the page would look for its files beside the token. */
const toPage = (response: ServerResponse, { token }: ServerParts): void => {
  response.setHeader('Location', `/${token}/`);
  send(response, 308, 'text/plain', '');
};

const sendJson = (response: ServerResponse, status: number, value: object): void =>
  send(response, status, 'application/json', JSON.stringify(value));

/** Sends pieces as they come, until they end or nobody listens any more. */
const sendAll = async (
  response: ServerResponse,
  type: string,
  pieces: AsyncIterable<Uint8Array | string>,
): Promise<void> => {
  response.writeHead(200, { ...SECURITY_HEADERS, 'Content-Type': type });
  // Before there is anything to send: who asks again after the connection broke learns by them that it is there again.
  response.flushHeaders();
  const gone = once(response, 'close');
  for await (const piece of pieces) {
    if (response.destroyed) return;
    if (!response.write(piece)) await Promise.race([once(response, 'drain'), gone]);
  }
  response.end();
};

/** Between frames, beats: neither side of a connection that is half open learns of that unless something is sent. */
const sendFrames = async (response: ServerResponse, frames: AsyncIterable<Uint8Array>): Promise<void> => {
  const beats = setInterval(() => {
    if (!response.writableEnded && !response.writableNeedDrain) response.write(BEAT);
  }, BEAT_EVERY_MS);
  response.once('close', () => clearInterval(beats));
  // Nothing is asked over it when the stream has ended, and that ends with the server.
  response.setHeader('Connection', 'close');
  await sendAll(response, 'application/octet-stream', frames);
};

async function* linesOf(values: AsyncIterable<object>): AsyncGenerator<string> {
  for await (const value of values) yield `${JSON.stringify(value)}\n`;
}

/** Those after the first, which is here already. Whoever goes away before that is sent ends the rest, too. */
async function* goingOn<T>(first: T, rest: AsyncGenerator<T>): AsyncGenerator<T> {
  try {
    yield first;
    yield* rest;
  } finally {
    await rest.return(undefined);
  }
}

const sendMatches = async (response: ServerResponse, words: string, { matches }: ServerParts): Promise<void> => {
  const chosen = parseFilterWords(words);
  const left = new AbortController();
  response.once('close', () => left.abort());
  const found = matches(chosen, left.signal);
  // What is asked wrongly is refused before the first answer, and the refusal is an answer of its own.
  const first = await found.next();
  if (first.done === true) return void response.destroy();
  await sendAll(response, 'application/x-ndjson', linesOf(goingOn(first.value, found)));
};

const respond = async (request: IncomingMessage, response: ServerResponse, parts: ServerParts): Promise<void> => {
  const { method, url: target } = request;
  const { host, origin } = request.headers;
  const admission = admit({ method, host, origin, target }, parts.token);
  if (admission.kind === 'refused') {
    if (admission.status === 405) response.setHeader('Allow', 'GET');
    // A scheme that no browser has a dialog for.
    if (admission.status === 401) response.setHeader('WWW-Authenticate', 'Token');
    return send(response, admission.status, 'text/plain; charset=utf-8', `${admission.words}\n`);
  }
  const { path, query } = admission;
  if (path === '') return toPage(response, parts);
  if (path === '/records') return sendFrames(response, parts.feed.frames(placeOf(query)));
  if (path === '/matches') return sendMatches(response, query.get('words') ?? '', parts);
  const answer = answerTo(path, query, parts);
  if (answer !== null) return sendJson(response, 200, answer);
  const asset = await assetAt(path);
  if (asset === null) return send(response, 404, 'text/plain', '');
  send(response, 200, asset.type, asset.content);
};

/** A sentence for what was asked wrongly or is not there; what nobody expected is not told to browsers. */
const fail = (response: ServerResponse, error: unknown): void => {
  if (response.headersSent) response.destroy();
  else if (error instanceof CliError)
    sendJson(response, error.exitStatus === 2 ? 400 : 404, { error: shownText(error.message) });
  else sendJson(response, 500, { error: `scribe could not answer that: ${withRemedy(messageOf(error))}` });
};

const listening = async (server: Server, port: number): Promise<void> => {
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (error) {
    if (errorCodeOf(error) !== 'EADDRINUSE') throw error;
    throw failure(`Port ${port} of 127.0.0.1 is taken; give another --port, or none for one that is free.`, error);
  }
};

export const startServer = async (parts: ServerParts): Promise<UiServer> => {
  const server = createServer((request, response) => {
    respond(request, response, parts).catch((error: unknown) => fail(response, error));
  });
  await listening(server, parts.port);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/${parts.token}/`,
    close: async () => {
      const late = setTimeout(() => server.closeAllConnections(), LAST_WORDS_MS);
      await new Promise((resolve) => server.close(resolve));
      clearTimeout(late);
    },
  };
};
