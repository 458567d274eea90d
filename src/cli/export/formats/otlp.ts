/** Records as OpenTelemetry logs: what an OTLP/HTTP receiver takes as JSON, many records in one request. Pure. */
import { codeName } from '../../../domain/model/errors.ts';
import type { Item } from '../item.ts';
import { bodyAt, type Level } from '../level.ts';

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue: string } | { readonly intValue: string };
}

const INFO = { severityNumber: 9, severityText: 'INFO' } as const;
const WARN = { severityNumber: 13, severityText: 'WARN' } as const;

const text = (key: string, value: string | null | undefined): Attribute[] =>
  value === null || value === undefined || value === '' ? [] : [{ key, value: { stringValue: value } }];

const number = (key: string, value: number | null | undefined): Attribute[] =>
  value === null || value === undefined ? [] : [{ key, value: { intValue: String(value) } }];

const attributesOf = ({ record, object, call }: Item): Attribute[] => {
  const { caller } = call?.received?.event.body ?? {};
  return [
    ...number('scribe.seq', record.seq),
    ...text('scribe.stream', record.stream),
    ...number('scribe.cause', record.cause),
    ...number('scribe.call', record.call),
    ...text('container.id', object.kind === 'container' ? object.id : null),
    ...text('k8s.container.name', object.container?.name),
    ...text('k8s.pod.name', object.pod?.name),
    ...text('k8s.namespace.name', object.pod?.namespace),
    ...text('scribe.pod_sandbox.id', object.podSandboxId),
    ...text('container.image.id', object.kind === 'image' ? object.id : null),
    ...text('container.image.name', object.image),
    ...text('rpc.method', call?.method),
    ...text('rpc.grpc.status', call === null ? null : codeName(call.completed.event.body.code)),
    ...number('process.pid', caller?.pid),
    ...text('process.executable.path', caller?.executable),
    ...number('process.user.id', caller?.uid),
  ];
};

const logRecord = (item: Item, level: Level): object => {
  const { record, call } = item;
  const time = String(record.atNs);
  return {
    timeUnixNano: time,
    observedTimeUnixNano: time,
    ...((call?.completed.event.body.code ?? 0) === 0 ? INFO : WARN),
    eventName: `scribe.${record.type}`,
    body: { stringValue: JSON.stringify(bodyAt(level, record)) },
    attributes: attributesOf(item),
  };
};

/** An ExportLogsServiceRequest with these records, which are of one node. */
export const otlpRequest = (items: readonly Item[], level: Level): object => ({
  resourceLogs: [
    {
      resource: { attributes: [...text('service.name', 'scribe'), ...text('host.name', items[0]?.node)] },
      scopeLogs: [{ scope: { name: 'scribe.journal' }, logRecords: items.map((item) => logRecord(item, level)) }],
    },
  ],
});
