/**
 * A real Chromium without a screen, driven by playwright-core: the one that scripts/setup.sh installs, since nothing is
 * downloaded for it. Says what went wrong on a page that did not say so itself. Ends with its owner.
 */
import { type Browser, chromium, type Page } from 'playwright-core';
import { findProgram } from '../../src/platform/linux/find-program.ts';
import { type Owner, onCleanup } from './cleanup.ts';
import { tempDir } from './temp-dir.ts';

/** Starts a browser of its own, with nothing in it. Rejects where there is none. */
export const startChromium = async (owner: Owner): Promise<Browser> => {
  const executablePath = await findProgram('chromium', process.env['PATH'] ?? '');
  if (executablePath === null) throw new Error('There is no chromium: sh scripts/setup.sh test installs it.');
  const home = await tempDir(owner);
  const browser = await chromium.launch({
    executablePath,
    // As root, Chromium has no sandbox; /dev/shm may be too small for it.
    args: ['--disable-gpu', '--disable-dev-shm-usage'],
    chromiumSandbox: false,
    env: { ...process.env, HOME: home, TMPDIR: home },
  });
  onCleanup(owner, () => browser.close());
  return browser;
};

/** What a page says on its console, or throws, that is an error, from now on. */
export const problemsOf = (page: Page): readonly string[] => {
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  return problems;
};
