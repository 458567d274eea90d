/**
 * The files of the page: its markup, its style, and its program: one file where `npm run build` has bundled it, the
 * sources of src/ui with their types taken away where the command runs from sources. Nothing else of this machine is
 * served.
 */
import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { fileURLToPath } from 'node:url';

export interface Asset {
  readonly type: string;
  readonly content: Buffer | string;
}

const MARKUP = new URL('../../ui/page.html', import.meta.url);
const STYLE = new URL('../../ui/page.css', import.meta.url);
const PROGRAM = new URL('../../ui/page.ts', import.meta.url);

const HTML = 'text/html; charset=utf-8';
const CSS = 'text/css; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';

/** Where the page's markup says that its program is. */
const PROGRAM_PATH = '/page.ts';
/** Modules of the page by their names; all of them are in one folder. */
const MODULE = /^\/[a-z-]+\.ts$/;

/** null: there is no such file. */
export const assetAt = async (path: string): Promise<Asset | null> => {
  if (path === '/') return { type: HTML, content: await readFile(MARKUP) };
  if (path === '/page.css') return { type: CSS, content: await readFile(STYLE) };
  if (!MODULE.test(path)) return null;
  const isBundled = fileURLToPath(PROGRAM).endsWith('.js');
  if (isBundled) return path === PROGRAM_PATH ? { type: SCRIPT, content: await readFile(PROGRAM) } : null;
  const source = await readFile(new URL(`.${path}`, PROGRAM), 'utf8').catch(() => null);
  return source === null ? null : { type: SCRIPT, content: stripTypeScriptTypes(source) };
};
