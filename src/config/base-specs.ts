/** Reads the OCI specs that runtime handlers name in the configuration. Says what is wrong with them, and changes nothing. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { parseBaseSpec } from '../domain/oci/base-spec.ts';
import type { BaseSpec } from '../domain/model/base-spec.ts';
import { parseJson } from '../domain/values/parse-json.ts';
import type { BaseSpecs } from './config.ts';
import type { ParsedConfig } from './schema.ts';

/** It is written down with every pod of the handler. */
const BYTES_MAX = 64 * 1024;

const readBounded = async (path: string): Promise<string> => {
  // Not blocking: a FIFO must not hang the open.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new Error('it is no regular file');
    if (stat.size > BYTES_MAX) throw new Error(`it has ${stat.size} bytes, more than the ${BYTES_MAX} that are read`);
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
};

const parse = (text: string): BaseSpec =>
  parseBaseSpec(parseJson(text), (problem) => {
    throw new Error(problem);
  });

/** Adds a sentence to `problems` for each file that cannot be used: handler, file, field. */
export const readBaseSpecs = async ({ handlers }: ParsedConfig['runtime'], problems: string[]): Promise<BaseSpecs> => {
  const specs = new Map<string, BaseSpec>();
  for (const [name, { base_runtime_spec: path }] of Object.entries(handlers)) {
    if (path === undefined) continue;
    try {
      specs.set(name, parse(await readBounded(path)));
    } catch (error) {
      problems.push(`runtime.handlers.${name}.base_runtime_spec ${path} can't be used: ${(error as Error).message}`);
    }
  }
  return specs;
};
