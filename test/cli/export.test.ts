/**
 * `scribe export`: every format of one story, held against what its readers demand; what is left out at each level;
 * and a receiver of OTLP that fails at first.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import Ajv from 'ajv';
import { NamespaceMode } from '../../src/domain/model/cri.ts';
import { FailureError } from '../../src/domain/model/errors.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { FACTS } from '../simulation/facts.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { type Story, tell } from './story.ts';
import { jsonLines, kubelet, recordsOf, type Root, rootWith, type Said, scribe, startNode } from './support.ts';

const owner = cleanupAfterAll();

const POD_UID = '6aee5d82-6a7b-4be5-a859-8f1d964996cb';

/** nginx of the first pod has a PID namespace of its own, that of the other pod has the node's. */
const withPids = ({ type, stream, body }: JournalRecord): string => {
  if (type !== 'container.requested') return body;
  const requested = JSON.parse(body) as { config: object };
  const pid = stream.endsWith(story.nginx) ? NamespaceMode.CONTAINER : NamespaceMode.NODE;
  const linux = { securityContext: { namespaceOptions: { pid } } };
  return JSON.stringify({ ...requested, config: { ...requested.config, linux } });
};

let story: Story;
let root: Root;
before(async () => {
  story = await tell();
  // One pod as API servers make them; the other's uid is of another form, as kubelet gives to those of manifests.
  const records = story.records.map((record) => ({
    ...record,
    body: withPids(record).replaceAll('"uid":"default-web"', `"uid":"${POD_UID}"`),
  }));
  root = await rootWith(owner, records);
});

const exported = async (...words: string[]): Promise<string> => {
  const said: Said = await scribe(['export', '--root', root.dir, '--node', 'node7', ...words]);
  assert.equal(said.exitStatus, 0, said.stderr);
  return said.stdout;
};

const countOf = (type: string): number => story.records.filter((record) => record.type === type).length;

interface OcsfEvent {
  readonly class_uid: number;
  readonly type_uid: number;
  readonly metadata: { readonly uid: string; readonly sequence: number };
  readonly api?: { readonly operation: string };
  readonly status_code?: string;
  readonly resources?: readonly object[];
  readonly exit_code?: number;
  readonly launch_type_id?: number;
  readonly process?: {
    readonly pid?: number;
    readonly namespace_pid?: number;
    readonly container: {
      readonly uid: string;
      readonly pod_uuid?: string;
      readonly image?: { readonly uid: string };
    };
  };
}

