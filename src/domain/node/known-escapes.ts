/**
 * Versions of OCI runtimes that containers are known to escape from. A version says what its project released: a
 * distribution may have mended an older one, so that this is a warning, never a reason to refuse anything.
 */

/** What is open in a version, and the releases that have it closed. */
export interface KnownEscapes {
  readonly cves: readonly string[];
  readonly fixedIn: string;
}

interface Version {
  readonly parts: readonly [number, number, number];
  /** Of a release candidate; Infinity for a release. */
  readonly candidate: number;
}

const parseVersion = (text: string): Version | null => {
  const [whole, major, minor, patch, candidate] = /^(\d+)\.(\d+)\.(\d+)(?:-rc\.?(\d+))?/.exec(text) ?? [];
  if (whole === undefined) return null;
  return {
    parts: [Number(major), Number(minor), Number(patch)],
    candidate: candidate === undefined ? Number.POSITIVE_INFINITY : Number(candidate),
  };
};

const compare = (a: Version, b: Version): number => {
  for (const index of [0, 1, 2] as const) {
    const difference = a.parts[index] - b.parts[index];
    if (difference !== 0) return difference;
  }
  return a.candidate === b.candidate ? 0 : a.candidate - b.candidate;
};

/** Escapes from runc, with the first fixed release of each line that got one; a line without one is open. */
const RUNC_ESCAPES: readonly { readonly cves: readonly string[]; readonly fixed: readonly string[] }[] = [
  { cves: ['CVE-2019-5736'], fixed: ['1.0.0-rc7'] },
  { cves: ['CVE-2024-21626'], fixed: ['1.1.12'] },
  { cves: ['CVE-2025-31133', 'CVE-2025-52565', 'CVE-2025-52881'], fixed: ['1.2.8', '1.3.3', '1.4.0-rc.3'] },
  // Of containers that are restored from a checkpoint. 1.6.0-rc.1 is older than the remedy.
  { cves: ['CVE-2026-119101'], fixed: ['1.3.7', '1.4.4', '1.5.3', '1.6.0-rc.2'] },
];

const RUNC_FIXED_IN = 'runc 1.3.7, 1.4.4 or 1.5.3';

/** Fixed in its own line, or in every line before it. */
const isFixed = (version: Version, fixed: readonly string[]): boolean => {
  const releases = fixed.flatMap((text) => parseVersion(text) ?? []);
  const ofLine = releases.find(({ parts }) => parts[0] === version.parts[0] && parts[1] === version.parts[1]);
  const last = releases.at(-1);
  return last !== undefined && compare(version, ofLine ?? last) >= 0;
};

/** null: none are known. A version that can't be read counts as one with all of them. */
export const escapesFromRunc = (text: string): KnownEscapes | null => {
  const version = parseVersion(text);
  const cves = RUNC_ESCAPES.filter(({ fixed }) => version === null || !isFixed(version, fixed)).flatMap(
    (escape) => escape.cves,
  );
  return cves.length === 0 ? null : { cves, fixedIn: RUNC_FIXED_IN };
};
