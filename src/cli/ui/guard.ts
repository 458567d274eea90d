/**
 * Who may ask the page's server: whoever knows the token in the path, by GET, under a name of this machine, so that no
 * other page in a browser can reach it, by rebinding names or otherwise. And what every answer tells browsers. Pure.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

const TOKEN_BYTES = 24;

export const newToken = (): string => randomBytes(TOKEN_BYTES).toString('base64url');

/** Nothing comes from elsewhere, nothing goes elsewhere, and nobody keeps or frames it. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cache-Control': 'no-store',
};

/** Any port: the page may come through a tunnel. */
const OWN_HOST = /^(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?$/;

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest();

/** In a time that tells nothing of where they differ. */
const isSame = (one: string, other: string): boolean => timingSafeEqual(digestOf(one), digestOf(other));

export type Admission =
  /** `path` is what follows the token, with its slash; '' where none follows. */
  | { readonly kind: 'admitted'; readonly path: string; readonly query: URLSearchParams }
  | { readonly kind: 'refused'; readonly status: 401 | 403 | 405; readonly words: string };

export interface Asked {
  readonly method: string | undefined;
  readonly host: string | undefined;
  /** Browsers send it with what another page asks for. */
  readonly origin?: string | undefined;
  /** As in the request's first line. */
  readonly target: string | undefined;
}

const refused = (status: 401 | 403 | 405, words: string): Admission => ({ kind: 'refused', status, words });

export const admit = ({ method, host, origin, target = '/' }: Asked, token: string): Admission => {
  if (host === undefined || !OWN_HOST.test(host))
    return refused(403, 'scribe ui answers under 127.0.0.1 and localhost alone: open the address that it printed.');
  if (origin !== undefined && origin !== `http://${host}`) return refused(403, 'scribe ui answers its own page alone.');
  const url = URL.parse(target, 'http://127.0.0.1');
  const [, given = ''] = url?.pathname.split('/') ?? [];
  // Who does not know the token learns nothing of what there is.
  if (url === null || !isSame(given, token))
    return refused(401, 'Open the address that scribe ui printed, whole: each start has another.');
  if (method !== 'GET') return refused(405, 'scribe ui answers GET alone.');
  return { kind: 'admitted', path: url.pathname.slice(1 + given.length), query: url.searchParams };
};
