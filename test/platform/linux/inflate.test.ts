/** Both ways to inflate, of pieces and into buffers of any size: what node:zlib gives, or damaged, and always an end. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import type { Inflated, Inflater } from '../../../src/platform/linux/inflate/inflater.ts';
import { createIsalInflater, ISAL_LIBRARY } from '../../../src/platform/linux/inflate/isal.ts';
import { createZlibInflater } from '../../../src/platform/linux/inflate/zlib.ts';

interface Sizes {
  readonly pieceBytes: number;
  readonly roomBytes: number;
}

/** Until the end of a member behind which nothing is, or until it cannot go on. */
const inflateAll = async (
  inflater: Inflater,
  packed: Buffer,
  { pieceBytes, roomBytes }: Sizes,
): Promise<{ readonly plain: Buffer; readonly state: Inflated['state'] }> => {
  const plain: Buffer[] = [];
  const output = Buffer.alloc(roomBytes);
  let at = 0;
  for (;;) {
    if (inflater.leftBytes() === 0) {
      inflater.give(packed.subarray(at, at + pieceBytes));
      at += pieceBytes;
    }
    const { writtenBytes, state } = await inflater.inflate(output);
    plain.push(Buffer.from(output.subarray(0, writtenBytes)));
    const isMore = inflater.leftBytes() > 0 || at < packed.length;
    if (state === 'memberEnd' && isMore) inflater.nextMember();
    else if (state !== 'inside') return { plain: Buffer.concat(plain), state };
  }
};

const sizes = fc.record({ pieceBytes: fc.integer({ min: 1, max: 300 }), roomBytes: fc.integer({ min: 1, max: 5000 }) });
const words = fc
  .array(fc.constantFrom('some words ', 'and others ', 'x'), { maxLength: 400 })
  .map((all) => Buffer.from(all.join('')));
const bytes = fc.uint8Array({ maxLength: 3000 }).map((all) => Buffer.from(all));
const member = fc
  .tuple(fc.oneof(words, bytes), fc.constantFrom(0, 1, 6, 9))
  .map(([plain, level]) => gzipSync(plain, { level }));

/** The same with an extra field, a name and a comment in gzip's header. */
const withEverything = (packed: Buffer): Buffer =>
  Buffer.concat([
    packed.subarray(0, 3),
    Buffer.from([4 | 8 | 16]),
    packed.subarray(4, 10),
    Buffer.from([3, 0, 1, 2, 3]),
    Buffer.from('a name\0a comment\0', 'latin1'),
    packed.subarray(10),
  ]);

const ways: readonly (readonly [string, (() => Inflater) | null])[] = [
  ['zlib', createZlibInflater],
  ['ISA-L', createIsalInflater],
];

for (const [name, create] of ways)
  describe(`inflating by ${name}`, () => {
    const made = async <T>(use: (inflater: Inflater) => Promise<T>): Promise<T> => {
      assert.ok(create !== null, `${ISAL_LIBRARY} is not installed: sh scripts/setup.sh test`);
      const inflater = create();
      try {
        return await use(inflater);
      } finally {
        inflater.end();
      }
    };

    it('gives what node:zlib gives, of members in pieces and into rooms of any size', () =>
      fc.assert(
        fc.asyncProperty(fc.array(member, { minLength: 1, maxLength: 4 }), sizes, async (members, size) => {
          const packed = Buffer.concat(members);
          const { plain, state } = await made((inflater) => inflateAll(inflater, packed, size));
          assert.equal(state, 'memberEnd');
          assert.ok(plain.equals(gunzipSync(packed)));
        }),
      ));

    it('reads headers with everything that is of any length, wherever they are cut', async () => {
      const packed = withEverything(gzipSync('what is packed'));
      for (let pieceBytes = 1; pieceBytes <= packed.length; pieceBytes += 1) {
        const size = { pieceBytes, roomBytes: 100 };
        const { plain, state } = await made((inflater) => inflateAll(inflater, Buffer.concat([packed, packed]), size));
        assert.deepEqual([plain.toString(), state], ['what is packedwhat is packed', 'memberEnd']);
      }
    });

    it('comes to an end with whatever is damaged, and never takes it for something else', () =>
      fc.assert(
        fc.asyncProperty(member, fc.nat(), fc.integer({ min: 1, max: 255 }), sizes, async (whole, at, turned, size) => {
          const packed = Buffer.from(whole);
          packed[at % packed.length] = (packed[at % packed.length] ?? 0) ^ turned;
          const { plain, state } = await made((inflater) => inflateAll(inflater, packed, size));
          // Time, flags without a meaning and the system are not checked by anything.
          if (state === 'memberEnd') assert.ok(plain.equals(gunzipSync(whole)));
        }),
      ));

    it('starves of what is cut off', () =>
      fc.assert(
        fc.asyncProperty(member, fc.nat(), sizes, async (whole, at, size) => {
          const packed = whole.subarray(0, at % whole.length);
          const { state } = await made((inflater) => inflateAll(inflater, packed, size));
          assert.equal(state, 'starved');
        }),
      ));
  });
