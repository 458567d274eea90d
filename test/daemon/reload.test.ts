/** Reload: what of a configuration is applied and recorded, and what is said of the rest, by the keys that the file has. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import { createReload, type Reload } from '../../src/daemon/reload.ts';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import type { AuditPolicy } from '../../src/domain/model/audit-policy.ts';
import type { Failure } from '../../src/domain/model/errors.ts';
import { refused } from '../../src/domain/model/result.ts';
import type { Owner } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';

interface Rig {
  readonly spec: string;
  readonly write: (text: string) => Promise<void>;
  readonly reload: () => ReturnType<Reload>;
  readonly said: string[];
  readonly dirs: (readonly string[])[];
  readonly policies: AuditPolicy[];
  readonly recorded: CallDraft[];
  /** What the journal refuses records with. */
  readonly journal: { failure: Failure | null };
}

const SPEC = '{"process": {"env": ["A=1"]}}';

/** With a configuration that says this; "SPEC" in it is the path of a base spec. */
const rigWith = async (t: Owner, initial: string): Promise<Rig> => {
  const dir = await tempDir(t);
  const [path, spec] = [join(dir, 'config.toml'), join(dir, 'spec.json')];
  const write = (text: string): Promise<void> => writeFile(path, text.replaceAll('SPEC', spec));
  await writeFile(spec, SPEC);
  await write(initial);
  const load = () => loadConfig({ path });
  const said: string[] = [];
  const dirs: (readonly string[])[] = [];
  const policies: AuditPolicy[] = [];
  const recorded: CallDraft[] = [];
  const journal: Rig['journal'] = { failure: null };
  const reload = createReload({
    initial: await load(),
    load,
    submit: async (draft) => {
      recorded.push(draft);
      const failure = journal.failure ?? ('failure' in draft ? (draft.failure ?? null) : null);
      return { outcome: failure === null ? { ok: true, value: {} } : refused(failure), attachment: null };
    },
    log: {
      level: 'info',
      info: (_, message) => void said.push(message),
      warn: (fields, message) => void said.push(`${(fields as { key: string }).key}: ${message}`),
      error: (fields, message) => void said.push(`${message}: ${(fields as { failure: Failure }).failure.message}`),
    },
    setRegistryConfigDirs: (next) => void dirs.push(next),
    setAuditPolicy: (policy) => void policies.push(policy),
  });
  const asked = { caller: null, deadlineNs: null };
  return { spec, write, reload: () => reload(asked, { signal: 'SIGHUP' }), said, dirs, policies, recorded, journal };
};

const BASE = '[runtime.handlers.base]\nbase_runtime_spec = "SPEC"\n';
const RULE = '[[audit.rules]]\nlevel = "none"\nmethods = ["Version"]\n';

describe('reload', () => {
  it('names every key that differs as the file does, also in tables and in files that it names', async (t) => {
    const { spec, write, reload, said, dirs, recorded } = await rigWith(t, BASE);
    await reload();
    assert.deepEqual(said.splice(0), ['configuration read again; nothing has changed']);

    await writeFile(spec, '{"process": {"env": ["A=2"]}}');
    await write(
      `${BASE}[runtime.handlers.crun]\nbinary_name = "crun"
      [images]\npull_progress_timeout = "9s"\nregistry_config_dirs = ["/etc/registries"]
      [journal.retention]\nreads = "1h"\n`,
    );
    await reload();
    const restart = 'changed in the configuration; it takes a restart';
    assert.deepEqual(said.splice(0).toSorted(), [
      `images.pull_progress_timeout: ${restart}`,
      'images.registry_config_dirs: changed in the configuration and applied',
      `journal.retention.reads: ${restart}`,
      `runtime.handlers.base.base_runtime_spec: ${restart}`,
      `runtime.handlers.crun: ${restart}`,
    ]);
    assert.deepEqual(dirs, [['/etc/registries']]);
    assert.deepEqual(recorded[0], { method: 'ReloadConfig', changes: [], signal: 'SIGHUP' });
    assert.doesNotMatch(JSON.stringify(recorded), /registries|binary_name/, 'values of other keys are recorded');
  });

  it('says of what takes a restart that it does for as long as the file has it, and no longer', async (t) => {
    const { write, reload, said, dirs } = await rigWith(t, '');
    await write('[images]\nregistry_config_dirs = ["/etc/a"]\n[journal.retention]\nreads = "1h"\n');
    await reload();
    const restart = 'journal.retention.reads: changed in the configuration; it takes a restart';
    assert.deepEqual(said.splice(0), [
      'images.registry_config_dirs: changed in the configuration and applied',
      restart,
    ]);
    await reload();
    assert.deepEqual(said.splice(0), [restart]);
    await write('[images]\nregistry_config_dirs = ["/etc/a"]\n');
    await reload();
    assert.deepEqual(said.splice(0), ['configuration read again; nothing has changed']);
    assert.deepEqual(dirs, [['/etc/a']]);
  });

  it('has the audit policy recorded as it was and is, and then applied', async (t) => {
    const { write, reload, policies, recorded } = await rigWith(t, '[audit.seal]\nlabels = ["old"]\n');
    await write(`${RULE}[audit.seal]\nlabels = ["team/*"]\n`);
    assert.ok((await reload()).ok);
    const rules = [{ level: 'none', methods: ['Version'], namespaces: [] }];
    assert.deepEqual(recorded, [
      {
        method: 'ReloadConfig',
        changes: [
          { key: 'audit.seal.labels', applied: true, was: ['old'], is: ['team/*'] },
          { key: 'audit.rules', applied: true, was: [], is: rules },
        ],
        signal: 'SIGHUP',
      },
    ]);
    assert.deepEqual(policies.at(-1)?.rules, rules);
    assert.deepEqual(policies.at(-1)?.seal.labels, ['team/*']);
  });

  it('keeps the old policy where the new one is none, or there is no room for its record', async (t) => {
    const { write, reload, said, policies, recorded, journal } = await rigWith(t, RULE);
    await write(RULE.replace('none', 'request-response'));
    const reloaded = await reload();
    assert.ok(!reloaded.ok);
    assert.match(reloaded.failure.message, /config\.toml: audit\.rules.*level.*Version can't have.*write "metadata"/);
    assert.match(said.splice(0).join(), /the old one stays: .*Version can't have/s);
    assert.deepEqual(recorded, [{ method: 'ReloadConfig', changes: [], failure: reloaded.failure, signal: 'SIGHUP' }]);

    journal.failure = { reason: 'DiskFull', message: 'The disk is full.' };
    await write('');
    assert.equal((await reload()).ok, false);
    assert.equal(policies.length, 0);
    journal.failure = null;
    assert.deepEqual(await reload(), {
      ok: true,
      value: [
        {
          key: 'audit.rules',
          applied: true,
          was: [{ level: 'none', methods: ['Version'], namespaces: [] }],
          is: [],
        },
      ],
    });
    assert.deepEqual(policies.at(-1)?.rules, []);
  });

  it('refuses a seal of what a shim is told by the handlers that are in force, whatever the file says of them now', async (t) => {
    const { write, reload, policies } = await rigWith(t, '[runtime.handlers.runc]\npod_annotations = ["shim/*"]\n');
    await write('[audit.seal]\nannotations = ["shim/*"]\n');
    const reloaded = await reload();
    assert.ok(!reloaded.ok);
    assert.match(reloaded.failure.message, /audit\.seal\.annotations has "shim\/\*" and .*restart the daemon/);
    assert.deepEqual(policies, []);
  });
});
