/** Files with holes in archives: as GNU tar writes them, in pieces of any size, and maps that lie. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createTarReader } from '../../../src/adapters/images/tar/reader.ts';
import { createSparseHandler } from '../../../src/adapters/images/tar/sparse.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import { tar, type TarMember } from '../../support/images/tar.ts';

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

const refused = (member: TarMember, message: RegExp): void => {
  assert.throws(
    () => read(tar([member])),
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
