/**
 * The keys of the audit policy in the configuration file, and what makes a rule of them that can hold. Like schema.ts, of
 * which it is a part; which levels a method can have is the domain's (domain/call/audit.ts).
 */
import * as z from 'zod';
import {
  AUDIT_LEVELS,
  type AuditLevel,
  type AuditRule,
  levelsOf,
  methodsLike,
  nameableMethods,
  whyNotLevel,
} from '../domain/call/audit.ts';
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

export const auditTable = table('How much of a call is recorded.', {
  rules: key(
    z.array(rule, { error: 'must be a list of tables' }),
    [],
    'Rules, each a table [[audit.rules]]; the first that matches a call says its level.',
  ),
});

export const auditRulesOf = ({ rules }: z.output<typeof auditTable>): readonly AuditRule[] => rules;
