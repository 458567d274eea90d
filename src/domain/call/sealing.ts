/**
 * What the node's policy has sealed before it is written down, beside what C12 seals always: values of labels and
 * annotations by their keys, words of commands. A sealed text is a token from then on, for everybody; only the words of a
 * command are filled in again, by whoever runs it. Pure, but for `tokenOf`.
 */
import type { SealRules } from '../model/audit-policy.ts';
import type { ContainerConfig } from '../model/cri.ts';
import type { OciArg } from '../model/oci.ts';
import { refuseField } from '../oci/refuse.ts';
import { matchesWildcard } from '../values/wildcard.ts';

type Command = Pick<ContainerConfig, 'command' | 'args'>;
type Entries = Readonly<Record<string, string>>;

interface WordRules {
  readonly options: readonly string[];
  readonly words: readonly string[];
}

export interface Seals {
  readonly labels: <T extends Entries | undefined>(entries: T) => T;
  readonly annotations: <T extends Entries | undefined>(entries: T) => T;
  /**
   * Of commands that are run in containers; the program is never sealed.
   * @throws {FailureError} InvalidField for a word to be sealed that no program can be given
   */
  readonly words: (cmd: readonly string[]) => readonly OciArg[];
  readonly allArguments: (cmd: readonly string[]) => readonly OciArg[];
  /**
   * Of what a container runs: one row of words, since an option may end the command and its value begin the args. Args
   * alone follow the image's entrypoint, so the first of them is a word like the others.
   * @throws as `words`
   */
  readonly command: <C extends Command>(config: C) => C;
}

/** What kubelet, scribe itself and what is below it read: under a token it would say something else. */
const READ_BY_OTHERS = [
  ...['io.kubernetes.', 'kubernetes.io/ingress-bandwidth', 'kubernetes.io/egress-bandwidth', 'cdi.k8s.io/'],
  ...[
    'rdt.resources.beta.kubernetes.io/',
    'blockio.resources.beta.kubernetes.io/',
    'required-plugins.noderesource.dev',
  ],
  ...['org.systemd.property.', 'run.oci.', 'org.criu.', 'io.containerd.', 'io.katacontainers.'],
];

/** Domains of NRI's own plugins, which are given orders by annotations. */
const READ_BY_PLUGINS = ['.noderesource.dev', '.nri.io', '.nri.containerd.io'];

/** What keys that stay as they are begin with, or their domain ends with, all that the pattern matches; null: nothing. */
export const readByOthers = (pattern: string): string | null => {
  const [domain = ''] = pattern.split('/');
  const beginning = READ_BY_OTHERS.find((known) => pattern.startsWith(known));
  return beginning ?? READ_BY_PLUGINS.find((ending) => domain.endsWith(ending)) ?? null;
};

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

  const word = (field: string, text: string): OciArg => {
    // Behind tokens nobody looks at the words again, and what is wrong with one may not be shown.
    if (text.includes('\0'))
      refuseField(field, 'holds a NUL byte in a word that is sealed: no program can be given one');
    return text === '' ? '' : { token: tokenOf(text) };
  };
  const isSealed = ({ options, words }: WordRules, text: OciArg, before: OciArg | undefined): text is string =>
    typeof text === 'string' &&
    (matchesAny(words, text) || options.some((option) => before === option || text.startsWith(`${option}=`)));
  const ofExecs: WordRules = { options: rules.execOptions, words: rules.execArguments };
  const ofContainers: WordRules = { options: rules.containerOptions, words: rules.containerArguments };

  return {
    labels: sealing(rules.labels),
    annotations: sealing(rules.annotations),
    words: (cmd) =>
      cmd.map((text, index) => (index > 0 && isSealed(ofExecs, text, cmd[index - 1]) ? word('cmd', text) : text)),
    allArguments: (cmd) => cmd.map((text, index) => (index === 0 ? text : word('cmd', text))),
    command(config) {
      if (ofContainers.options.length + ofContainers.words.length === 0) return config;
      const { command = [], args = [] } = config;
      const all = [...command, ...args];
      const sealed = all.map((text, index) => {
        const field = index < command.length ? 'command' : 'args';
        const isProgram = index === 0 && command.length > 0;
        return !isProgram && isSealed(ofContainers, text, all[index - 1]) ? word(field, text) : text;
      });
      return {
        ...config,
        ...(config.command === undefined ? {} : { command: sealed.slice(0, command.length) }),
        ...(config.args === undefined ? {} : { args: sealed.slice(command.length) }),
      };
    },
  };
}
