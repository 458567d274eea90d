/**
 * Secrets that can be found again: values planted where a secret goes, and a search for them in whatever form they may
 * have come out (C12): plain, in JSON, in base64 at any offset, in hex, in a URL.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** The programs that a daemon starts mostly take longer, and they are started again and again. */
const betweenLooksMs = 10;

const base64Forms = (bytes: Buffer): string[] =>
  [0, 1, 2].flatMap((offset) => {
    const padded = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64url')
      .replace(/=+$/, '');
    // The characters at both ends depend on what is beside the secret too.
    const inner = padded.slice(offset === 0 ? 0 : offset + 1, (offset + bytes.length) % 3 === 0 ? undefined : -1);
    return [inner, inner.replaceAll('-', '+').replaceAll('_', '/')];
  });

const escapeNonAscii = (text: string): string =>
  text.replace(/[^\x20-\x7e]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Everything that the secret may look like. */
export const formsOf = (secret: string): readonly string[] => {
  const bytes = Buffer.from(secret);
  const json = JSON.stringify(secret).slice(1, -1);
  const goJson = json.replace(/[<>&]/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`);
  const hex = bytes.toString('hex');
  const plain = [secret, json, goJson, escapeNonAscii(json), escapeNonAscii(goJson), encodeURIComponent(secret)];
  return [...new Set([...plain, ...base64Forms(bytes), hex, hex.toUpperCase()])];
};

export interface Canary {
  /** Where it was planted, for the message when it is found elsewhere. */
  readonly name: string;
  readonly secret: string;
}

/** A search for all of these canaries: names of those that the text holds. */
export const searcherFor = (canaries: readonly Canary[]): ((text: Buffer | string) => string[]) => {
  // One expression over the bytes: much faster than a search for each form.
  const bytesOf = (text: Buffer | string): string => Buffer.from(text).toString('latin1');
  const pattern = (forms: readonly string[]): RegExp => new RegExp(forms.map(bytesOf).map(RegExp.escape).join('|'));
  const any = pattern(canaries.flatMap(({ secret }) => formsOf(secret)));
  const each = canaries.map(({ name, secret }) => ({ name, pattern: pattern(formsOf(secret)) }));
  return (text) => {
    const bytes = bytesOf(text);
    return any.test(bytes) ? each.filter((canary) => canary.pattern.test(bytes)).map(({ name }) => name) : [];
  };
};

type Search = ReturnType<typeof searcherFor>;

/** Regular files of a directory, links not followed; `except` are directories that are not looked into. */
const filesBelow = async (dir: string, except: readonly string[]): Promise<string[]> => {
  if (except.includes(dir)) return [];
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => []);
  const lists = entries.map((entry) => {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) return filesBelow(path, except);
    return Promise.resolve(entry.isFile() ? [path] : []);
  });
  return (await Promise.all(lists)).flat();
};

/** "canary in path" for each that is in a file's content or name. */
export const searchFiles = async (
  search: Search,
  dirs: readonly string[],
  except: readonly string[] = [],
): Promise<string[]> => {
  const found: string[] = [];
  for (const path of (await Promise.all(dirs.map((dir) => filesBelow(dir, except)))).flat()) {
    const content = await readFile(path).catch(() => Buffer.alloc(0));
    // Hundreds of megabytes of zeros, set aside for a full disk, hold nothing and take long to search.
    if (content.subarray(1).equals(content.subarray(0, -1))) continue;
    for (const name of [...search(content), ...search(path)]) found.push(`${name} in ${path}`);
  }
  return found;
};

const commandLineOf = (pid: string): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
};

export interface CommandLineWatch {
  /** "canary in command line", once for each. */
  readonly stop: () => Promise<string[]>;
}

/** Looks at the command lines of all processes of this machine, again and again, until it is stopped. */
export const watchCommandLines = (search: Search): CommandLineWatch => {
  const seen = new Set<string>();
  const found = new Set<string>();
  const state = { stopped: false };
  const watching = (async () => {
    while (!state.stopped) {
      for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
        const commandLine = commandLineOf(pid);
        if (seen.has(commandLine)) continue;
        seen.add(commandLine);
        for (const name of search(commandLine)) found.add(`${name} in "${commandLine}"`);
      }
      await sleep(betweenLooksMs);
    }
  })();
  return {
    stop: async () => {
      state.stopped = true;
      await watching;
      return [...found];
    },
  };
};
