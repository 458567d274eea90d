/** The standard health and reflection services, asked as generic gRPC tools ask them. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { type FileDescriptorProto, FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Metadata } from '@grpc/grpc-js';
import { RuntimeServiceDefinition } from '../../../src/wire/cri/api.ts';
import {
  HealthCheckRequest,
  HealthCheckResponse,
  HealthCheckResponse_ServingStatus as Serving,
  HealthDefinition,
} from '../../../src/wire/grpc/health/v1/health.ts';
import {
  ServerReflectionDefinition,
  ServerReflectionRequest,
  ServerReflectionResponse,
} from '../../../src/wire/grpc/reflection/v1/reflection.ts';
import { GrpcCode } from '../../../src/domain/model/errors.ts';
import { codeOf } from '../../../scripts/lib/cri-client.ts';
import { ask, type RawClient, rawClient, startServer } from './support.ts';

const { fullName: health, methods } = HealthDefinition;
const served = [
  'runtime.v1.RuntimeService',
  'runtime.v1.ImageService',
  'grpc.health.v1.Health',
  'grpc.reflection.v1.ServerReflection',
  'grpc.reflection.v1alpha.ServerReflection',
];

type Question = NonNullable<ServerReflectionRequest['messageRequest']>;
type Answer = ServerReflectionResponse['messageResponse'];

/** Asks all on one stream; resolves with the answers when the server has ended it. */
const reflect = (client: RawClient, service: string, questions: readonly (Question | undefined)[]): Promise<Answer[]> =>
  new Promise((resolve, reject) => {
    const call = client.grpc.makeBidiStreamRequest<ServerReflectionRequest, ServerReflectionResponse>(
      `/${service}/${ServerReflectionDefinition.methods.serverReflectionInfo.name}`,
      (request) => Buffer.from(ServerReflectionRequest.encode(request).finish()),
      (bytes) => ServerReflectionResponse.decode(bytes),
      new Metadata(),
      { deadline: Date.now() + 10_000 },
    );
    const answers: Answer[] = [];
    call.on('data', ({ messageResponse }: ServerReflectionResponse) => void answers.push(messageResponse));
    call.on('error', reject);
    call.on('end', () => resolve(answers));
    for (const messageRequest of questions) call.write({ host: 'localhost', messageRequest });
    call.end();
  });

const filesIn = (answer: Answer): FileDescriptorProto[] => {
  assert.ok(answer?.$case === 'fileDescriptorResponse', JSON.stringify(answer));
  return answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
};

const errorIn = (answer: Answer): number =>
  answer?.$case === 'errorResponse' ? answer.value.errorCode : assert.fail(JSON.stringify(answer));

describe('grpc.health.v1', { timeout: 20_000 }, () => {
  it('Check: the server and every service on it are SERVING, others are not found', async (t) => {
    const client = rawClient(t, (await startServer(t)).socket);
    for (const service of ['', ...served]) {
      assert.equal((await ask(client, health, methods.check, { service })).status, Serving.SERVING, service);
    }
    const unknown = ask(client, health, methods.check, { service: 'no.such.Service' });
    await assert.rejects(unknown, (error) => codeOf(error) === GrpcCode.NOT_FOUND);
  });

  it('List names them all', async (t) => {
    const client = rawClient(t, (await startServer(t)).socket);
    const { statuses } = await ask(client, health, methods.list, {});
    assert.deepEqual(Object.keys(statuses).sort(), ['', ...served].sort());
    assert.ok(Object.values(statuses).every(({ status }) => status === Serving.SERVING));
  });

  it('Watch tells the state at once and stays open', async (t) => {
    const client = rawClient(t, (await startServer(t)).socket);
    for (const [service, expected] of [
      ['runtime.v1.RuntimeService', Serving.SERVING],
      ['no.such.Service', Serving.SERVICE_UNKNOWN],
    ] as const) {
      const call = client.grpc.makeServerStreamRequest<HealthCheckRequest, HealthCheckResponse>(
        `/${health}/${methods.watch.name}`,
        (request) => Buffer.from(HealthCheckRequest.encode(request).finish()),
        (bytes) => HealthCheckResponse.decode(bytes),
        { service },
        new Metadata(),
        { deadline: Date.now() + 10_000 },
      );
      call.on('error', () => undefined);
      const code = new Promise((resolve) => call.on('status', (status: { code: number }) => resolve(status.code)));
      const { status } = await new Promise<HealthCheckResponse>((resolve) => call.once('data', resolve));
      assert.equal(status, expected);
      call.cancel();
      assert.equal(await code, GrpcCode.CANCELLED);
    }
  });
});

