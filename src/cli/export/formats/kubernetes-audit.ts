/** A call that has ended as an Event of audit.k8s.io/v1, as kube-apiserver writes them; other records have none. Pure. */
import { codeName } from '../../../domain/model/errors.ts';
import { utcTime } from '../../format.ts';
import type { NamedObject } from '../../history/named-object.ts';
import { type EndedCall, type Format, keyOf } from '../item.ts';
import type { Level } from '../level.ts';
import { verbOf } from './verbs.ts';

const LEVEL_NAMES = {
  metadata: 'Metadata',
  request: 'Request',
  'request-response': 'RequestResponse',
} as const satisfies Record<Level, string>;

/** What HTTP calls the outcomes that gRPC has numbers for. */
const HTTP_STATUS: ReadonlyMap<number, number> = new Map([
  [0, 200],
  [1, 499],
  [3, 400],
  [4, 504],
  [5, 404],
  [6, 409],
  [7, 403],
  [8, 429],
  [9, 400],
  [10, 409],
  [12, 501],
  [14, 503],
  [16, 401],
]);
const INTERNAL_ERROR = 500;

/** Kubernetes gives its times to the microsecond. */
const microTime = (ns: bigint): string => utcTime(ns).replace(/(\.\d{6})\d*Z$/, '$1Z');

const RESOURCES = { sandbox: 'pods', container: 'containers', image: 'images' } as const;

const objectRef = (object: NamedObject | undefined): object => {
  if (object === undefined || object.kind === 'call' || object.kind === 'node') return {};
  const { kind, id, pod, container, image } = object;
  const name = kind === 'sandbox' ? pod?.name : kind === 'container' ? container?.name : image;
  return {
    objectRef: {
      resource: RESOURCES[kind],
      ...(pod === null ? {} : { namespace: pod.namespace }),
      ...(name === undefined || name === null ? {} : { name }),
      ...(id === null ? {} : { uid: id }),
    },
  };
};

const bodiesOf = ({ received, completed }: EndedCall, level: Level): object => ({
  ...(level === 'metadata' || received === null ? {} : { requestObject: received.event.body.request }),
  ...(level === 'request-response' ? { responseObject: completed.event.body.response ?? {} } : {}),
});

export const kubernetesAudit: Format = (item, level) => {
  const { call, node, record } = item;
  if (call === null) return null;
  const { received, completed, method } = call;
  const { code, failure, durationNs, response } = completed.event.body;
  const exitCode = response?.exitCode;
  const caller = received?.event.body.caller ?? null;
  return {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: LEVEL_NAMES[level],
    auditID: keyOf(item),
    stage: 'ResponseComplete',
    requestURI: `/runtime.v1/${method}`,
    verb: verbOf(method),
    user: caller === null ? { username: 'unknown' } : { username: `uid:${caller.uid}`, uid: String(caller.uid) },
    sourceIPs: [],
    ...(caller === null ? {} : { userAgent: caller.executable }),
    ...objectRef(call.objects[0]),
    responseStatus: {
      metadata: {},
      status: code === 0 ? 'Success' : 'Failure',
      code: HTTP_STATUS.get(code) ?? INTERNAL_ERROR,
      ...(failure === undefined ? {} : { reason: failure.reason }),
      ...(failure === undefined || level !== 'request-response' ? {} : { message: failure.message }),
    },
    ...bodiesOf(call, level),
    requestReceivedTimestamp: microTime(received?.record.atNs ?? record.atNs - BigInt(durationNs)),
    stageTimestamp: microTime(record.atNs),
    annotations: {
      'scribe/node': node,
      'scribe/seq': String(record.seq),
      'scribe/method': method,
      'scribe/grpc-code': codeName(code),
      ...(exitCode === undefined ? {} : { 'scribe/exit-code': String(exitCode) }),
      ...(caller === null ? {} : { 'scribe/pid': String(caller.pid) }),
    },
  };
};
