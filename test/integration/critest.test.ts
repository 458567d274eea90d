/**
 * The public CRI validation suite, unmodified, through mirrors and with stand-in images: whole, for every way of holding a
 * pod. Runs alone: it takes fixed ports, and its own timeouts are short.
 */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pushCritestImages, critestRegistries, runCritest } from '../support/critest.ts';
import { shimsKept, startDaemon } from '../support/daemon.ts';
import { recordsOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { goProgram } from '../support/go-program.ts';
import { privateMounts, withoutUnified } from '../support/mount-namespace.ts';
import { netnsOf } from '../support/netns.ts';
import { keptShimsEnd } from '../support/pods.ts';
import { startRegistry } from '../support/registry.ts';
import { assertReplays } from '../support/replayed.ts';

/** What no stand-in can show: an image with the digest that is written there, and one whose shell runs `ls` itself. */
const notOfStandIns = ['public image with digest should be pulled and removed', 'runtime should support MaskedPaths'];

interface Variant {
  readonly name: string;
  /** Keys of the default runtime handler. */
  readonly handler: () => string | Promise<string>;
  readonly prepareMounts?: string;
  /** All but what skips itself: AppArmor (9 specs) on a node without it, and what a runtime does not announce. */
  readonly passes: number;
}

const variants: readonly Variant[] = [
  { name: 'runc and no pause task', handler: () => 'sandboxer = "none"', passes: 106 },
  { name: 'runc and a pause task', handler: () => 'sandboxer = "pause"', passes: 106 },
  // This crun says nothing of its features: 4 specs on recursive read-only mounts and 6 on user namespaces skip themselves.
  { name: 'crun', handler: () => 'binary_name = "crun"', prepareMounts: withoutUnified, passes: 96 },
  // What the OCI runtime behind such a shim can do is not known, so the same ones do.
  {
    name: "a shim's own sandbox service",
    handler: async () =>
      `runtime_type = "io.scribe.sandbox.v1"\nshim_path = "${await goProgram('containerd-shim-sandbox')}"\nsandboxer = "shim"`,
    passes: 96,
  },
];

/** A spec waits for most of its time. Each has a network namespace of its own, and so its own of the fixed ports. */
const VARIANTS_AT_ONCE = 2;

describe('for every way of holding a pod', { concurrency: VARIANTS_AT_ONCE }, () => {
  for (const { name, handler, prepareMounts, passes } of variants)
    test(`critest passes all its specs with ${name}`, { timeout: 400_000 }, async (t) => {
      const netns = await netnsOf(t);
      const registry = await startRegistry(t, { netns });
      await pushCritestImages(registry);
      const registryConfigDir = await registry.mirrorsFor(critestRegistries);
      const mountNamespace = prepareMounts === undefined ? undefined : await privateMounts(t, prepareMounts);
      const config = `[runtime.handlers.runc]\n${await handler()}\n`;
      const daemon = await startDaemon(t, {
        netns,
        registryConfigDir,
        config,
        keptShims: shimsKept,
        ...(mountNamespace === undefined ? {} : { mountNamespace }),
      });

      const skip = notOfStandIns.join('|');
      const results = await runCritest(t, daemon, { focus: '.', skip, timeoutMs: 360_000, mountNamespace });
      const passed = results.filter(({ state }) => state === 'passed');
      const skipped = results.filter(({ state }) => state === 'skipped');
      for (const { name, failure } of skipped) t.diagnostic(`skipped: ${name}: ${failure}`);
      assert.deepEqual(
        results.filter(({ state }) => state !== 'passed' && state !== 'skipped'),
        [],
      );
      assert.equal(passed.length, passes);
      const { decisions, requests, events } = await assertReplays(daemon);
      t.diagnostic(
        `${decisions} decisions as recorded, ${events} records that followed, ${requests} requests of effects`,
      );

      assert.deepEqual((await daemon.cri.runtime.listPodSandbox()).items, []);
      await keptShimsEnd(daemon);
      assert.deepEqual(await daemon.leftovers(), noLeftovers);
      // critest gives no parent, so the cgroups of its pods are beside those of everybody else.
      const requested = await recordsOf(daemon, { types: ['sandbox.requested', 'container.requested'] });
      const ids = new Set(requested.map(({ stream }) => stream.slice(stream.indexOf('/') + 1)));
      const hierarchies = await readdir('/sys/fs/cgroup');
      const cgroups = await Promise.all(
        hierarchies.map((hierarchy) => readdir(join('/sys/fs/cgroup', hierarchy)).catch(() => [])),
      );
      assert.deepEqual(
        cgroups.flat().filter((name) => ids.has(name)),
        [],
      );
      t.diagnostic(`${passed.length} specs passed, ${skipped.length} do not apply here`);
    });
});
