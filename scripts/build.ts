/**
 * Bundles src/ into dist/: one file per program (the command line, each thread or child process that it starts, and the
 * page that it serves to browsers), so that a start opens a few files instead of five hundred. bin/scribe runs dist/ when
 * nothing in src/ is newer. Must change nothing that a program does: names are kept, nothing is minified, native packages
 * stay outside.
 *
 *   main.js ──(a command whose start is waited for)──> command-history.js and the like: the command line with that command alone
 *      └────(any other)──────────────────────────────> command.js: with all of them
 */
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { build, type BuildOptions, type Plugin } from 'esbuild';

const top = join(import.meta.dirname, '..');
const outdir = join(top, 'dist');
const building = join(top, 'dist.new');
const mainProgram = join(top, 'src/cli/main.ts');
/** What runs in a browser. */
const pages = join(top, 'src/ui/');

/** Loaded from node_modules: one has a native part, which looks for itself there; one is never asked for by a server. */
const external = ['better-sqlite3', '@grpc/proto-loader'];

/** Its package.json offers Node the CommonJS modules first, which come in whole. */
const alias = { rxjs: join(top, 'node_modules/rxjs/dist/esm/index.js') };

/** How sources name a program they start, or a file that is shipped beside src/. */
const fileUrl = /new URL\('(\.{1,2}\/[^']+)', import\.meta\.url\)/g;

/** The name of a program's bundle; all bundles are in one directory, so it tells where the program's source is. */
const bundleName = (source: string): string =>
  source === mainProgram ? 'command' : relative(join(top, 'src'), source).replace(/\.ts$/, '').replaceAll('/', '-');

/** Points file URLs to where the bundle finds what they mean; tells of each program that is named. */
const rewriteFileUrls = (onProgram: (source: string) => void): Plugin => ({
  name: 'file-urls',
  setup: ({ onLoad }) => {
    onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      const contents = text.replaceAll(fileUrl, (_, target: string) => {
        const file = join(dirname(path), target);
        if (!file.endsWith('.ts')) return `new URL('../${relative(top, file)}', import.meta.url)`;
        onProgram(file);
        return `new URL('./${bundleName(file)}.js', import.meta.url)`;
      });
      return { contents, loader: 'ts' };
    });
  },
});

/** Commands whose start somebody waits for, as they are named and their files are. */
const waitedFor: readonly string[] = ['serve', 'history', 'why', 'at', 'sql'];

/** How the table of commands loads one. */
const commandImport = /(?<=loaded\(\()await import\('\.\/([a-z/-]+)\.ts'\)/g;

const allCommands = `./${bundleName(mainProgram)}.js`;
const commandBundle = (command: string): string => `${bundleName(mainProgram)}-${command}`;

/**
 * The command line with one command alone. What commands share is parted into as many files as there are sets of commands that
 * share it, and a start opens and links each: 51 for `history`, and 20 where there is no other.
 */
const onlyCommand = (command: string): Plugin => ({
  name: 'command',
  setup: ({ onLoad, onResolve }) => {
    onResolve({ filter: new RegExp(`^${RegExp.escape(allCommands)}$`) }, () => ({ path: allCommands, external: true }));
    onLoad({ filter: /\/src\/cli\/run\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      const contents = text.replaceAll(commandImport, (_, file: string) =>
        // Who came here with other words would get what they ask for.
        file === command ? 'onlyCommand' : `await import('${allCommands}')`,
      );
      if (!contents.includes('onlyCommand')) throw new Error(`${path} does not load ${command} as is looked for here.`);
      return { contents: `import * as onlyCommand from './${command}.ts';\n${contents}`, loader: 'ts' };
    });
  },
});

/** Chooses by the first word what is loaded. */
const launcher = `const own = ${JSON.stringify(waitedFor)}.find((command) => command === process.argv[2]);
await import(own === undefined ? '${allCommands}' : \`./${commandBundle('${own}')}.js\`);
`;

/**
 * What koffi is in a bundle: its binary, found at once. Its own beginning first reads Node's program file for the C library
 * that it is linked with, 8 ms of the processor in every process; it is asked where the binary is not the usual one.
 */
const koffiAtOnce = `
import { createRequire } from 'node:module';
const requireHere = createRequire(import.meta.url);
const find = () => {
  try {
    return requireHere(\`@koromix/koffi-linux-\${process.arch}/linux_\${process.arch}/koffi.node\`);
  } catch {
    return requireHere('koffi');
  }
};
const koffi = find();
export default koffi;
export const { address, errno, load, node, struct } = koffi;
`;

const findKoffiAtOnce: Plugin = {
  name: 'koffi',
  setup: ({ onLoad, onResolve }) => {
    onResolve({ filter: /^koffi$/ }, () => ({ path: 'koffi', namespace: 'koffi' }));
    onLoad({ filter: /^koffi$/, namespace: 'koffi' }, () => ({ contents: koffiAtOnce, loader: 'js' }));
  },
};

/**
 * What node:http is in a bundle. An import reads each of its exports, and some of these load what Node has for fetch(), which
 * no program here calls: 17 ms of the processor and 2 MB in every thread that speaks HTTP.
 */
const httpWithoutFetch: Plugin = {
  name: 'http',
  setup: ({ onLoad, onResolve }) => {
    // What is imported while a program runs has to be a module of its own.
    onResolve({ filter: /^(node:)?http$/ }, ({ kind }) =>
      kind === 'import-statement' ? { path: 'http', namespace: 'builtin' } : null,
    );
    onLoad({ filter: /^http$/, namespace: 'builtin' }, () => ({
      contents: "module.exports = process.getBuiltinModule('node:http');",
      loader: 'js',
    }));
  },
};

const forNode: BuildOptions = {
  platform: 'node',
  target: 'node24',
  external,
  alias,
  // Packages that are CommonJS load Node's own modules by require.
  banner: {
    js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
  },
};

const forBrowsers: BuildOptions = { platform: 'browser', target: 'es2024' };

const bundle = async (
  source: string,
  onProgram: (source: string) => void,
  name = bundleName(source),
  more: readonly Plugin[] = [],
): Promise<void> => {
  await build({
    entryPoints: { [name]: source },
    outdir: building,
    bundle: true,
    // What a program loads only when it is asked for stays a file of its own.
    splitting: true,
    format: 'esm',
    ...(source.startsWith(pages) ? forBrowsers : forNode),
    // ES modules before CommonJS: of those, only what is used gets in.
    conditions: ['module', 'es2015'],
    mainFields: ['module', 'main'],
    keepNames: false,
    legalComments: 'none',
    plugins: [...more, findKoffiAtOnce, httpWithoutFetch, rewriteFileUrls(onProgram)],
    logLevel: 'warning',
  });
};

await rm(building, { recursive: true, force: true });
const programs = [mainProgram];
const note = (source: string): void => {
  if (!programs.includes(source)) programs.push(source);
};
// Grows while it is walked: what a program starts is found while it is bundled.
for (const program of programs) await bundle(program, note);
for (const command of waitedFor) await bundle(mainProgram, note, commandBundle(command), [onlyCommand(command)]);
await writeFile(join(building, 'main.js'), launcher);
await rm(outdir, { recursive: true, force: true });
await rename(building, outdir);