describe('gRPC reflection', { timeout: 20_000 }, () => {
  it('lists the services and describes each of them whole, in both versions', async (t) => {
    const client = rawClient(t, (await startServer(t)).socket);
    for (const version of ['v1', 'v1alpha']) {
      const service = `grpc.reflection.${version}.ServerReflection`;
      const [list] = await reflect(client, service, [{ $case: 'listServices', value: '' }]);
      assert.ok(list?.$case === 'listServicesResponse');
      assert.deepEqual(list.value.service.map(({ name }) => name).sort(), [...served].sort());
      for (const { name } of list.value.service) {
        const [answer] = await reflect(client, service, [{ $case: 'fileContainingSymbol', value: name }]);
        const registry = createFileRegistry({ $typeName: 'google.protobuf.FileDescriptorSet', file: filesIn(answer) });
        assert.ok((registry.getService(name)?.methods.length ?? 0) > 0, name);
      }
    }
  });

  it('describes what is really served: every method, message, and nested type by name', async (t) => {
    const client = rawClient(t, (await startServer(t)).socket);
    const symbols = [
      ...Object.values(RuntimeServiceDefinition.methods).map(({ name }) => `runtime.v1.RuntimeService.${name}`),
      'runtime.v1.LinuxContainerResources',
      'runtime.v1.SecurityProfile.ProfileType',
      'runtime.v1.ContainerState',
    ];
    const questions = symbols.map((value) => ({ $case: 'fileContainingSymbol', value }) as const);
    const answers = await reflect(client, ServerReflectionDefinition.fullName, questions);
    assert.deepEqual(
      answers.map((answer) => filesIn(answer)[0]?.name),
      symbols.map(() => 'cri/api.proto'),
    );
    const [api] = filesIn(answers[0]);
    const described = api?.service.find(({ name }) => name === 'RuntimeService')?.method.map(({ name }) => name);
    const methodNames = Object.values(RuntimeServiceDefinition.methods).map(({ name }) => name);
    assert.deepEqual(described?.sort(), methodNames.sort());
  });

  it('answers by file name, tells of no extensions, and says what it does not know', async (t) => {
    const client = rawClient(t, (await startServer(t)).socket);
    const [file, noFile, noSymbol, extensions, noType, extension, nothing] = await reflect(
      client,
      ServerReflectionDefinition.fullName,
      [
        { $case: 'fileByFilename', value: 'grpc/health/v1/health.proto' },
        { $case: 'fileByFilename', value: '../../etc/passwd' },
        { $case: 'fileContainingSymbol', value: '__proto__' },
        { $case: 'allExtensionNumbersOfType', value: 'runtime.v1.Mount' },
        { $case: 'allExtensionNumbersOfType', value: 'no.Type' },
        { $case: 'fileContainingExtension', value: { containingType: 'runtime.v1.Mount', extensionNumber: 7 } },
        undefined,
      ],
    );
    assert.deepEqual(
      filesIn(file).map(({ name }) => name),
      ['grpc/health/v1/health.proto'],
    );
    assert.ok(extensions?.$case === 'allExtensionNumbersResponse');
    assert.deepEqual(extensions.value, { baseTypeName: 'runtime.v1.Mount', extensionNumber: [] });
    assert.deepEqual([noFile, noSymbol, noType, extension].map(errorIn), Array(4).fill(GrpcCode.NOT_FOUND));
    assert.equal(errorIn(nothing), GrpcCode.INVALID_ARGUMENT);
  });

  it('costs nothing until it is asked: neither descriptors nor a proto loader are loaded with the server', async () => {
    const server = join(import.meta.dirname, '../../../src/adapters/cri/server.ts');
    const script = `
      const { registerHooks } = await import('node:module');
      const loaded = [];
      registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
      await import(${JSON.stringify(server)});
      console.log(JSON.stringify(loaded.filter((url) => /wire\\/descriptors|proto-loader|protobufjs/.test(url))));
    `;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    assert.deepEqual(JSON.parse(stdout), []);
  });
});
