/**
 * Image references: the grammar of distribution's `reference` package, with the familiar names of Docker Hub. Deciders
 * normalise what a request names with it, the images adapter finds the registry by it. Pure. References come from
 * anyone who may write a pod, so the text is bounded first and every pattern below reads it in one pass.
 */
import { refused, type Result, succeeded } from '../model/result.ts';

/** A reference with nothing left to guess: host and path are complete, and at least one of tag and digest is there. */
export interface ImageReference {
  /** "docker.io", "registry.example:5000", "[::1]:5000". */
  readonly host: string;
  /** Path of the repository at that host: "library/busybox". */
  readonly path: string;
  readonly tag: string | null;
  /** "sha256:…"; where there is one it alone says which image is meant, whatever the tag. */
  readonly digest: string | null;
}

/** Or one sentence that names the reference and what is wrong with it. */
export type ParsedReference = Result<ImageReference, string>;

const DEFAULT_HOST = 'docker.io';
const DEFAULT_TAG = 'latest';
/** Docker Hub's older name, still written by some. */
const LEGACY_DEFAULT_HOST = 'index.docker.io';
const OFFICIAL_PREFIX = 'library/';
const LOCALHOST = 'localhost';

const REFERENCE_LENGTH_MAX = 512;
const NAME_LENGTH_MAX = 255;
const PORT_MAX = 65_535;

const HEX_ID = /^[0-9a-f]{64}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const TAG = /^\w[\w.-]{0,127}$/;
const PATH_COMPONENT = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*$/;
const HOST_LABEL = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,252}[A-Za-z0-9])?$/;
const BRACKETED_IPV6 = /^\[[0-9A-Fa-f:]{2,39}\]$/;
const PORT = /^[0-9]{1,5}$/;

/** True for a digest as images are named by: "sha256:" and 64 lower-case hex digits. */
export const isDigest = (text: string): boolean => DIGEST.test(text);

const hasHost = (firstComponent: string): boolean =>
  firstComponent.includes('.') ||
  firstComponent.includes(':') ||
  firstComponent === LOCALHOST ||
  firstComponent !== firstComponent.toLowerCase();

const isHost = (host: string): boolean => {
  const bracketEnd = host.lastIndexOf(']');
  const colon = host.indexOf(':', bracketEnd + 1);
  const name = colon < 0 ? host : host.slice(0, colon);
  const port = colon < 0 ? null : host.slice(colon + 1);
  if (port !== null && (!PORT.test(port) || Number(port) > PORT_MAX)) return false;
  return BRACKETED_IPV6.test(name) || name.split('.').every((label) => HOST_LABEL.test(label));
};

const splitHost = (name: string): { readonly host: string; readonly path: string } => {
  const slash = name.indexOf('/');
  const first = slash < 0 ? '' : name.slice(0, slash);
  const explicit = slash >= 0 && hasHost(first);
  const host = explicit && first !== LEGACY_DEFAULT_HOST ? first : DEFAULT_HOST;
  const path = explicit ? name.slice(slash + 1) : name;
  return { host, path: host === DEFAULT_HOST && !path.includes('/') ? `${OFFICIAL_PREFIX}${path}` : path };
};

/** The name, and the tag after its last colon; a colon before a slash belongs to a port. */
const splitTag = (text: string): { readonly name: string; readonly tag: string | null } => {
  const colon = text.lastIndexOf(':');
  if (colon < 0 || text.indexOf('/', colon) >= 0) return { name: text, tag: null };
  return { name: text.slice(0, colon), tag: text.slice(colon + 1) };
};

/** Control characters of hostile text stay out of messages and logs. */
const shown = (text: string): string => JSON.stringify(text.length > 120 ? `${text.slice(0, 120)}…` : text);

/**
 * Parses and normalises a reference: "busybox" is docker.io/library/busybox:latest. Tag and digest are both kept when
 * both are given. Never throws; the work is linear in the text, of which at most 512 characters are taken.
 */
export const parseImageReference = (text: string): ParsedReference => {
  const problem = (what: string): ParsedReference => refused(`The image reference ${shown(text)} ${what}.`);
  if (text === '') return refused('The image reference is empty.');
  if (text.length > REFERENCE_LENGTH_MAX) return problem(`is longer than ${REFERENCE_LENGTH_MAX} characters`);
  if (HEX_ID.test(text)) return problem('is an image id, not a name: give the name the registry knows the image by');

  const at = text.indexOf('@');
  const digest = at < 0 ? null : text.slice(at + 1);
  if (digest !== null && !isDigest(digest)) return problem('has a digest that is not "sha256:" and 64 hex digits');

  const { name, tag } = splitTag(at < 0 ? text : text.slice(0, at));
  if (tag !== null && !TAG.test(tag)) return problem('has a malformed tag');

  const { host, path } = splitHost(name);
  if (!isHost(host)) return problem('has a malformed registry host');
  if (path !== path.toLowerCase()) return problem('has upper-case letters in its repository name');
  if (!path.split('/').every((component) => PATH_COMPONENT.test(component))) {
    return problem('has a malformed repository name');
  }
  if (host.length + 1 + path.length > NAME_LENGTH_MAX) {
    return problem(`has a name longer than ${NAME_LENGTH_MAX} characters`);
  }
  return succeeded({ host, path, tag: tag ?? (digest === null ? DEFAULT_TAG : null), digest });
};

/** host/path, without tag or digest. */
export const repositoryOf = (reference: ImageReference): string => `${reference.host}/${reference.path}`;

/** The whole reference in its normal form; parsing that again gives the same reference. */
export const formatImageReference = (reference: ImageReference): string => {
  const tag = reference.tag === null ? '' : `:${reference.tag}`;
  const digest = reference.digest === null ? '' : `@${reference.digest}`;
  return `${repositoryOf(reference)}${tag}${digest}`;
};

/** host/path:tag, the name an image gets by a pull; null for a reference by digest, which names no tag's content. */
export const repoTagOf = (reference: ImageReference): string | null =>
  reference.tag === null || reference.digest !== null ? null : `${repositoryOf(reference)}:${reference.tag}`;

/** host/path@digest. */
export const repoDigestOf = (reference: ImageReference, digest: string): string =>
  `${repositoryOf(reference)}@${digest}`;
