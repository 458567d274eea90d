/**
 * What a registry's refusals mean in the words of the catalogue, and what of its own words may be repeated. Registries
 * are strangers: their texts are cut short and stripped of everything that could forge a log.
 */
import { STATUS_CODES } from 'node:http';
import * as z from 'zod/mini';
import { readAs } from '../../../platform/foreign-json.ts';
import { retryAfterMsIn } from '../../../platform/rpc/retry.ts';
import { type HttpResponse, RequestError, readWhole, shownUrl } from './http.ts';

const ERROR_BYTES_MAX = 64 * 1024;
const ERROR_TEXT_MAX = 200;

/** What servers of Go and nginx answer, as text, to a request in plain http at a port for https. */
const WANTS_HTTPS = /HTTP request .{0,20}to (?:an )?HTTPS/i;

const wordSchema = z.catch(z.optional(z.string().check(z.maxLength(ERROR_BYTES_MAX))), undefined);
const errorSchema = z.object({ code: wordSchema, message: wordSchema });
/** Only the first is told. */
const errorsSchema = z.object({ errors: z.tuple([errorSchema], z.unknown()) });

/** A header's value, what follows its scheme, and the password in that. */
const secretsIn = (value: string): readonly string[] => {
  const credentials = value.replace(/^\S+\s+/, '');
  const plain = Buffer.from(credentials, 'base64').toString();
  const password = plain.includes(':') ? plain.slice(plain.indexOf(':') + 1) : '';
  return [value, credentials, password].filter((secret) => secret !== '');
};

/** The registry's own words (distribution-spec, "Error Codes"), as far as they can be shown. */
const explanationOf = async (response: HttpResponse, url: URL): Promise<string> => {
  try {
    const body = (await readWhole(response, ERROR_BYTES_MAX, 'The error')).toString('utf8');
    if (url.protocol === 'http:' && WANTS_HTTPS.test(body)) {
      return ": it speaks https, so write https:// in the registry's hosts.toml";
    }
    const [first] = readAs(errorsSchema, body)?.errors ?? [];
    const words = [first?.code, first?.message].filter((word) => word !== undefined).join(': ');
    if (response.confided.flatMap(secretsIn).some((secret) => words.includes(secret)))
      return ' (its words are left out: they quote the credentials that it was given)';
    return words === '' ? '' : ` (${words.replace(/[^\x20-\x7e]+/g, ' ').slice(0, ERROR_TEXT_MAX)})`;
  } catch {
    return '';
  }
};

/** Statuses that may be others when the server is asked again. */
export const isRetryable = (status: number): boolean => status === 429 || status === 408 || status >= 500;

/** "429 Too Many Requests" */
export const statusText = (status: number): string => [status, STATUS_CODES[status] ?? []].flat().join(' ');

/** How long a server asks to be left alone, for messages. */
export const waitText = (retryAfterMs: number): string =>
  retryAfterMs === 0 ? '' : `, and asks to be left alone for ${Math.ceil(retryAfterMs / 1000)} s`;

/** A response with a status that is no success, read and discarded. */
export const failureOf = async (response: HttpResponse, url: URL): Promise<RequestError> => {
  const { status } = response;
  const retryAfterMs = retryAfterMsIn(response.header('retry-after'));
  const explanation = await explanationOf(response, url);
  const what = `${shownUrl(url)} answered ${statusText(status)}${explanation}${waitText(retryAfterMs)}`;
  if (status === 401 || status === 403) return new RequestError('RegistryDenied', what, { retryable: false });
  if (status === 404) return new RequestError('ImageUnknownToRegistry', what, { retryable: false });
  return new RequestError('RegistryFailed', what, { retryable: isRetryable(status), retryAfterMs });
};

/** Content that is not what its digest says. */
export const wrongDigest = (url: URL, expected: string, actual: string): RequestError =>
  new RequestError('ImageInvalid', `${shownUrl(url)} sent content with digest ${actual} for ${expected}`, {
    retryable: false,
  });
