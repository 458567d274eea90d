/**
 * Secrets of containers (C12) on their way to plugins and from them: what plugins are sent has the values, what they send
 * has them taken out before anybody records it. Must not keep a value itself.
 */
import { HOOK_NAMES } from '../../../domain/model/cdi.ts';
import type { NriContainer } from '../../../domain/model/nri-views.ts';
import type { OciArg, OciEnv } from '../../../domain/model/oci.ts';

/** Keeps a value, and gives the token that stands for it. */
export type TokenOf = (value: string) => string;

/** The value behind a token; null: nobody knows it any more. */
export type ValueOf = (token: string) => Uint8Array | string | null;

/** The wire holds text only. What is none is refused when the container's bundle is written. */
const textOf = (value: Uint8Array | string): string =>
  typeof value === 'string' ? value : new TextDecoder('utf-8', { ignoreBOM: true }).decode(value);

/** An entry whose value nobody knows any more is left out: an empty value would be a wrong one. */
export const filledEnv = (env: readonly OciEnv[] = [], valueOf: ValueOf): string[] =>
  env.flatMap((entry) => {
    if (typeof entry === 'string') return [entry];
    const value = valueOf(entry.token);
    return value === null ? [] : [`${entry.name}=${textOf(value)}`];
  });

/** An argument that nobody knows any more is empty, so that the others keep their places. */
export const filledArgs = (args: readonly OciArg[] = [], valueOf: ValueOf): string[] =>
  args.map((arg) => (typeof arg === 'string' ? arg : textOf(valueOf(arg.token) ?? '')));

/** What is empty hides nothing. */
export const secretEnv = (name: string, value: string, tokenOf: TokenOf): OciEnv =>
  value === '' ? `${name}=` : { name, token: tokenOf(value) };

/** An empty first argument is an order of NRI, which has to stay what it is. */
export const secretArg = (value: string, tokenOf: TokenOf): OciArg => (value === '' ? '' : { token: tokenOf(value) });

/** The part of a written config.json that has the values of secrets. */
export interface WrittenConfig {
  readonly process: { readonly args: readonly string[]; readonly env: readonly string[] };
  readonly hooks?: Readonly<Record<string, readonly { readonly env?: readonly string[] }[]>>;
}

/**
 * The values of a container's secrets as its bundle has them, in which they outlive the daemon: entry by entry, since the
 * bundle was written from the same spec.
 */
export function writtenSecrets(view: Pick<NriContainer, 'args' | 'env' | 'hooks'>, config: WrittenConfig): ValueOf {
  const { process, hooks = {} } = config;
  const values = new Map<string, string>([
    ...envValues(view.env, process.env),
    ...(view.args ?? []).flatMap((arg, index) => {
      const value = process.args[index];
      return typeof arg === 'string' || value === undefined ? [] : [[arg.token, value] as const];
    }),
    ...HOOK_NAMES.flatMap((name) =>
      (view.hooks?.[name] ?? []).flatMap(({ env }, index) => envValues(env, hooks[name]?.[index]?.env)),
    ),
  ]);
  return (token) => values.get(token) ?? null;
}

function envValues(env: readonly OciEnv[] = [], written: readonly string[] = []): (readonly [string, string])[] {
  const values = new Map(written.map((entry) => [entry.slice(0, entry.indexOf('=')), entry] as const));
  return env.flatMap((entry) => {
    if (typeof entry === 'string') return [];
    const found = values.get(entry.name);
    return found === undefined ? [] : [[entry.token, found.slice(entry.name.length + 1)] as const];
  });
}
