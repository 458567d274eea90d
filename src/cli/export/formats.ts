/** The formats by their names, and how a page of records becomes what a target gets. Pure. */
import { misuse } from '../command.ts';
import { jsonLine } from '../format.ts';
import { cloudEvents } from './formats/cloud-events.ts';
import { jsonLines } from './formats/json-lines.ts';
import { kubernetesAudit } from './formats/kubernetes-audit.ts';
import { ocsf } from './formats/ocsf.ts';
import { otlpRequest } from './formats/otlp.ts';
import type { Format, Item } from './item.ts';
import type { Level } from './level.ts';

/** Writes some records of one node; '' where the format has nothing for them. */
export type WritePage = (items: readonly Item[], level: Level) => string;

const byItem =
  (format: Format): WritePage =>
  (items, level) =>
    items
      .map((item) => format(item, level))
      .filter((object) => object !== null)
      .map(jsonLine)
      .join('');

const FORMATS = {
  json: byItem(jsonLines),
  ocsf: byItem(ocsf),
  'kubernetes-audit': byItem(kubernetesAudit),
  cloudevents: byItem(cloudEvents),
  otlp: (items, level) => (items.length === 0 ? '' : jsonLine(otlpRequest(items, level))),
} as const satisfies Record<string, WritePage>;

export type FormatName = keyof typeof FORMATS;

const isFormat = (text: string): text is FormatName => Object.hasOwn(FORMATS, text);

export const formatOption = {
  value: 'FORMAT',
  about:
    'json (default: every record with its columns), ocsf (1.8: API, Process and Application Lifecycle activity), kubernetes-audit (audit.k8s.io/v1 Event, a call each), cloudevents (1.0, a record each) or otlp (OpenTelemetry logs). An object per line.',
} as const;

export const parseFormat = (text: string = 'json'): FormatName => {
  if (!isFormat(text)) throw misuse(`--format ${text}: there are ${Object.keys(FORMATS).join(', ')}.`);
  return text;
};

export const writePageOf = (name: FormatName): WritePage => FORMATS[name];
