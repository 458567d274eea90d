/** What the measurements come to, for people: a table in Markdown with medians, ratios, goals, and what failed. Pure. */
import type { Measurement } from './measure.ts';
import type { PeerName } from './runtimes.ts';
import { type Goal, type Metric, type MetricKey, metrics } from './metrics.ts';
import { alone, type Comparison, compare } from './statistics.ts';

export interface Row {
  readonly key: MetricKey;
  readonly comparison: Comparison;
  /** null: there is no goal. */
  readonly goal: { readonly text: string; readonly met: boolean } | null;
}

const keys = Object.keys(metrics) as MetricKey[];

/** Whether the goal can be held against what was measured: not beside another scribe, nor a ratio of one alone. */
const applies = (goal: Goal, peerName: PeerName | null): boolean =>
  peerName === null ? !goal.isBesidePeer : peerName === 'containerd';

/** Every metric that was measured, in the order of the table. Without a peer nothing is compared. */
export const rowsOf = (measurements: readonly Measurement[], peerName: PeerName | null): readonly Row[] => {
  const figuresOf = (key: MetricKey, runtime: Measurement['runtime']): number[] =>
    measurements
      .filter((measurement) => measurement.runtime === runtime)
      .flatMap(({ figures }) => (figures[key] === undefined ? [] : [figures[key]]));
  return keys
    .map((key) => ({
      key,
      ours: figuresOf(key, 'scribe'),
      peer: peerName === null ? [] : figuresOf(key, peerName),
    }))
    .filter(({ ours }) => ours.length > 0)
    .map(({ key, ours, peer }) => {
      const { better, goal, isOursAlone = false }: Metric = metrics[key];
      const comparison =
        (isOursAlone || peerName === null) && peer.length === 0 ? alone(ours) : compare(ours, peer, better);
      return {
        key,
        comparison,
        goal: goal === undefined || !applies(goal, peerName) ? null : { text: goal.text, met: goal.isMet(comparison) },
      };
    });
};

/** Three digits are all that a measurement of this kind bears. */
const rounded = (value: number): string => {
  if (Number.isNaN(value)) return '';
  return value >= 100 ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(3)));
};

const cellsOf = ({ key, comparison, goal }: Row): readonly string[] => {
  const { name, unit } = metrics[key];
  const { ours, peer, ahead, aheadMin, aheadMax } = comparison;
  return [
    `${name}, ${unit}`,
    rounded(ours),
    rounded(peer),
    ...(Number.isNaN(ahead) ? ['', ''] : [ahead.toFixed(2), `${aheadMin.toFixed(2)} to ${aheadMax.toFixed(2)}`]),
    goal?.text ?? '',
    goal === null ? '' : goal.met ? 'met' : 'MISSED',
  ];
};

/** The rows as a Markdown table that a terminal shows well too. */
export const tableOf = (rows: readonly Row[], peerName: PeerName | null): string => {
  const head = ['', 'scribe', peerName ?? '', 'ratio', 'in the rounds', 'goal', ''];
  const lines = [head, ...rows.map(cellsOf)];
  const widths = head.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0), 2));
  const isText = (column: number): boolean => column === 0 || column >= 5;
  const pad = (cell: string, column: number): string =>
    isText(column) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0);
  const rule = widths.map((width, column) => (isText(column) ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  const show = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [...lines.slice(0, 1).map((cells) => show(cells.map(pad))), show(rule)]
    .concat(lines.slice(1).map((cells) => show(cells.map(pad))))
    .join('\n');
};

/** Everything that failed while it was measured: figures of such a run say little. */
export const errorsOf = (measurements: readonly Measurement[]): readonly string[] =>
  measurements.flatMap(({ phase, round, runtime, errors }) =>
    errors.map((error) => `${runtime}, ${phase} ${round}: ${error}`),
  );
