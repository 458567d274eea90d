/** Files with holes in archives: as GNU tar writes them, in pieces of any size, and maps that lie. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createTarReader } from '../../../src/adapters/images/tar/reader.ts';
import { createSparseHandler } from '../../../src/adapters/images/tar/sparse.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import { tar, tarHeader, type TarMember } from '../../support/images/tar.ts';

interface Told {
  readonly path: string;
  readonly sizeBytes: number;
  /** Holes as dots. */
  content: string;
}

const read = (archive: Buffer, pieceBytes = archive.length): Told[] => {
  const told: Told[] = [];
  const add = (text: string): void => {
    const last = told.at(-1);
    if (last !== undefined) last.content += text;
  };
  const handler = createSparseHandler({
    entry: ({ path, sizeBytes }) => void told.push({ path, sizeBytes, content: '' }),
    data: (chunk) => add(Buffer.from(chunk).toString('latin1')),
    hole: (lengthBytes) => add('.'.repeat(lengthBytes)),
    endEntry: () => undefined,
  });
  const reader = createTarReader(handler, { mayBeSparse: true });
  for (let offset = 0; offset < archive.length; offset += pieceBytes)
    reader.push(archive.subarray(offset, offset + pieceBytes));
  reader.end();
  return told;
};

/** A member whose file has the parts that the map tells of. */
const sparse = (map: string, data: string, sizeBytes: number, flag = '0'): TarMember => {
  const blocks = Buffer.alloc(Math.ceil(map.length / 512) * 512);
  blocks.write(map, 'latin1');
  return {
    path: 'GNUSparseFile.1/x',
    flag,
    data: Buffer.concat([blocks, Buffer.from(data)]),
    pax: {
      ...{ 'GNU.sparse.major': '1', 'GNU.sparse.minor': '0', 'GNU.sparse.name': 'x' },
      'GNU.sparse.realsize': String(sizeBytes),
    },
  };
};

/** A member of which headers say where its parts are, in the forms 0.0 and 0.1. */
const described = (pax: TarMember['pax'], data: string, blocks: number): TarMember => ({
  path: 'x',
  data,
  pax: { 'GNU.sparse.size': '15', 'GNU.sparse.numblocks': String(blocks), ...pax },
});

/** A member in the oldest form, with its map in blocks of `parts`, the first in the header. */
const old = (parts: readonly (readonly (readonly [number, number])[])[], data: string, magic = 'ustar  \0'): Buffer => {
  const [first = [], ...more] = parts;
  const fill = (block: Buffer, at: number, entries: typeof first): void => {
    for (const [index, numbers] of entries.entries())
      for (const [half, value] of numbers.entries())
        block.write(value.toString(8).padStart(11, '0'), at + index * 24 + half * 12, 'latin1');
  };
  const header = tarHeader({ path: 'x', flag: 'S' }, data.length);
  header.write(magic, 257, 8, 'latin1');
  fill(header, 386, first);
  header[482] = more.length > 0 ? 1 : 0;
  header.write('00000000017', 483, 'latin1');
  header.fill(0x20, 148, 156);
  header.write(`${header.reduce((sum, byte) => sum + byte, 0).toString(8)}\0`, 148, 'latin1');
  const blocks = more.map((entries, index) => {
    const block = Buffer.alloc(512);
    fill(block, 0, entries);
    block[504] = index + 1 < more.length ? 1 : 0;
    return block;
  });
  const body = Buffer.alloc(Math.ceil(data.length / 512) * 512);
  body.write(data, 'latin1');
  return Buffer.concat([header, ...blocks, body]);
};

const refused = (member: TarMember | Buffer, message: RegExp): void => {
  const archive = Buffer.isBuffer(member) ? Buffer.concat([member, tar([])]) : tar([member]);
  assert.throws(
    () => read(archive),
    (error: unknown) => error instanceof FailureError && message.test(error.failure.message),
  );
};

