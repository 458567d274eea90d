/**
 * The values of secrets that NRI plugins are told (C12): those that the daemon still has, else those that the container's
 * bundle was written with. Must never write or log a value.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { NriContainer } from '../../domain/model/nri-views.ts';
import { bundlePath } from '../../domain/model/paths.ts';
import { type ValueOf, type WrittenConfig, writtenSecrets } from './messages/secrets.ts';

export type ValuesOf = (container: NriContainer) => Promise<ValueOf>;

/** `fill` throws for a token that it does not know (any more). */
export const secretValues =
  (fill: (token: string) => Uint8Array, stateDir: string): ValuesOf =>
  async (container) => {
    const known = (token: string): Uint8Array | null => {
      try {
        return fill(token);
      } catch {
        return null;
      }
    };
    if (tokensOf(container).every((token) => known(token) !== null)) return known;
    const written = await readWritten(container, stateDir);
    return (token) => known(token) ?? written(token);
  };

const tokensOf = ({ args = [], env = [], hooks = {} }: NriContainer): readonly string[] => [
  ...[...args, ...env].flatMap(tokenIn),
  ...Object.values(hooks).flatMap((list: readonly { readonly env?: NriContainer['env'] }[]) =>
    list.flatMap((hook) => (hook.env ?? []).flatMap(tokenIn)),
  ),
];

const tokenIn = (entry: string | { readonly token: string }): readonly string[] =>
  typeof entry === 'string' ? [] : [entry.token];

async function readWritten(container: NriContainer, stateDir: string): Promise<ValueOf> {
  try {
    const text = await readFile(join(bundlePath({ stateDir }, container.id), 'config.json'), 'utf8');
    return writtenSecrets(container, JSON.parse(text) as WrittenConfig);
  } catch {
    // It has none yet, or none any more.
    return () => null;
  }
}
