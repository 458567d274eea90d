/**
 * The keys of the audit policy in the configuration file, and what makes a rule of them that can hold. Like schema.ts, of
 * which it is a part; which levels a method can have is the domain's (domain/call/audit.ts).
 */
import * as z from 'zod';
import { levelsOf, methodsLike, nameableMethods, whyNotLevel } from '../domain/call/audit.ts';
import { readByOthers } from '../domain/call/sealing.ts';
import { AUDIT_LEVELS, type AuditLevel, type AuditPolicy } from '../domain/model/audit-policy.ts';
import { choice, key, table, text } from './key-forms.ts';
import { nearest } from './nearest.ts';

const quoted = (words: readonly string[]): string => words.map((word) => JSON.stringify(word)).join(' or ');

/** What is wrong with the level for these methods; null: nothing. */
const levelProblem = (level: AuditLevel, patterns: readonly string[]): string | null => {
  const wrong = patterns.flatMap(methodsLike).find((method) => !levelsOf(method).includes(level));
  if (wrong === undefined) return null;
  const remedy = `write ${quoted(levelsOf(wrong))}, or leave ${wrong} out of methods`;
  return `is ${JSON.stringify(level)}, which ${wrong} can't have: ${whyNotLevel(wrong)}; ${remedy}`;
};

const methodPattern = text.superRefine((pattern, context) => {
  if (methodsLike(pattern).length > 0) return;
  const meant = nearest(pattern, nameableMethods);
  const remedy = meant === null ? 'name an RPC like "ExecSync", or several like "List*"' : `did you mean "${meant}"?`;
  context.addIssue({ code: 'custom', message: `${JSON.stringify(pattern)} is no method; ${remedy}` });
});

const rule = z
  .strictObject(
    {
      level: choice(...AUDIT_LEVELS).meta({
        description:
          'none, metadata, request or request-response. Calls that only read have metadata unless a rule says otherwise, and can have none or request. ExecSync and Exec have request-response, and can have metadata: then the arguments of commands are sealed. Whatever else changes something always has request-response.',
      }),
      methods: z
        .array(methodPattern, { error: 'must be a list of methods' })
        .min(1, 'must name a method')
        .meta({ description: 'RPCs that it is for, with "*" for any letters: ["List*", "ContainerStatus"].' }),
      namespaces: key(
        z.array(text, { error: 'must be a list of namespaces' }),
        [],
        'Namespaces of the pods that it is for, "" for calls that name no pod; empty: all.',
      ),
    },
    { error: 'must be a table' },
  )
  .superRefine(({ level, methods }, context) => {
    const problem = levelProblem(level, methods);
    if (problem !== null) context.addIssue({ code: 'custom', path: ['level'], message: problem });
  });

const keyPattern = text.superRefine((pattern, context) => {
  const known = readByOthers(pattern);
  if (pattern === '') context.addIssue({ code: 'custom', message: 'must be a key, with "*" for any characters' });
  if (known === null) return;
  const message = `${JSON.stringify(pattern)} can't be sealed: kubelet, scribe, OCI runtimes or plugins read what has "${known}"; leave it out`;
  context.addIssue({ code: 'custom', message });
});
const keyPatterns = z.array(keyPattern, { error: 'must be a list of keys' });
const option = text.regex(/^-[^=\s\0]*[^=\s\0-]$/, 'must be an option as commands have it, like "--password" or "-p"');
const wordPattern = text.regex(/^[^\0]*[^*\0][^\0]*$/, 'must be a word, with "*" for any characters');

const sealTable = table(
  'What is sealed before it is recorded, as values of environment variables are: a keyed digest stands in the journal, and wherever else it would be read.',
  {
    exec_options: key(
      z.array(option, { error: 'must be a list of options' }),
      [],
      'Options of commands (ExecSync, Exec): the word after one, or with "=" the whole word.',
    ),
    exec_arguments: key(
      z.array(wordPattern, { error: 'must be a list of words' }),
      [],
      'Words of commands, with "*" for any characters: ["*token=*"]. A script behind "sh -c" is one word.',
    ),
    container_options: key(
      z.array(option, { error: 'must be a list of options' }),
      [],
      'Options of what containers run (command and args together): the word after one, or with "=" the whole word.',
    ),
    container_arguments: key(
      z.array(wordPattern, { error: 'must be a list of words' }),
      [],
      'Words of what containers run, with "*" for any characters. The first word of command is never sealed.',
    ),
    annotations: key(
      keyPatterns,
      [],
      'Annotations of pods, containers and images, by key, with "*" for any characters. kubelet, plugins and shims get the digest too, so what they are known to read (io.kubernetes.*, *.noderesource.dev and the like) always stays.',
    ),
    labels: key(
      keyPatterns,
      [],
      'Labels of pods and containers, likewise. A filter by such a label works with its value.',
    ),
  },
);

export const auditTable = table('How much of a call is recorded.', {
  seal: sealTable,
  rules: key(
    z.array(rule, { error: 'must be a list of tables' }),
    [],
    'Rules, each a table [[audit.rules]]; the first that matches a call says its level.',
  ),
});

export const auditOf = ({ rules, seal }: z.output<typeof auditTable>): AuditPolicy => ({
  rules,
  seal: {
    labels: seal.labels,
    annotations: seal.annotations,
    execOptions: seal.exec_options,
    execArguments: seal.exec_arguments,
    containerOptions: seal.container_options,
    containerArguments: seal.container_arguments,
  },
});
