/** Looks into the schema: what a key or table is once the schema's wrappings are taken off. Must not know any key. */
import * as z from 'zod';

interface TableForm {
  readonly kind: 'table';
  readonly keys: Readonly<Record<string, z.core.$ZodType>>;
}

/** What a form is once prefault and optional are taken off. */
export type Form =
  | TableForm
  /** Tables under names of the user's choice. */
  | { readonly kind: 'tables'; readonly of: TableForm; readonly fallbackNames: readonly string[] }
  /** A list of tables. */
  | { readonly kind: 'list'; readonly of: TableForm; readonly fallback: unknown }
  /** `fallback` as it stands in the file; undefined for a key that is off unless written. */
  | { readonly kind: 'value'; readonly fallback: unknown };

/** Looks into a form: the documented file and the messages about misspelt keys are made from this. */
export const formOf = (schema: z.core.$ZodType): Form => {
  const isPrefault = schema instanceof z.ZodPrefault;
  const inner = isPrefault ? schema.def.innerType : schema;
  if (inner instanceof z.ZodObject) return { kind: 'table', keys: inner.shape };
  const fallback: unknown = isPrefault ? schema.def.defaultValue : undefined;
  if (inner instanceof z.ZodRecord) {
    const of = formOf(inner.def.valueType);
    if (of.kind === 'table') return { kind: 'tables', of, fallbackNames: Object.keys(fallback as object) };
  }
  if (inner instanceof z.ZodArray) {
    const of = formOf(inner.def.element);
    if (of.kind === 'table') return { kind: 'list', of, fallback };
  }
  return { kind: 'value', fallback };
};
