/** What the configuration says of how much is recorded. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { tempDir } from '../support/temp-dir.ts';

const load = async (t: TestContext, text: string): Promise<Config['audit']> => {
  const path = join(await tempDir(t), 'config.toml');
  await writeFile(path, text);
  return (await loadConfig({ path })).audit;
};

test('rules are told in the order in which they are written', async (t) => {
  assert.deepEqual((await load(t, '')).rules, []);
  const text = `
    [[audit.rules]]
    level = "metadata"
    methods = ["ExecSync", "Exec"]
    namespaces = ["kube-system", ""]
    [[audit.rules]]
    level = "none"
    methods = ["List*", "Version"]`;
  assert.deepEqual((await load(t, text)).rules, [
    { level: 'metadata', methods: ['ExecSync', 'Exec'], namespaces: ['kube-system', ''] },
    { level: 'none', methods: ['List*', 'Version'], namespaces: [] },
  ]);
});

test('a rule that can not hold is refused by its key, with what to do', async (t) => {
  const bad = {
    'level = "none"\nmethods = ["List*", "RunPodSandbox"]':
      /audit\.rules\.0\.level is "none", which RunPodSandbox can't have: .*replayed from; write "request-response", or leave RunPodSandbox out/,
    'level = "request-response"\nmethods = ["ListContainers"]':
      /audit\.rules\.0\.level.*ListContainers can't have: .*scribe at.*write "metadata" or "none" or "request"/,
    'level = "none"\nmethods = ["Exec*"]': /audit\.rules\.0\.level.*Exec(Sync)? can't have: .*always recorded/,
    'level = "all"\nmethods = ["Exec"]': /audit\.rules\.0\.level must be one of "none", "metadata"/,
    'level = "none"\nmethods = ["ListContainer"]':
      /audit\.rules\.0\.methods\.0 "ListContainer" is no method; did you mean "ListContainers"/,
    'level = "none"\nmethods = []': /audit\.rules\.0\.methods must name a method/,
    'level = "none"\nmethods = ["Version"]\nnamespace = "a"':
      /"namespace" is not a key of \[audit\.rules\.0\]; .*namespaces/,
    'methods = ["Version"]': /audit\.rules\.0\.level/,
  };
  for (const [lines, message] of Object.entries(bad))
    await assert.rejects(load(t, `[[audit.rules]]\n${lines}\n`), message, lines);
});

test('what is sealed is told, and what others read can not be', async (t) => {
  const text = `[audit.seal]
    exec_options = ["--password", "-p"]
    exec_arguments = ["*token=*"]
    container_options = ["--secret"]
    container_arguments = ["*key=*"]
    annotations = ["kubectl.kubernetes.io/*", "*"]
    labels = ["team/secret"]`;
  assert.deepEqual((await load(t, text)).seal, {
    execOptions: ['--password', '-p'],
    execArguments: ['*token=*'],
    containerOptions: ['--secret'],
    containerArguments: ['*key=*'],
    annotations: ['kubectl.kubernetes.io/*', '*'],
    labels: ['team/secret'],
  });
  const bad = {
    'labels = ["io.kubernetes.pod.name"]':
      /audit\.seal\.labels\.0 "io\.kubernetes\.pod\.name" can't be sealed: kubelet.*leave it out/,
    'annotations = ["cdi.k8s.io/*"]': /audit\.seal\.annotations\.0 .*can't be sealed/,
    'annotations = ["memory-qos.nri.io/*"]': /audit\.seal\.annotations\.0 .*read what has "\.nri\.io"; leave it out/,
    'container_options = ["password"]': /audit\.seal\.container_options\.0 must be an option/,
    'container_arguments = ["*"]': /audit\.seal\.container_arguments\.0 must be a word/,
    'annotations = [""]': /audit\.seal\.annotations\.0 must be a key/,
    'exec_options = ["password"]': /audit\.seal\.exec_options\.0 must be an option/,
    'exec_arguments = ["*"]': /audit\.seal\.exec_arguments\.0 must be a word/,
    'environment = ["x"]': /"environment" is not a key of \[audit\.seal\]/,
  };
  for (const [line, message] of Object.entries(bad))
    await assert.rejects(load(t, `[audit.seal]\n${line}\n`), message, line);
  const handed = '[audit.seal]\nannotations = ["team/*"]\n[runtime.handlers.runc]\npod_annotations = ["team/gpu"]\n';
  await assert.rejects(
    load(t, handed),
    /audit\.seal\.annotations has "team\/\*" and runtime\.handlers\.runc\.pod_annotations "team\/gpu"/,
  );
});
