/**
 * A watch of the directory that it is given, in a process of its own, with the milliseconds between two looks where it cannot watch:
 * prints a line for each network that it observes, for each line of its log, and for its end.
 */
import assert from 'node:assert/strict';
import { createNetworkWatch } from '../../../src/adapters/cni/network-watch.ts';

const [, , confDir = '', everyMs = ''] = process.argv;
const say = (_fields: object, message: string): void => console.log(`log ${message}`);
await createNetworkWatch({
  confDir,
  unwatchedEveryMs: Number(everyMs),
  maxConfFiles: 8,
  observe: (observation) => {
    assert.equal(observation.kind, 'NetworkConfigured');
    const { name } = (observation.confList ?? { name: 'none' }) as { readonly name: string };
    console.log(`network ${name}`);
    return Promise.resolve();
  },
  log: { info: say, warn: say },
  fail: (error) => console.log(`ended ${error.message}`),
}).start();
console.log('started');
