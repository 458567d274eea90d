/** Loads the fold that a thread was told of. */
import type { FoldModule, StateFold } from './types.ts';

const isFold = (value: unknown): value is StateFold<unknown> =>
  typeof value === 'object' && value !== null && 'evolve' in value && 'evolverVersion' in value;

export const loadFold = async ({ moduleUrl, exportName }: FoldModule): Promise<StateFold<unknown>> => {
  const module = (await import(moduleUrl)) as Partial<Record<string, unknown>>;
  const fold = module[exportName];
  if (!isFold(fold)) throw new Error(`${moduleUrl} exports no fold called ${exportName}.`);
  return fold;
};
