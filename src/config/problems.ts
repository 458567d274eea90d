/**
 * Turns what the schema has to say about a file into sentences for whoever wrote the file: which file, which key,
 * what is wrong, and for a misspelt key which one was probably meant. Pure.
 */
import type * as z from 'zod';
import { nearest } from './nearest.ts';
import { type Form, formOf } from './form.ts';
import { configSchema } from './schema.ts';

const rootForm = formOf(configSchema);

const formAt = (path: readonly PropertyKey[]): Form =>
  path.reduce((form: Form, part) => {
    if (form.kind === 'tables' || form.kind === 'list') return form.of;
    const schema = form.kind === 'table' ? form.keys[String(part)] : undefined;
    return schema === undefined ? form : formOf(schema);
  }, rootForm);

/** Paths of all tables that have `key`, as the file spells them. */
const tablesWith = (key: string, form: Form = rootForm, path = ''): string[] => {
  if (form.kind === 'tables') return tablesWith(key, form.of, `${path}.<name>`);
  if (form.kind === 'list') return tablesWith(key, form.of, path);
  if (form.kind === 'value') return [];
  const here = Object.hasOwn(form.keys, key) && path !== '' ? [path] : [];
  const below = Object.entries(form.keys).flatMap(([name, schema]) =>
    tablesWith(key, formOf(schema), path === '' ? name : `${path}.${name}`),
  );
  return [...here, ...below];
};

const unknownKey = (key: string, path: readonly PropertyKey[]): string => {
  const form = formAt(path);
  const where = path.length === 0 ? 'at the top' : `of [${path.join('.')}]`;
  const meant = form.kind === 'table' ? nearest(key, Object.keys(form.keys)) : null;
  const elsewhere = tablesWith(key)[0];
  const hint =
    elsewhere !== undefined
      ? `it belongs to [${elsewhere}]`
      : meant !== null
        ? `did you mean "${meant}"?`
        : `known are ${form.kind === 'table' ? Object.keys(form.keys).join(', ') : 'none'}`;
  return `"${key}" is not a key ${where}; ${hint}`;
};

/** One sentence per problem, without the file's name. */
export const problemsOf = (error: z.ZodError): string[] =>
  error.issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey(key, issue.path));
    const message = issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message;
    return [`${issue.path.join('.')} ${message}`];
  });
