/**
 * Audit levels: how much is recorded of a call, by rules on its method and the namespace of what it is about; the first
 * that matches says it. Which levels a method can have follows from what its record is for: what a call that changes
 * something asked for is what is decided, recovered and replayed from. Pure; config/ refuses rules that can't hold.
 */
import type { AuditLevel, AuditRule } from '../model/audit-policy.ts';
import { globExpression } from '../values/glob.ts';
import { callMethods } from './catalogue.ts';
import { readMethods } from './read-methods.ts';

/** `namespace` is asked only where a rule needs it. */
export type AuditLevelOf = (method: string, namespace: () => string) => AuditLevel;

const READS: ReadonlySet<string> = new Set(readMethods);
/** They run commands, whose arguments can be sealed. A session has the level of the Exec that allowed it. */
const COMMANDS: ReadonlySet<string> = new Set(['ExecSync', 'Exec']);
const SESSIONS: ReadonlySet<string> = new Set(['ExecSession', 'AttachSession', 'PortForwardSession']);

/** The methods that rules can name. */
const auditedMethods: readonly string[] = [...readMethods, ...callMethods.filter((method) => !SESSIONS.has(method))];

/** The levels that a method can have, its default first. */
export const levelsOf = (method: string): readonly [AuditLevel, ...AuditLevel[]] => {
  if (READS.has(method)) return ['metadata', 'none', 'request'];
  return COMMANDS.has(method) ? ['request-response', 'metadata'] : ['request-response'];
};

/** Why a method can't have a level that is none of its own. */
export const whyNotLevel = (method: string): string => {
  if (READS.has(method)) return 'the answers of calls that only read are not recorded: scribe at gives them';
  return COMMANDS.has(method)
    ? 'that a command was run, and how it ended, is always recorded'
    : 'what it asks for is what is decided, recovered and replayed from';
};

/** The methods that a pattern matches; [] for one that is no pattern too. */
export const methodsLike = (pattern: string): readonly string[] => {
  const expression = globExpression(pattern);
  return expression === null ? [] : auditedMethods.filter((method) => expression.test(method));
};

export const nameableMethods = auditedMethods;

export function auditPolicy(rules: readonly AuditRule[]): AuditLevelOf {
  const ofMethod = new Map<string, AuditRule[]>();
  for (const rule of rules)
    for (const method of new Set(rule.methods.flatMap(methodsLike)))
      ofMethod.set(method, [...(ofMethod.get(method) ?? []), rule]);
  return (method, namespace) => {
    const rule = ofMethod
      .get(method)
      ?.find(({ namespaces }) => namespaces.length === 0 || namespaces.includes(namespace()));
    return rule?.level ?? levelsOf(method)[0];
  };
}
