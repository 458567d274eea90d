/**
 * A request for every method of the socket with a canary in every field that takes text or bytes, made from the contract's
 * own description, so that no field is forgotten when the contract grows; and in a field that no contract has yet.
 */
import {
  create,
  createFileRegistry,
  type DescField,
  type DescMessage,
  fromBinary,
  fromJson,
  isMessage,
  type JsonObject,
  type JsonValue,
  ScalarType,
  toBinary,
} from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { files } from '../../src/wire/descriptors.ts';
import type { Canary } from './canaries.ts';

export interface FilledRequest {
  /** /runtime.v1.RuntimeService/RunPodSandbox */
  readonly path: string;
  readonly bytes: Buffer;
  /** What is planted in it, by "Method field.field". */
  readonly canaries: readonly Canary[];
}

const CRI = 'cri/api.proto';
/** Deeper than any message that does not hold itself. */
const DEPTH_MAX = 8;
const UNKNOWN_FIELD = 100_000;
const LENGTH_DELIMITED = 2;

const registry = () => {
  const file = files.find(({ name }) => name === CRI);
  if (file === undefined) throw new Error(`${CRI} is not among the descriptors`);
  const described = fromBinary(FileDescriptorProtoSchema, Buffer.from(file.descriptor, 'base64'));
  return createFileRegistry(create(FileDescriptorSetSchema, { file: [described] }));
};

type Plant = (place: string) => string;

const textIn = (scalar: ScalarType, text: () => string): JsonValue | undefined => {
  if (scalar === ScalarType.STRING) return text();
  return scalar === ScalarType.BYTES ? Buffer.from(text()).toString('base64') : undefined;
};

/** In protobuf's JSON; undefined: it holds no text. */
const valueOf = (field: DescField, place: string, plant: Plant, depth: number): JsonValue | undefined => {
  const text = (): string => plant(place);
  const inner = (desc: DescMessage): JsonValue | undefined =>
    depth < DEPTH_MAX ? filled(desc, plant, `${place}.`, depth + 1) : undefined;
  if (field.fieldKind === 'scalar') return textIn(field.scalar, text);
  if (field.fieldKind === 'message') return inner(field.message);
  if (field.fieldKind === 'map') return { [plant(`${place}[key]`)]: text() };
  if (field.fieldKind !== 'list' || field.listKind === 'enum') return undefined;
  const element = field.listKind === 'message' ? inner(field.message) : textIn(field.scalar, text);
  return element === undefined ? undefined : [element];
};

const filled = (message: DescMessage, plant: Plant, prefix = '', depth = 0): JsonObject =>
  Object.fromEntries(
    message.fields.flatMap((field) => {
      const value = valueOf(field, `${prefix}${field.name}`, plant, depth);
      return value === undefined || (field.oneof !== undefined && field.oneof.fields[0] !== field)
        ? []
        : [[field.name, value]];
    }),
  );

/** Gives every message in it a field that no contract has. */
const extend = (value: unknown, plant: Plant, place = ''): void => {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return;
  for (const [name, inner] of Object.entries(value)) extend(inner, plant, `${place}${name}.`);
  if (!isMessage(value)) return;
  const text = Buffer.from(plant(`${place}(unknown)`));
  value.$unknown = [
    { no: UNKNOWN_FIELD, wireType: LENGTH_DELIMITED, data: Buffer.concat([Buffer.from([text.length]), text]) },
  ];
};

/** One for each method that is answered once. `given`: what stands at a place in a canary's stead; null: a canary. */
export const filledRequests = (given: (place: string) => string | null): readonly FilledRequest[] => {
  const services = ['runtime.v1.RuntimeService', 'runtime.v1.ImageService'];
  let count = 0;
  const found = registry();
  return services.flatMap((name) =>
    (found.getService(name)?.methods ?? [])
      .filter(({ methodKind }) => methodKind === 'unary')
      .map((method) => {
        const canaries: Canary[] = [];
        const plant = (place: string): string => {
          const said = given(place);
          if (said !== null) return said;
          count += 1;
          const secret = `planted-${count}-${'c4e81b'.repeat(3)}`;
          canaries.push({ name: `${method.name} ${place}`, secret });
          return secret;
        };
        const message = fromJson(method.input, filled(method.input, plant));
        extend(message, plant);
        return { path: `/${name}/${method.name}`, bytes: Buffer.from(toBinary(method.input, message)), canaries };
      }),
  );
};
