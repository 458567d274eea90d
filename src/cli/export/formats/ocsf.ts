/**
 * Records as events of the Open Cybersecurity Schema Framework 1.8: a call that has ended is API Activity, a container's
 * start and end are Process Activity, those of the daemon Application Lifecycle. Other records have no class. Pure.
 */
import { codeName } from '../../../domain/model/errors.ts';
import { NamespaceMode } from '../../../domain/model/cri.ts';
import type { Caller } from '../../../domain/model/records.ts';
import { knownAs } from '../../history/entries.ts';
import type { NamedObject } from '../../history/named-object.ts';
import type { ContainerName } from '../../history/names.ts';
import { type EndedCall, type Format, type Item, keyOf, msOf } from '../item.ts';
import { bodyAt, type Level } from '../level.ts';
import { type Verb, verbOf } from './verbs.ts';

const OCSF_VERSION = '1.8.0';
const SHA_256 = 3;
const INFORMATIONAL = 1;
const LOW = 2;
const SERVER = 1;

const CLASSES = {
  api: { class_uid: 6003, category_uid: 6 },
  process: { class_uid: 1007, category_uid: 1 },
  lifecycle: { class_uid: 6002, category_uid: 6 },
} as const;

const API_ACTIVITY = { create: 1, get: 2, update: 3, delete: 4, connect: 99 } as const satisfies Record<Verb, number>;
const PROCESS_LAUNCH = 1;
const PROCESS_TERMINATE = 2;
/** The shim has made the process before, and has it execute the container's program now. */
const LAUNCH_BY_EXEC = 3;
const LIFECYCLE_START = 3;
const LIFECYCLE_STOP = 4;

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const PRODUCT = { name: 'scribe', vendor_name: 'scribe' } as const;

const base = (item: Item, of: keyof typeof CLASSES, activityId: number, ok: boolean, profiles: readonly string[]) => {
  const { record, hashes } = item;
  const { class_uid, category_uid } = CLASSES[of];
  return {
    class_uid,
    category_uid,
    activity_id: activityId,
    type_uid: class_uid * 100 + activityId,
    severity_id: ok ? INFORMATIONAL : LOW,
    status_id: ok ? 1 : 2,
    time: msOf(record.atNs),
    metadata: {
      version: OCSF_VERSION,
      product: PRODUCT,
      uid: keyOf(item),
      sequence: record.seq,
      ...(record.call === null ? {} : { correlation_uid: `${item.node}/${record.call}` }),
      ...(profiles.length === 0 ? {} : { profiles }),
    },
    ...(hashes === null
      ? {}
      : { raw_data_hash: { algorithm_id: SHA_256, value: Buffer.from(hashes.bodyHash).toString('hex') } }),
  };
};

const actorOf = (caller: Caller | null): object =>
  caller === null
    ? { app_name: 'unknown' }
    : {
        process: { pid: caller.pid, path: caller.executable, user: { uid: String(caller.uid) } },
        user: { uid: String(caller.uid) },
      };

const RESOURCE_TYPES = { sandbox: 'pod', container: 'container', image: 'image', call: 'call', node: 'node' } as const;

const resourceOf = ({ kind, id, pod, container, image }: NamedObject): object => {
  const name = kind === 'sandbox' ? pod?.name : kind === 'container' ? container?.name : image;
  return {
    type: RESOURCE_TYPES[kind],
    ...(id === null ? {} : { uid: id }),
    ...(name === undefined || name === null ? {} : { name }),
    ...(pod === null ? {} : { namespace: pod.namespace }),
  };
};

const apiActivity = (item: Item, call: EndedCall, level: Level): object => {
  const { received, completed, method, objects } = call;
  const { code, failure, durationNs, response } = completed.event.body;
  const exitCode = response?.exitCode;
  const verb = verbOf(method);
  const message = failure !== undefined && level === 'request-response' ? { error_message: failure.message } : {};
  return {
    ...base(item, 'api', API_ACTIVITY[verb], code === 0, []),
    ...(API_ACTIVITY[verb] === API_ACTIVITY.connect ? { activity_name: 'Connect' } : {}),
    status_code: codeName(code),
    actor: actorOf(received?.event.body.caller ?? null),
    api: {
      operation: method,
      service: { name: 'runtime.v1' },
      request: {
        uid: `${item.node}/${item.record.call ?? item.record.seq}`,
        ...(level === 'metadata' || received === null ? {} : { data: received.event.body.request }),
      },
      response: { code, ...(failure === undefined ? {} : { error: failure.reason }), ...message },
    },
    src_endpoint: { name: item.node },
    ...(objects.length === 0 ? {} : { resources: objects.map(resourceOf) }),
    // `duration` is for aggregates.
    unmapped: { durationNs: String(durationNs), ...(exitCode === undefined ? {} : { exitCode }) },
  };
};

/** The number of a container's first process where it sees itself; null: in a namespace with others, nobody was told. */
const namespacePid = (container: ContainerName | null, pid: number | null): number | null => {
  switch (container?.pidMode) {
    case NamespaceMode.CONTAINER:
      return 1;
    case NamespaceMode.NODE:
      return pid;
    default:
      return null;
  }
};

const processActivity = (item: Item, activityId: number, more: object, pid: number | null): object => {
  const { id, container, pod, podSandboxId } = item.object;
  const insidePid = namespacePid(container, pid);
  return {
    ...base(item, 'process', activityId, true, ['container']),
    actor: { app_name: PRODUCT.name },
    device: { type_id: SERVER, hostname: item.node },
    process: {
      uid: id,
      ...(pid === null ? {} : { pid }),
      ...(insidePid === null ? {} : { namespace_pid: insidePid }),
      ...(container === null ? {} : { name: container.name }),
      container: {
        uid: id,
        runtime: PRODUCT.name,
        orchestrator: 'kubernetes',
        ...(container === null ? {} : { name: container.name }),
        ...(container === null || container.imageId === '' ? {} : { image: { uid: container.imageId } }),
        // The schema takes nothing else; kubelet's own pods, of manifests on the node, have another form.
        ...(pod !== null && UUID.test(pod.uid) ? { pod_uuid: pod.uid } : {}),
      },
    },
    ...more,
    unmapped: {
      ...(podSandboxId === null ? {} : { podSandboxId }),
      ...(pod === null ? {} : { podName: pod.name, podNamespace: pod.namespace, podUid: pod.uid }),
    },
  };
};

const lifecycle = (item: Item, activityId: number, level: Level): object => ({
  ...base(item, 'lifecycle', activityId, true, []),
  app: PRODUCT,
  unmapped: bodyAt(level === 'request-response' ? level : 'metadata', item.record),
});

export const ocsf: Format = (item, level) => {
  const { record, call } = item;
  if (call !== null) return apiActivity(item, call, level);
  const started = knownAs('container.started', record);
  if (started !== null)
    return processActivity(item, PROCESS_LAUNCH, { launch_type_id: LAUNCH_BY_EXEC }, started.event.body.pid);
  const exited = knownAs('container.exited', record);
  if (exited !== null)
    return processActivity(item, PROCESS_TERMINATE, { exit_code: exited.event.body.exitStatus }, null);
  if (record.type === 'daemon.started') return lifecycle(item, LIFECYCLE_START, level);
  return record.type === 'daemon.stopped' ? lifecycle(item, LIFECYCLE_STOP, level) : null;
};
