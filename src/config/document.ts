/**
 * Writes the documented default configuration file from the schema: every key with a comment and its default.
 * What it prints parses to the defaults again.
 */
import * as z from 'zod';
import { type Form, formOf } from './form.ts';
import { configSchema } from './schema.ts';

const WIDTH = 110;

const HEADER = `Configuration of scribe, in TOML. What is written here are the defaults: leave out what you do not change.
Files conf.d/*.toml beside this file are read after it, in lexical order, and win over it; flags win over both.`;

const meta = (schema: z.core.$ZodType): { about: string; example: unknown } => {
  const { description, examples } = z.globalRegistry.get(schema) ?? {};
  return { about: description ?? '', example: Array.isArray(examples) ? examples[0] : undefined };
};

const wrap = (line: string): string[] => {
  const lines: string[] = [];
  let current = '';
  for (const word of line.split(' ')) {
    if (current !== '' && current.length + 1 + word.length > WIDTH) {
      lines.push(current);
      current = word;
    } else current = current === '' ? word : `${current} ${word}`;
  }
  return [...lines, current];
};

const comment = (about: string): string[] =>
  about
    .split('\n')
    .flatMap(wrap)
    .map((line) => `# ${line}`);

/** JSON's text, number, boolean and list are TOML's as well. */
const tomlValue = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{ ${Object.entries(value)
    .map(([key, part]) => `${key} = ${tomlValue(part)}`)
    .join(', ')} }`;
};

const valueLines = (key: string, schema: z.core.$ZodType, form: Form & { kind: 'value' | 'list' }): string[] => {
  const { about, example } = meta(schema);
  const line =
    form.fallback === undefined ? `# ${key} = ${tomlValue(example)}` : `${key} = ${tomlValue(form.fallback)}`;
  const parts = form.kind === 'list' ? keyComments(form.of) : [];
  return [...comment(about), ...parts, line];
};

/** What can be in a table of which there is none: in words alone. */
const keyComments = ({ keys }: Form & { kind: 'table' }): string[] =>
  Object.entries(keys).flatMap(([key, schema]) => comment(`  ${key}: ${meta(schema).about}`));

/** What can be in tables of which there is none: in words alone. */
const exampleLines = (path: string, about: string, form: Form & { kind: 'table' }): string[] => [
  '',
  ...comment(`${about} [${path}.NAME]:`),
  ...keyComments(form),
];

/** A table: its own values first, then the tables in it. */
const tableLines = (path: string, about: string, form: Form & { kind: 'table' }): string[] => {
  const forms = Object.entries(form.keys).map(([key, schema]) => ({ key, schema, form: formOf(schema) }));
  const values = forms.flatMap(({ key, schema, form: of }) =>
    of.kind === 'value' || of.kind === 'list' ? valueLines(key, schema, of) : [],
  );
  const tables = forms.flatMap(({ key, schema, form: of }) => {
    const inner = path === '' ? key : `${path}.${key}`;
    if (of.kind === 'table') return tableLines(inner, meta(schema).about, of);
    if (of.kind === 'tables' && of.fallbackNames.length === 0) return exampleLines(inner, meta(schema).about, of.of);
    if (of.kind === 'tables') {
      return of.fallbackNames.flatMap((name) => tableLines(`${inner}.${name}`, meta(schema).about, of.of));
    }
    return [];
  });
  const head = path === '' ? [] : ['', ...comment(about), `[${path}]`];
  return [...head, ...values, ...tables];
};

/** The documented default file: loading it gives what loading no file gives. */
export const defaultConfigToml = (): string => {
  const form = formOf(configSchema);
  if (form.kind !== 'table') return '';
  return `${[...comment(HEADER), ...tableLines('', '', form)].join('\n')}\n`;
};
