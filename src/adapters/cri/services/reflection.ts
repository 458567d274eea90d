/**
 * gRPC server reflection: which services the socket offers, and the files that describe them, as they were when the
 * code was generated. Those are loaded when somebody asks: kubelet never does.
 */
import { GrpcCode } from '../../../domain/model/errors.ts';
import { shown } from '../../../domain/oci/refuse.ts';
import {
  ServerReflectionDefinition,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
} from '../../../wire/grpc/reflection/v1/reflection.ts';
import type { Handlers } from '../context.ts';

/** Older clients ask under this name, in the same words. */
export const ServerReflectionAlphaDefinition = {
  ...ServerReflectionDefinition,
  fullName: 'grpc.reflection.v1alpha.ServerReflection',
} as const;

type Answer = NonNullable<ServerReflectionResponse['messageResponse']>;

interface Descriptors {
  /** The file with this name and all it imports, itself first; empty when there is none. */
  readonly file: (name: string) => Buffer[];
  /** Name of the file that holds the message, enum, service or method with this full name. */
  readonly fileOfSymbol: (symbol: string) => string | undefined;
}

let loading: Promise<Descriptors> | null = null;

const descriptors = (): Promise<Descriptors> => (loading ??= load());

async function load(): Promise<Descriptors> {
  const { files } = await import('../../../wire/descriptors.ts');
  const byName = new Map(files.map((file) => [file.name, file]));
  const bySymbol = new Map(files.flatMap(({ name, symbols }) => symbols.map((symbol) => [symbol, name] as const)));
  const collect = (name: string, found: Map<string, Buffer>): void => {
    const file = byName.get(name);
    if (file === undefined || found.has(name)) return;
    found.set(name, Buffer.from(file.descriptor, 'base64'));
    for (const imported of file.imports) collect(imported, found);
  };
  return {
    file(name) {
      const found = new Map<string, Buffer>();
      collect(name, found);
      return [...found.values()];
    },
    fileOfSymbol: (symbol) => bySymbol.get(symbol),
  };
}

/** @param services  full names of all that is served */
export function reflectionService(services: () => readonly string[]): Handlers<typeof ServerReflectionDefinition> {
  return {
    async serverReflectionInfo(requests, _context, send) {
      for await (const request of requests) {
        const messageResponse = await answer(request.messageRequest, services());
        await send({ validHost: request.host, originalRequest: request, messageResponse });
      }
    },
  };
}

async function answer(
  question: ServerReflectionRequest['messageRequest'],
  services: readonly string[],
): Promise<Answer> {
  const known = await descriptors();
  switch (question?.$case) {
    case 'listServices':
      return { $case: 'listServicesResponse', value: { service: services.map((name) => ({ name })) } };
    case 'fileByFilename':
      return fileAnswer(known.file(question.value), `file ${shown(question.value)}`);
    case 'fileContainingSymbol':
      return fileAnswer(known.file(known.fileOfSymbol(question.value) ?? ''), `symbol ${shown(question.value)}`);
    case 'allExtensionNumbersOfType':
      // No file has extensions.
      if (known.fileOfSymbol(question.value) === undefined) return none(`type ${shown(question.value)}`);
      return {
        $case: 'allExtensionNumbersResponse',
        value: { baseTypeName: question.value, extensionNumber: [] },
      };
    case 'fileContainingExtension':
      return none(`extension ${question.value.extensionNumber} of ${shown(question.value.containingType)}`);
    case undefined:
      return failure(GrpcCode.INVALID_ARGUMENT, 'The request asks for nothing.');
  }
}

const fileAnswer = (fileDescriptorProto: Buffer[], what: string): Answer =>
  fileDescriptorProto.length === 0 ? none(what) : { $case: 'fileDescriptorResponse', value: { fileDescriptorProto } };

const none = (what: string): Answer => failure(GrpcCode.NOT_FOUND, `There is no ${what} here.`);

const failure = (errorCode: GrpcCode, errorMessage: string): Answer => ({
  $case: 'errorResponse',
  value: { errorCode, errorMessage },
});