describe('export', () => {
  test('json: every record, with its columns, its node and its hashes', async () => {
    const lines = jsonLines<{ node: string; seq: number; type: string; bodyHash: string; object: object | null }>(
      await exported(),
    );
    assert.deepEqual(
      lines.map(({ node, seq, type }) => [node, seq, type]),
      story.records.map(({ seq, type }) => ['node7', seq, type]),
    );
    assert.ok(lines.every(({ bodyHash }) => /^[0-9a-f]{64}$/.test(bodyHash)));
    const started = lines.find(({ type }) => type === 'container.started');
    assert.partialDeepStrictEqual(started?.object, { kind: 'container', id: story.nginx, name: 'nginx' });
    const objectsOf = (wanted: string): unknown[] =>
      lines.filter(({ type }) => type === wanted).map(({ object }) => object);
    // The beginning of a call and its end are about the same, also where it was refused and made nothing.
    for (const type of ['call.received', 'call.completed']) {
      assert.partialDeepStrictEqual(objectsOf(type)[1], { kind: 'pod', id: story.web, name: 'web' });
      assert.partialDeepStrictEqual(objectsOf(type).at(type === 'call.completed' ? -2 : -3), {
        kind: 'container',
        name: 'second',
        pod: { name: 'web', namespace: 'test' },
      });
    }
  });

  test('the node is called as the journal knows it, on whatever machine that is read', async () => {
    const { stdout, stderr } = await scribe(['export', '--root', root.dir]);
    assert.deepEqual(
      new Set(jsonLines<{ node: string }>(stdout).map(({ node }) => node)),
      new Set([FACTS.node.hostname]),
      stderr,
    );
    assert.notEqual(hostname(), FACTS.node.hostname);
  });

  test('ocsf: each event is valid against the schema of its class, calls are API Activity, containers Process Activity', async () => {
    const schemas = new Map(
      (['api_activity', 'process_activity', 'application_lifecycle'] as const).map((name) => {
        const path = join(import.meta.dirname, `../support/ocsf/${name}.json`);
        const {
          $schema: _draft,
          $id: _id,
          ...schema
        } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
        return [name, new Ajv({ allErrors: true }).compile(schema)] as const;
      }),
    );
    const names = new Map([
      [6003, 'api_activity'],
      [1007, 'process_activity'],
      [6002, 'application_lifecycle'],
    ] as const);
    for (const level of ['metadata', 'request-response']) {
      const events = jsonLines<OcsfEvent>(await exported('--format', 'ocsf', '--level', level));
      for (const event of events) {
        const validate = schemas.get(names.get(event.class_uid as 6003) ?? 'api_activity');
        assert.ok(validate?.(event), `${JSON.stringify(event)}\n${JSON.stringify(validate?.errors)}`);
      }
      const ofClass = (uid: number): OcsfEvent[] => events.filter(({ class_uid }) => class_uid === uid);
      assert.equal(ofClass(6003).length, countOf('call.completed'));
      assert.equal(ofClass(1007).length, countOf('container.started') + countOf('container.exited'));
      assert.equal(ofClass(6002).length, countOf('daemon.started') + countOf('daemon.stopped'));
      assert.ok(ofClass(6002).length > 0 && ofClass(1007).length >= 4);
      const exec = events.find(({ api }) => api?.operation === 'ExecSync');
      assert.partialDeepStrictEqual(exec, {
        type_uid: 600399,
        status_code: 'OK',
        actor: { process: { pid: 4711, user: { uid: '1000' } } },
        resources: [{ type: 'container', uid: story.nginx, name: 'nginx', namespace: 'default' }],
        unmapped: { exitCode: 3 },
      });
      const refused = events.filter(({ status_code, resources }) => status_code === 'NOT_FOUND' && resources);
      assert.partialDeepStrictEqual(refused[0]?.resources, [{ type: 'container', name: 'second', namespace: 'test' }]);
      const uuids = new Map(ofClass(1007).map(({ process }) => [process?.container.uid, process?.container]));
      assert.equal(uuids.get(story.nginx)?.pod_uuid, POD_UID);
      assert.match(uuids.get(story.nginx)?.image?.uid ?? '', /^sha256:/);
      assert.ok([...uuids.values()].some((container) => container?.pod_uuid === undefined));
      const launches = ofClass(1007).filter(({ type_uid }) => type_uid === 100701);
      assert.ok(launches.every(({ launch_type_id }) => launch_type_id === 3));
      const [own, others] = [true, false].map((isNginx) =>
        launches.find(({ process }) => (process?.container.uid === story.nginx) === isNginx),
      );
      assert.equal(own?.process?.namespace_pid, 1);
      assert.ok(others?.process?.pid !== undefined && others.process.namespace_pid === others.process.pid);
      assert.ok(ofClass(1007).some(({ type_uid, exit_code }) => type_uid === 100702 && exit_code === 137));
    }
    const valid = schemas.get('api_activity');
    assert.ok(!valid?.({ class_uid: 6003 }), 'the schema refuses what lacks something');
  });

  test('kubernetes-audit: an Event for each call that ended, in the words of audit.k8s.io/v1', async () => {
    const events = jsonLines<Record<string, unknown>>(await exported('--format', 'kubernetes-audit'));
    assert.equal(events.length, countOf('call.completed'));
    const exec = events.find(({ requestURI }) => requestURI === '/runtime.v1/ExecSync');
    assert.partialDeepStrictEqual(exec, {
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      level: 'Metadata',
      stage: 'ResponseComplete',
      verb: 'connect',
      user: { username: 'uid:1000', uid: '1000' },
      objectRef: { resource: 'containers', namespace: 'default', name: 'nginx', uid: story.nginx },
      annotations: { 'scribe/exit-code': '3' },
      responseStatus: { status: 'Success', code: 200 },
    });
    for (const { requestReceivedTimestamp: from, stageTimestamp: to } of events) {
      assert.match(String(to), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
      assert.ok(String(from) <= String(to));
    }
    assert.ok(!JSON.stringify(events).includes('/etc/hostname'));
    const [whole] = jsonLines<{ requestObject?: { cmd: string[] } }>(
      await exported('--format', 'kubernetes-audit', '--level', 'request', '--container', 'nginx', '--since', '1'),
    ).filter(({ requestObject }) => requestObject !== undefined && 'cmd' in requestObject);
    assert.deepEqual(whole?.requestObject?.cmd, ['cat', '/etc/hostname']);
  });

  test('an image that a call named and the node never had is told by that name, in every format', async () => {
    const node = await startNode({
      perform: {
        PullImage: async () => {
          throw new FailureError('ImageNotFound', 'there is none');
        },
      },
    });
    const image = 'registry.test/none:1';
    await node.ask({ method: 'PullImage', image, credentials: null }, kubelet);
    await node.ask({ method: 'RemoveImage', image }, kubelet);
    const { dir } = await rootWith(owner, recordsOf(node));
    const told = async (format: string): Promise<unknown[]> => {
      const { stdout } = await scribe(['export', '--root', dir, '--format', format]);
      return jsonLines<Record<string, unknown>>(stdout).filter((line) => JSON.stringify(line).includes(image));
    };
    const named = { kind: 'image', id: null, name: image };
    assert.partialDeepStrictEqual(
      (await told('json')).map((line) => (line as { object: unknown }).object),
      [named, named, named, named],
    );
    const resources = [{ type: 'image', name: image }];
    assert.partialDeepStrictEqual(await told('ocsf'), [{ resources }, { resources }]);
    const objectRef = { resource: 'images', name: image };
    assert.partialDeepStrictEqual(await told('kubernetes-audit'), [{ objectRef }, { objectRef }]);
    assert.match(
      JSON.stringify(await told('otlp')),
      /"container.image.name","value":\{"stringValue":"registry.test\/none:1"/,
    );
  });

  test('cloudevents: an event for each record, with the attributes that 1.0 requires', async () => {
    const events = jsonLines<Record<string, unknown>>(await exported('--format', 'cloudevents'));
    assert.equal(events.length, story.records.length);
    assert.equal(new Set(events.map(({ id }) => id)).size, events.length);
    for (const event of events) {
      assert.partialDeepStrictEqual(event, { specversion: '1.0', source: '/scribe/node7' });
      assert.match(String(event['type']), /^scribe\.[a-z.]+$/);
      assert.ok(!Number.isNaN(Date.parse(String(event['time']))));
    }
  });

  test('a pod alone: its records and the calls about it, and nothing of others', async () => {
    const lines = jsonLines<{ stream: string; type: string }>(await exported('--pod', 'default/web'));
    const streams = new Set(lines.map(({ stream }) => stream).filter((stream) => !stream.startsWith('call/')));
    assert.deepEqual([...streams].sort(), [`container/${story.nginx}`, `sandbox/${story.web}`]);
    assert.ok(lines.some(({ type }) => type === 'call.completed'));
  });

  test('what cannot be is refused with what can', async () => {
    for (const [words, said] of [
      [['--format', 'xml'], /--format xml: there are json, ocsf, /],
      [['--level', 'all'], /--level all: there are metadata, request, request-response/],
      [['--endpoint', 'http://127.0.0.1:1'], /--endpoint goes with --format otlp/],
      [['--tlog', '/tmp/x', '--level', 'request'], /--tlog writes all of the tree: it does not go with --level/],
      [['--follow', '--until', 'now'], /--follow goes on/],
    ] as const) {
      const { exitStatus, stderr } = await scribe(['export', '--root', root.dir, ...words]);
      assert.equal(exitStatus, 2, stderr);
      assert.match(stderr, said);
    }
  });
});

describe('export to a target', () => {
  test('otlp: a receiver that fails at first gets every record', async (t) => {
    const got: { attributes: { key: string; value: { intValue?: string; stringValue?: string } }[] }[] = [];
    let posts = 0;
    const server = createServer((request, response) => {
      let text = '';
      request.on('data', (chunk: Buffer) => (text += chunk.toString()));
      request.on('end', () => {
        posts += 1;
        assert.equal(request.url, '/v1/logs');
        if (posts > 1) {
          const body = JSON.parse(text) as { resourceLogs: { scopeLogs: { logRecords: typeof got }[] }[] };
          got.push(...(body.resourceLogs[0]?.scopeLogs[0]?.logRecords ?? []));
        }
        response.writeHead(posts > 1 ? 200 : 503).end('{}');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    await exported('--format', 'otlp', '--endpoint', `http://127.0.0.1:${port}`);
    const valueOf = (index: number, key: string): string | undefined => {
      const value = got[index]?.attributes.find((attribute) => attribute.key === key)?.value;
      return value?.intValue ?? value?.stringValue;
    };
    assert.deepEqual(
      got.map((_, index) => Number(valueOf(index, 'scribe.seq'))),
      story.records.map(({ seq }) => seq),
    );
    const started = story.records.findIndex(({ type }) => type === 'container.started');
    assert.deepEqual(
      ['container.id', 'k8s.container.name', 'k8s.pod.name', 'k8s.namespace.name'].map((key) => valueOf(started, key)),
      [story.nginx, 'nginx', 'web', 'default'],
    );
  });
});
