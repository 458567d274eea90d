/**
 * AppArmor profiles in the kernel: loads scribe's own through apparmor_parser, which the spawner runs, and says whether
 * a profile is loaded. Which container runs under which is the domain's. Profiles stay loaded when the daemon ends.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ApparmorFact } from '../../domain/model/container-facts.ts';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import { APPARMOR_DEFAULT_PROFILE } from '../../domain/oci/apparmor.ts';
import { APPARMOR_DIR, APPARMOR_PARSER } from '../../platform/linux/security-modules.ts';
import type { Spawner } from '../../platform/spawner/types.ts';
import { defaultProfileText } from './profile.ts';

/** Compiling the profile takes some 20 ms. */
const TIMEOUT_MS = 30_000;
const OUTPUT_BYTES_MAX = 64 * 1024;

export interface ApparmorOptions {
  readonly spawner: Pick<Spawner, 'run'>;
  /** PATH in which apparmor_parser is looked up. */
  readonly searchPath: string;
  /** AppArmor's directory in securityfs. */
  readonly directory?: string;
  /** What this process runs under; the first that there is. */
  readonly ownLabelPaths?: readonly string[];
}

export interface Apparmor {
  /** Loads scribe's profile anew, as this version has it. Never rejects. */
  readonly loadDefault: () => Promise<ApparmorFact>;
  /** Whether the profile is loaded; scribe's own is loaded when it is not. */
  readonly inspect: (name: string) => Promise<ApparmorFact>;
}

const LOADED: ApparmorFact = { loaded: true };
const missing = (problem: string): ApparmorFact => ({ loaded: false, problem });

/** "name (mode)" is name; null for a process that has no profile. */
const profileOfLabel = (label: string): string | null => {
  const name = label.trim().replace(/ \(\w+\)$/, '');
  return name === '' || name === 'unconfined' ? null : name;
};

export function createApparmor({
  spawner,
  searchPath,
  directory = APPARMOR_DIR,
  // The second is another module's where AppArmor is not the first of several.
  ownLabelPaths = ['/proc/self/attr/apparmor/current', '/proc/self/attr/current'],
}: ApparmorOptions): Apparmor {
  let loading: Promise<ApparmorFact> | null = null;
  let hasLoaded = false;

  const isListed = async (name: string): Promise<boolean> => {
    const lines = (await readFile(join(directory, 'profiles'), 'utf8')).split('\n');
    return lines.some((line) => line.startsWith(`${name} (`));
  };

  const ownProfile = async (): Promise<string | null> => {
    for (const path of ownLabelPaths) {
      const label = await readFile(path, 'utf8').catch(() => null);
      if (label !== null) return profileOfLabel(label);
    }
    return null;
  };

  const parse = async (): Promise<ApparmorFact> => {
    const ran = await spawner.run({
      command: APPARMOR_PARSER,
      // Replaces a profile of that name; without the cache, which an older version may have filled.
      args: ['--replace', '--skip-cache'],
      env: { PATH: searchPath },
      cwd: '/',
      stdin: Buffer.from(defaultProfileText(await ownProfile())),
      timeoutMs: TIMEOUT_MS,
      outputBytesMax: OUTPUT_BYTES_MAX,
    });
    if (ran.exitCode === 0) return LOADED;
    const said = Buffer.from(ran.stderr).toString('utf8').trim().replaceAll('\n', '; ');
    const how = ran.timedOut ? `did not end within ${TIMEOUT_MS} ms` : `ended with ${ran.signalName ?? ran.exitCode}`;
    return missing(`${APPARMOR_PARSER} ${how}${said === '' ? '' : `: ${said}`}`);
  };

  const load = async (): Promise<ApparmorFact> => {
    const fact = await parse().catch((error: unknown) =>
      missing(`${messageOf(error)} Install ${APPARMOR_PARSER} (Debian calls the package apparmor).`),
    );
    hasLoaded ||= fact.loaded;
    // One of an earlier life is better than none.
    return fact.loaded || !(await isListed(APPARMOR_DEFAULT_PROFILE).catch(() => false)) ? fact : LOADED;
  };

  const loadDefault = (): Promise<ApparmorFact> => {
    loading ??= load().finally(() => {
      loading = null;
    });
    return loading;
  };

  const listed = (name: string): Promise<boolean> =>
    isListed(name).catch((error: unknown) => {
      throw new FailureError('HostFailed', `The loaded AppArmor profiles cannot be read: ${messageOf(error)}`);
    });

  return {
    loadDefault,
    async inspect(name) {
      if (name !== APPARMOR_DEFAULT_PROFILE)
        return (await listed(name)) ? LOADED : missing(`load it with ${APPARMOR_PARSER}, or name another`);
      // Others may have unloaded it: tools that tidy up take what no file in /etc/apparmor.d speaks of.
      return hasLoaded && (await listed(name)) ? LOADED : loadDefault();
    },
  };
}
