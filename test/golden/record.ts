/**
 * Writes a golden journal: one simulated history as JSON lines, to be folded and decided again by every later version.
 * Run by hand once per version of the journal or of the rules: node test/golden/record.ts <seed> > test/golden/v1/<name>.jsonl,
 * then node scripts/make-golden.ts --accept <name>.
 * node-rules4.jsonl and node-rules7.jsonl are record-node.ts's.
 * killed-in-create.jsonl and nri-validators.jsonl (test/integration/nri-validators.test.ts, rules 6) were made of daemons' journals by
 * scripts/make-golden.ts. nri-plugins.jsonl was written by a daemon, on pods of test/integration/nri.test.ts: what plugins really say.
 */
import { stdout } from 'node:process';
import { isOwnType } from '../../src/journal/own-records.ts';
import { runHistory, targetOfSeed } from '../simulation/history.ts';
import { writeGolden } from '../../src/cli/replay/golden-text.ts';

const seed = Number(process.argv[2] ?? 1);
const { records } = await runHistory({ seed, target: targetOfSeed(seed) });
// What the journal says of itself is not decided.
stdout.write(writeGolden(records.filter(({ type }) => !isOwnType(type))));
