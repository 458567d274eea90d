/**
 * The vault: where secrets wait between the CRI listener, which takes them out of requests, and the adapter that
 * needs them (C12). In between, records hold tokens. A token is a digest keyed with a key that never leaves the node:
 * the same value always has the same token, so that a retried request is the same request, and no token tells its
 * value. Values are kept in memory only, and not for long; after a restart they are gone, as what was not finished by
 * then is undone anyway. Must never write, print or return a value but to whoever holds its token.
 */
import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import { open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import { writeFileWhole } from '../../platform/linux/files.ts';
import { errorCodeOf } from '../../platform/error-code.ts';

export interface SecretVault {
  /** Keeps the value for `keepMs` from now on and gives the token that stands for it. */
  readonly tokenOf: (value: Uint8Array | string) => string;
  /** The value a token stands for. Throws FailureError Interrupted when it is no longer, or never was, kept. */
  readonly fill: (token: string) => Uint8Array;
  /** Forgets all values. */
  readonly close: () => void;
}

type Report = (message: string) => void;

export interface SecretVaultOptions {
  /** How long a value is kept after it was last seen: longer than any call takes to be done with it. */
  readonly keepMs?: number;
  /** A clock that never goes back. */
  readonly nowMs?: () => number;
  /** Told, in a sentence, of a key that is none. */
  readonly report?: Report;
}

const KEY_BYTES = 32;
const KEY_MODE = 0o600;
const TOKEN_DIGEST_BYTES = 16;
const TOKEN_PREFIX = 'secret:';
const KEEP_MS = 60 * 60_000;

/** Reads the key, or makes it: durable before any token of it can be in a record. */
const keyOf = async (keyPath: string, report: Report): Promise<Buffer> => {
  const problem = await problemWith(keyPath);
  if (Buffer.isBuffer(problem)) return problem;
  if (problem !== null) await setAside(keyPath, problem, report);
  const key = randomBytes(KEY_BYTES);
  try {
    await writeKey(keyPath, key);
  } catch (error) {
    report(
      `The key of secret tokens cannot be written to ${keyPath}, and is lost with this daemon: ${messageOf(error)}`,
    );
  }
  return key;
};

/** The key that is there, or what is wrong with it; null: there is none. */
const problemWith = async (keyPath: string): Promise<Buffer | string | null> => {
  try {
    const key = await readFile(keyPath);
    return key.length === KEY_BYTES ? key : `it has ${key.length} bytes instead of ${KEY_BYTES}`;
  } catch (error) {
    return errorCodeOf(error) === 'ENOENT' ? null : messageOf(error);
  }
};

/** A key that is none keeps no daemon from starting (C20). */
const setAside = async (keyPath: string, problem: string, report: Report): Promise<void> => {
  const aside = `${keyPath}.damaged-${randomBytes(4).toString('hex')}`;
  const moved = await rename(keyPath, aside).then(
    () => `it is set aside at ${aside}`,
    (error: unknown) => `it cannot be set aside: ${messageOf(error)}`,
  );
  report(
    `The key of secret tokens, ${keyPath}, is damaged (${problem}); ${moved}. A new one is used: creations that were begun before are not recognised when they are asked for again`,
  );
};

const writeKey = async (keyPath: string, key: Buffer): Promise<void> => {
  await writeFileWhole(keyPath, key, KEY_MODE);
  for (const path of [keyPath, dirname(keyPath)]) {
    const handle = await open(path);
    await handle.sync().finally(() => handle.close());
  }
};

interface Kept {
  readonly value: Uint8Array;
  readonly untilMs: number;
}

/** Opens the vault with the key at `keyPath`, made on first use; one that is none is set aside. */
export const createSecretVault = async (
  keyPath: string,
  { keepMs = KEEP_MS, nowMs = () => performance.now(), report = () => undefined }: SecretVaultOptions = {},
): Promise<SecretVault> => {
  // As bytes it would be made a key anew for each value, which takes longer than the digest; a pod has hundreds of them.
  const key = createSecretKey(await keyOf(keyPath, report));
  /** In the order of their end: what is kept anew moves to the back. */
  const values = new Map<string, Kept>();
  let timer: NodeJS.Timeout | undefined;

  const forgetOld = (): void => {
    const now = nowMs();
    for (const [token, { untilMs }] of values) {
      if (untilMs > now) {
        timer = setTimeout(forgetOld, untilMs - now);
        timer.unref();
        return;
      }
      values.delete(token);
    }
    timer = undefined;
  };

  return {
    tokenOf: (value) => {
      const digest = createHmac('sha256', key).update(value).digest().subarray(0, TOKEN_DIGEST_BYTES);
      const token = TOKEN_PREFIX + digest.toString('base64url');
      values.delete(token);
      values.set(token, { value: Buffer.from(value), untilMs: nowMs() + keepMs });
      if (timer === undefined) forgetOld();
      return token;
    },
    fill: (token) => {
      const kept = values.get(token);
      if (kept) return kept.value;
      throw new FailureError(
        'Interrupted',
        'A secret of this request is no longer known, because scribe was restarted or too much time passed: repeat it.',
      );
    },
    close: () => {
      clearTimeout(timer);
      values.clear();
    },
  };
};
