/** Writes tar archives byte by byte, honest and hostile ones: what no well-behaved tool would write included. */

export interface TarMember {
  readonly path: string;
  /** Type flag of the header; '0', a regular file, when absent. */
  readonly flag?: string;
  readonly data?: Buffer | string;
  readonly linkPath?: string;
  readonly mode?: number;
  readonly uid?: number;
  readonly gid?: number;
  readonly mtime?: number;
  readonly major?: number;
  readonly minor?: number;
  /** Records of a PAX header before the member. */
  readonly pax?: Readonly<Record<string, Buffer | string>>;
  /** Size in the header, when it is to be a lie. */
  readonly size?: number;
}

const BLOCK = 512;

const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, '0')}\0`;

const number = (value: number, length: number): Buffer => {
  const text = octal(value, length);
  if (text.length <= length) return Buffer.from(text, 'latin1');
  const field = Buffer.alloc(length);
  field.writeBigUInt64BE(BigInt(value), length - 8);
  field[0] = 0x80;
  return field;
};

export const tarHeader = (member: TarMember, size: number): Buffer => {
  const header = Buffer.alloc(BLOCK);
  header.write(member.path, 0, 100, 'latin1');
  number(member.mode ?? 0o644, 8).copy(header, 100);
  number(member.uid ?? 0, 8).copy(header, 108);
  number(member.gid ?? 0, 8).copy(header, 116);
  number(member.size ?? size, 12).copy(header, 124);
  number(member.mtime ?? 1_700_000_000, 12).copy(header, 136);
  header.write(member.flag ?? '0', 156, 1, 'latin1');
  header.write(member.linkPath ?? '', 157, 100, 'latin1');
  header.write('ustar\x0000', 257, 8, 'latin1');
  number(member.major ?? 0, 8).copy(header, 329);
  number(member.minor ?? 0, 8).copy(header, 337);
  header.fill(0x20, 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 8, 'latin1');
  return header;
};

const padded = (data: Buffer): Buffer => Buffer.concat([data, Buffer.alloc((BLOCK - (data.length % BLOCK)) % BLOCK)]);

export const paxRecord = (key: string, value: Buffer | string): Buffer => {
  const body = Buffer.concat([Buffer.from(` ${key}=`), Buffer.from(value as string), Buffer.from('\n')]);
  let length = body.length + 1;
  while (String(length).length + body.length !== length) length = String(length).length + body.length;
  return Buffer.concat([Buffer.from(String(length)), body]);
};

const memberBytes = (member: TarMember): Buffer => {
  const data = Buffer.from((member.data ?? '') as string);
  const plain = Buffer.concat([tarHeader(member, data.length), padded(data)]);
  if (member.pax === undefined) return plain;
  const records = Buffer.concat(Object.entries(member.pax).map(([key, value]) => paxRecord(key, value)));
  return Buffer.concat([tarHeader({ path: 'pax', flag: 'x' }, records.length), padded(records), plain]);
};

export const tar = (members: readonly TarMember[]): Buffer =>
  Buffer.concat([...members.map(memberBytes), Buffer.alloc(2 * BLOCK)]);
