/**
 * The node's audit policy as the configuration says it, and what is recorded when it comes into force: with each start of
 * the daemon, and with each reload. What its words mean is in domain/call (audit.ts, sealing.ts).
 */
import type { Failure } from './errors.ts';

/** As Kubernetes calls them in its audit policy. Each has all of the one before. */
export const AUDIT_LEVELS = ['none', 'metadata', 'request', 'request-response'] as const;
export type AuditLevel = (typeof AUDIT_LEVELS)[number];

export interface AuditRule {
  readonly level: AuditLevel;
  /** Names of RPCs, as globs. */
  readonly methods: readonly string[];
  /** Of the pod that a call names; '' for calls that name none. Empty: all. */
  readonly namespaces: readonly string[];
}

/** "*" stands for any characters. */
export interface SealRules {
  /** Keys. */
  readonly labels: readonly string[];
  readonly annotations: readonly string[];
  /** Options of commands that are run in containers: the word after one is sealed, or what it has behind "=". */
  readonly execOptions: readonly string[];
  /** Whole words of such commands. */
  readonly execArguments: readonly string[];
  /** Likewise, of what containers themselves run. */
  readonly containerOptions: readonly string[];
  readonly containerArguments: readonly string[];
}

export interface AuditPolicy {
  readonly rules: readonly AuditRule[];
  readonly seal: SealRules;
}

/** A key of the configuration that differs from what was in force. */
export interface ConfigChange {
  /** As a file has it: "audit.rules". */
  readonly key: string;
  /** False: it takes a restart. */
  readonly applied: boolean;
  /** What it was and is, as a file has it: of the audit policy alone, for other keys may hold what is nobody's business. */
  readonly was?: unknown;
  readonly is?: unknown;
}

/** The configuration was read again. */
export interface ConfigReload {
  readonly changes: readonly ConfigChange[];
  /** The files can't be used: nothing changed. */
  readonly failure?: Failure;
  /** It came by this signal, which tells nobody who sent it; absent: the caller asked. */
  readonly signal?: 'SIGHUP';
}
