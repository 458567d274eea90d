/**
 * Deciders with one mistake each, made mechanically: an operator of a source of src/domain is another one. Loads them
 * beside the real ones, each as a graph of modules of its own, and changes no file.
 */
import { globSync, readFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { decide } from '../../src/domain/turn/decide.ts';
import type { differencesOf } from '../../src/domain/turn/differences.ts';
import type { evolve } from '../../src/domain/turn/evolve.ts';
import type { redecide } from '../../src/domain/turn/redecide.ts';

const DOMAIN = join(import.meta.dirname, '../../src/domain/');
/** Where it is decided. */
const DECIDERS = ['container', 'pod-sandbox', 'image', 'call', 'node', 'deciding'].map((room) => `${room}/*.ts`);

const OPERATORS: readonly (readonly [from: string, to: string])[] = [
  [' === ', ' !== '],
  [' !== ', ' === '],
  [' && ', ' || '],
  [' || ', ' && '],
  [' > ', ' <= '],
  ['return true;', 'return false;'],
];

export interface Mutant {
  readonly file: string;
  readonly at: number;
  readonly from: string;
  readonly to: string;
}

const sourceOf = (file: string): string => stripTypeScriptTypes(readFileSync(file, 'utf8'));
const sources = new Map<string, string>();

const stripped = (file: string): string => {
  const source = sources.get(file) ?? sourceOf(file);
  sources.set(file, source);
  return source;
};

/** Where a source is code: neither comment nor text. Positions stay as they are. */
const codeOnly = (source: string): string =>
  source.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'/g, (text) => ' '.repeat(text.length));

/** Every mistake that can be made so, in the order of files and places. */
export const allMutants = (): Mutant[] =>
  globSync(DECIDERS, { cwd: DOMAIN })
    .toSorted()
    .flatMap((name) => {
      const file = join(DOMAIN, name);
      const code = codeOnly(stripped(file));
      return OPERATORS.flatMap(([from, to]) =>
        [...code.matchAll(new RegExp(RegExp.escape(from), 'g'))].map(({ index }) => ({ file, at: index, from, to })),
      ).toSorted((a, b) => a.at - b.at);
    });

const mutated = (source: string, { at, from, to }: Mutant): string =>
  source.slice(0, at) + to + source.slice(at + from.length);

const planted: Mutant[] = [];
const NUMBER = /[?]mutant=(\d+)$/;

registerHooks({
  resolve(specifier, context, nextResolve) {
    const resolved = nextResolve(specifier, context);
    const query = NUMBER.exec(context.parentURL ?? '')?.[0];
    return query === undefined ? resolved : { ...resolved, url: `${resolved.url}${query}` };
  },
  load(url, context, nextLoad) {
    const number = NUMBER.exec(url)?.[1];
    if (number === undefined) return nextLoad(url, context);
    const file = fileURLToPath(url.replace(NUMBER, ''));
    const mutant = planted[Number(number)];
    const source = stripped(file);
    return {
      format: 'module',
      shortCircuit: true,
      source: mutant?.file === file ? mutated(source, mutant) : source,
    };
  },
});

export interface MutatedDomain {
  readonly decide: typeof decide;
  readonly evolve: typeof evolve;
  readonly redecide: typeof redecide;
  readonly differencesOf: typeof differencesOf;
}

/** The domain with this mistake in it: whoever decides and whoever folds has the same one. */
export const domainWith = async (mutant: Mutant): Promise<MutatedDomain> => {
  const number = planted.push(mutant) - 1;
  const part = async <T>(name: string): Promise<T> =>
    (await import(`${pathToFileURL(join(DOMAIN, name)).href}?mutant=${number}`)) as T;
  const { decide } = await part<Pick<MutatedDomain, 'decide'>>('turn/decide.ts');
  const { evolve } = await part<Pick<MutatedDomain, 'evolve'>>('turn/evolve.ts');
  const { redecide } = await part<Pick<MutatedDomain, 'redecide'>>('turn/redecide.ts');
  const { differencesOf } = await part<Pick<MutatedDomain, 'differencesOf'>>('turn/differences.ts');
  return { decide, evolve, redecide, differencesOf };
};
