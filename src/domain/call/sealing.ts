/**
 * What the node's policy has sealed before it is written down, beside what C12 seals always: values of labels and
 * annotations by their keys, words of commands. A sealed text is a token from then on, for everybody; only the words of a
 * command are filled in again, by whoever runs it. Pure, but for `tokenOf`.
 */
import type { SealRules } from '../model/audit-policy.ts';
import type { OciArg } from '../model/oci.ts';
import { matchesWildcard } from '../values/wildcard.ts';

type Entries = Readonly<Record<string, string>>;

export interface Seals {
  readonly labels: <T extends Entries | undefined>(entries: T) => T;
  readonly annotations: <T extends Entries | undefined>(entries: T) => T;
  /** The program is never sealed. */
  readonly words: (cmd: readonly string[]) => readonly OciArg[];
  readonly allArguments: (cmd: readonly string[]) => readonly OciArg[];
}

/** What kubelet, scribe itself and what is below it read: under a token it would say something else. */
const READ_BY_OTHERS = [
  ...['io.kubernetes.', 'kubernetes.io/ingress-bandwidth', 'kubernetes.io/egress-bandwidth', 'cdi.k8s.io/'],
  ...[
    'rdt.resources.beta.kubernetes.io/',
    'blockio.resources.beta.kubernetes.io/',
    'required-plugins.noderesource.dev',
  ],
  ...['org.systemd.property.', 'run.oci.', 'org.criu.', 'io.containerd.'],
];

/** The beginning of keys that stay as they are, and that everything the pattern matches has; null: there is none. */
export const readByOthers = (pattern: string): string | null =>
  READ_BY_OTHERS.find((beginning) => pattern.startsWith(beginning)) ?? null;

export function sealsOf(rules: SealRules, tokenOf: (value: string) => string): Seals {
  const matchesAny = (patterns: readonly string[], text: string): boolean =>
    patterns.some((pattern) => matchesWildcard(pattern, text));

  const sealing =
    (patterns: readonly string[]) =>
    <T extends Entries | undefined>(entries: T): T => {
      if (patterns.length === 0 || entries === undefined) return entries;
      const sealed = Object.entries(entries).map(([key, value]) => {
        const stays = value === '' || readByOthers(key) !== null || !matchesAny(patterns, key);
        return [key, stays ? value : tokenOf(value)] as const;
      });
      // The same keys, with text behind each.
      return Object.fromEntries(sealed) as unknown as T;
    };

  const word = (text: string): OciArg => (text === '' ? '' : { token: tokenOf(text) });
  const isSealed = (text: string, before: string | undefined): boolean =>
    matchesAny(rules.execArguments, text) ||
    rules.execOptions.some((option) => before === option || text.startsWith(`${option}=`));

  return {
    labels: sealing(rules.labels),
    annotations: sealing(rules.annotations),
    words: (cmd) => cmd.map((text, index) => (index > 0 && isSealed(text, cmd[index - 1]) ? word(text) : text)),
    allArguments: (cmd) => cmd.map((text, index) => (index === 0 ? text : word(text))),
  };
}