describe('sparse files', () => {
  it('are told with their names, sizes, holes and parts, and others as they are', () => {
    const archive = tar([
      { path: 'before', data: 'plain' },
      sparse('3\n2\n3\n8\n4\n15\n0\n', 'abcdefg', 15),
      sparse('1\n5\n0\n', '', 5),
      sparse('2\n0\n3\n3\n2\n', 'abcde', 5),
      { path: 'after', data: 'plain' },
    ]);
    const expected = [
      { path: 'before', sizeBytes: 5, content: 'plain' },
      { path: 'x', sizeBytes: 15, content: '..abc...defg...' },
      { path: 'x', sizeBytes: 5, content: '.....' },
      { path: 'x', sizeBytes: 5, content: 'abcde' },
      { path: 'after', sizeBytes: 5, content: 'plain' },
    ];
    for (const pieceBytes of [1, 7, 511, 512, 513, archive.length])
      assert.deepEqual(read(archive, pieceBytes), expected);
  });

  it('are told alike whichever form they have', () => {
    const list = { 'GNU.sparse.name': 'x', 'GNU.sparse.map': '2,3,8,4,15,0' };
    const single = { 'GNU.sparse.offset': '2', 'GNU.sparse.numbytes': '3' };
    const inHeader = [
      [2, 3],
      [8, 4],
    ] as const;
    const expected = { path: 'x', sizeBytes: 15, content: '..abc...defg...' };
    const archive = Buffer.concat([
      old([inHeader], 'abcdefg'),
      old([[[2, 3]], [[8, 1]], [], [[9, 3]]], 'abcdefg'),
      old([[[15, 0]]], ''),
      tar([{ ...described(list, 'abcdefg', 3), path: 'GNUSparseFile.1/x' }]),
    ]);
    assert.equal(read(tar([described(single, 'abc', 1)]))[0]?.content, '..abc..........');
    for (const pieceBytes of [1, 511, 512, archive.length])
      assert.deepEqual(read(archive, pieceBytes), [
        expected,
        expected,
        { ...expected, content: '.'.repeat(15) },
        expected,
      ]);
  });

  it('are refused when headers lie about them', () => {
    refused(old([[[2, 4]]], 'abc'), /does not fit/);
    refused(old([[[13, 3]]], 'abc'), /does not fit/);
    refused(old([[[2, 3]]], 'abc', 'ustar\x0000'), /sparse/);
    refused(old([[[4, 1]], [[2, 2]]], 'abc'), /out of order/);
    refused(old([[], ...Array.from({ length: 2_049 }, () => [[0, 0]] as const)], 'abc'), /too long/);
    refused(described({ 'GNU.sparse.map': '2,3' }, 'abc', 2), /sparse/);
    refused(described({ 'GNU.sparse.map': '2,x' }, 'abc', 1), /not a number/);
    refused(described({ 'GNU.sparse.map': '2,4' }, 'abc', 1), /does not fit/);
    refused(described({ 'GNU.sparse.numbytes': '3', 'GNU.sparse.offset': '2' }, 'abc', 1), /sparse/);
    refused(described({ 'GNU.sparse.map': '2,3', 'GNU.sparse.major': '2' }, 'abc', 1), /sparse/);
    refused({ ...described({ 'GNU.sparse.map': '2,3' }, 'abc', 1), flag: '5' }, /of no file|malformed/);
    const whole = old([[[2, 3]]], 'abc');
    const both = tar([described({ 'GNU.sparse.map': '2,3' }, '', 1)]).subarray(0, 1024);
    refused(Buffer.concat([both, whole]), /sparse/);
    assert.throws(() => read(old([[], [[2, 3]]], 'abc').subarray(0, 600)), /middle of a member/);
  });

  it('may have maps of many blocks', () => {
    const count = 2_000;
    const parts = Array.from({ length: count }, (_, index) => `${index * 3}\n1\n`).join('');
    const archive = tar([sparse(`${count}\n${parts}`, 'x'.repeat(count), count * 3)]);
    for (const pieceBytes of [100, archive.length])
      assert.equal(read(archive, pieceBytes)[0]?.content, 'x..'.repeat(count));
  });

  it('are refused when their maps lie', () => {
    refused(sparse('1\n0\n4\n', 'abc', 10), /does not fit/);
    refused(sparse('1\n0\n2\n', 'abc', 10), /does not fit/);
    refused(sparse('1\n8\n3\n', 'abc', 10), /does not fit/);
    refused(sparse('2\n5\n1\n0\n2\n', 'abc', 10), /out of order/);
    refused(sparse('2\n0\n2\n1\n1\n', 'abc', 10), /out of order/);
    refused(sparse('x\n0\n3\n', 'abc', 10), /else than numbers/);
    refused(sparse('1\n-1\n3\n', 'abc', 10), /else than numbers/);
    refused(sparse('1\n99999999999999999\n3\n', 'abc', 10), /else than numbers/);
    refused(sparse('9\n0\n3\n', 'abc', 10), /does not fit/);
    refused(sparse('9'.repeat(16), '9'.repeat(17 * 1024 * 1024), 10), /too long/);
    refused(sparse('1\n0\n3\n', 'abc', 10, '5'), /of no file|malformed/);
  });
});
