/**
 * The versions of the CNI specification that scribe speaks, and what each of them brought. Pure.
 * Must not know plugins or configurations: it compares version numbers and nothing else.
 */

/** In ascending order. */
const SUPPORTED_VERSIONS: readonly string[] = ['0.1.0', '0.2.0', '0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'];

/** What a configuration without cniVersion means. */
export const OLDEST_VERSION = '0.1.0';

/** CHECK, and prevResult on DEL, exist since this version. */
export const CHECK_SINCE = '0.4.0';

/** GC and STATUS exist since this version. */
export const GC_AND_STATUS_SINCE = '1.1.0';

export const isSupportedVersion = (version: string): boolean => SUPPORTED_VERSIONS.includes(version);

/** Both must be supported versions. */
export const isAtLeast = (version: string, since: string): boolean =>
  SUPPORTED_VERSIONS.indexOf(version) >= SUPPORTED_VERSIONS.indexOf(since);

/** The highest supported version among `versions`, null when there is none (CNI 1.1, "Version considerations"). */
export const highestSupported = (versions: readonly string[]): string | null =>
  SUPPORTED_VERSIONS.findLast((version) => versions.includes(version)) ?? null;

export const supportedVersionsText = SUPPORTED_VERSIONS.join(', ');
