/** The journal on disk passes the contract, and answers from the file it wrote. */
import { join } from 'node:path';
import { tempDir } from '../support/temp-dir.ts';
import { contractSuite } from './contract.ts';
import { openTemporary } from './support.ts';

contractSuite('sqlite', async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  return {
    journal,
    reopen: async () => {
      await journal.close();
      return (await openTemporary(t, { path })).journal;
    },
  };
});
