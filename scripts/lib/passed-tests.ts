/** Where a whole run of the tests leaves which of them passed, for whoever wants to know that something was tested. */
import { join } from 'node:path';

/** Names of tests by file. */
export type PassedTests = Readonly<Record<string, readonly string[]>>;

export const passedPath = join(import.meta.dirname, '../../node_modules/.cache/scribe-tests-passed.json');
