/** Whose checkpoints are restored: those that this node wrote, and those that a key of the configuration has signed. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { copyTrusted } from '../../../src/adapters/images/unpack/checkpoint-trust.ts';
import { cleanupAfterAll } from '../../support/cleanup.ts';
import { failureOf } from '../../support/images/store.ts';
import { runOk } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

describe('the archive of a checkpoint', { timeout: 60_000 }, () => {
  const owner = cleanupAfterAll();

  /** More than one piece, and no whole number of them. */
  const bytes = randomBytes(2_500_001);
  const place = async () => {
    const dir = await tempDir(owner);
    const path = join(dir, 'one.tar');
    await writeFile(path, bytes);
    const copy = join(dir, 'copy');
    const copied = async (
      known: readonly string[],
      trustedKeyPaths: readonly string[] = [],
      { reservedBytes = 0, signal = new AbortController().signal } = {},
    ): Promise<void> => {
      await rm(copy, { force: true });
      const archive = { path, knownDigests: known };
      await copyTrusted({ archive, trustedKeyPaths, copy, directory: dir, reservedBytes, signal });
    };
    return { dir, path, copy, copied };
  };

  it('that the node wrote is copied, and what becomes of it afterwards is not what is used', async () => {
    const { path, copy, copied } = await place();
    await copied([digestOf(randomBytes(1)), digestOf(bytes)]);
    await writeFile(path, 'changed');
    assert.ok((await readFile(copy)).equals(bytes));
  });

  it('of which one byte was changed is refused, with both ways out', async () => {
    const { path, copied } = await place();
    for (const at of [0, 1_100_000, bytes.length - 1]) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8((changed.readUInt8(at) + 1) % 256, at);
      await writeFile(path, changed);
      const { reason, message } = await failureOf(copied([digestOf(bytes)]));
      assert.equal(reason, 'CheckpointUntrusted');
      for (const words of [path, 'nobody has signed it', 'CheckpointContainer', 'checkpoint.trusted_keys'])
        assert.ok(message.includes(words), message);
    }
    await writeFile(path, bytes.subarray(0, -1));
    assert.equal((await failureOf(copied([digestOf(bytes)]))).reason, 'CheckpointUntrusted');
  });

  it('that another node wrote is taken with a signature of a trusted key, made as the README says', async () => {
    const { dir, path, copy, copied } = await place();
    const keys = async (name: string): Promise<{ readonly secret: string; readonly open: string }> => {
      const secret = join(dir, `${name}.key`);
      const open = join(dir, `${name}.pub`);
      await runOk(['openssl', 'genpkey', '-algorithm', 'ed25519', '-out', secret]);
      await runOk(['openssl', 'pkey', '-in', secret, '-pubout', '-out', open]);
      return { secret, open };
    };
    const sign = async (secret: string, archive: string, signature = `${path}.sig`): Promise<void> => {
      const digest = join(dir, 'digest');
      await runOk(['openssl', 'dgst', '-sha256', '-binary', '-out', digest, archive]);
      await runOk(['openssl', 'pkeyutl', '-sign', '-rawin', '-inkey', secret, '-in', digest, '-out', signature]);
    };
    const [trusted, other] = await Promise.all([keys('trusted'), keys('other')]);
    const refused = async (message: RegExp, ...trustedKeys: readonly string[]): Promise<void> => {
      const failure = await failureOf(copied([], trustedKeys));
      assert.equal(failure.reason, 'CheckpointUntrusted');
      assert.match(failure.message, message);
    };
    await refused(/nobody has signed it/, trusted.open);
    await sign(trusted.secret, path);
    await copied([], [other.open, trusted.open]);
    assert.ok((await readFile(copy)).equals(bytes));
    const byNone = /one\.tar\.sig is by no key that is trusted/;
    await refused(byNone);
    await refused(byNone, other.open);
    await sign(other.secret, path);
    await refused(byNone, trusted.open);
    const another = join(dir, 'another.tar');
    await writeFile(another, 'another');
    await sign(trusted.secret, another);
    await refused(byNone, trusted.open);
    await writeFile(`${path}.sig`, '');
    await refused(/nobody has signed it/, trusted.open);
    await sign(trusted.secret, path, join(dir, 'elsewhere.sig'));
    await rm(`${path}.sig`);
    await symlink(join(dir, 'elsewhere.sig'), `${path}.sig`);
    await refused(/nobody has signed it/, trusted.open);
  });

  it('is not taken for a key that is none, which is named', async () => {
    const { dir, path, copied } = await place();
    const keyPath = join(dir, 'key.pem');
    await writeFile(`${path}.sig`, randomBytes(64));
    await writeFile(keyPath, 'no key');
    const { reason, message } = await failureOf(copied([], [keyPath]));
    assert.equal(reason, 'HostLacks');
    assert.match(message, /checkpoint\.trusted_keys: .*key\.pem is no Ed25519 public key/);
    await runOk(['openssl', 'genpkey', '-algorithm', 'x25519', '-out', keyPath]);
    assert.match((await failureOf(copied([], [keyPath]))).message, /it is one of x25519/);
    assert.match((await failureOf(copied([], [join(dir, 'none.pem')]))).message, /ENOENT/);
  });

  it('is not copied where the disk would become full, nor for a call that is over', async () => {
    const { copy, copied } = await place();
    const full = await failureOf(copied([digestOf(bytes)], [], { reservedBytes: 2 ** 60 }));
    assert.equal(full.reason, 'DiskFull');
    await assert.rejects(readFile(copy), { code: 'ENOENT' });
    const over = new Error('over');
    await assert.rejects(copied([digestOf(bytes)], [], { signal: AbortSignal.abort(over) }), over);
  });
});
