/** The default validator: what it rejects by each of its keys, and which plugins have to be there. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SecurityProfile } from '../../../src/domain/model/cri.ts';
import type { FailureReason } from '../../../src/domain/model/errors.ts';
import type { ContainerAdjustment } from '../../../src/domain/model/nri.ts';
import { NOTHING_MERGED, withAdjustment } from '../../../src/domain/nri/merge.ts';
import type { NriValidatorRules } from '../../../src/domain/model/nri-settings.ts';
import { defaultValidation, type ProposedContainer } from '../../../src/domain/nri/validate.ts';
import { says } from './plugin-happenings.ts';

const PLUGIN = '10-odd';

/** What comes of these plugins' adjustments, one after the other. */
function proposed(
  adjusts: readonly ContainerAdjustment[],
  { annotations = {}, seccompProfile }: { annotations?: Record<string, string>; seccompProfile?: SecurityProfile } = {},
): ProposedContainer {
  let merged = NOTHING_MERGED;
  for (const [index, adjust] of adjusts.entries()) {
    const next = withAdjustment(merged, index === 0 ? PLUGIN : `2${index}-other`, adjust);
    assert.ok(next.ok);
    merged = next.value;
  }
  return {
    pod: { name: 'web', namespace: 'ns', annotations },
    name: 'app',
    seccompProfile,
    answers: [],
    owners: merged.owners,
    plugins: [
      { name: 'odd', index: '10' },
      { name: 'other', index: '21' },
    ],
  };
}

const passes = (settings: NriValidatorRules, what: ProposedContainer): void =>
  assert.equal(defaultValidation(settings, what), null);

function rejection(
  settings: NriValidatorRules,
  what: ProposedContainer,
  reason: FailureReason = 'PluginRefused',
): string {
  const failure = defaultValidation(settings, what) ?? assert.fail('it was not rejected');
  assert.equal(failure.reason, reason);
  assert.ok(failure.message.startsWith('NRI\'s default validator rejects container "app" of pod ns/web: '));
  return failure.message;
}

const hooks: ContainerAdjustment = { hooks: { prestart: [{ path: '/hook' }] } };
const seccomp: ContainerAdjustment = { linux: { seccompPolicy: { defaultAction: 'SCMP_ACT_ALLOW' } } };
const [runtimeDefault, unconfined, localhost] = [{}, { profileType: 1 }, { profileType: 2, localhostRef: '/p' }];

const ALL: NriValidatorRules = {
  rejectOciHookAdjustment: true,
  rejectRuntimeDefaultSeccompAdjustment: true,
  rejectUnconfinedSeccompAdjustment: true,
  rejectCustomSeccompAdjustment: true,
  rejectNamespaceAdjustment: true,
  rejectSysctlAdjustment: true,
};

/** Each key, what it rejects, and the words for that. */
const rows: readonly (readonly [keyof NriValidatorRules, ProposedContainer, words: RegExp])[] = [
  ['rejectOciHookAdjustment', proposed([hooks]), /plugin "10-odd" changed OCI hooks/],
  ['rejectOciHookAdjustment', proposed([hooks, hooks]), /plugins "10-odd", "21-other" changed OCI hooks/],
  [
    'rejectRuntimeDefaultSeccompAdjustment',
    proposed([seccomp], { seccompProfile: runtimeDefault }),
    /"10-odd" changed the runtime's default seccomp policy/,
  ],
  [
    'rejectUnconfinedSeccompAdjustment',
    proposed([seccomp], { seccompProfile: unconfined }),
    /"10-odd" changed an unconfined seccomp policy/,
  ],
  ['rejectUnconfinedSeccompAdjustment', proposed([seccomp]), /"10-odd" changed an unconfined seccomp policy/],
  [
    'rejectCustomSeccompAdjustment',
    proposed([seccomp], { seccompProfile: localhost }),
    /"10-odd" changed a custom seccomp policy/,
  ],
  [
    'rejectNamespaceAdjustment',
    proposed([{ linux: { namespaces: [{ type: '-ipc' }, { type: 'pid' }] } }]),
    /"10-odd" changed namespaces \("ipc", "pid"\)/,
  ],
  [
    'rejectSysctlAdjustment',
    proposed([{ linux: { sysctl: { a: '1' } } }]),
    /"10-odd" changed kernel parameters \("a"\)/,
  ],
  [
    'rejectSysctlAdjustment',
    proposed([{ linux: { sysctl: { '-a': '' } } }]),
    /plugin "10-odd" changed kernel parameters \("a"\)/,
  ],
];

describe('the default validator', () => {
  for (const [key, what, words] of rows)
    it(`rejects by ${key}, and by no other key: ${words.source}`, () => {
      assert.match(rejection({ [key]: true }, what), words);
      assert.match(rejection(ALL, what), words);
      passes({ ...ALL, [key]: false }, what);
      passes({}, what);
    });

  it('has nothing against what changes nothing, or anything else', () => {
    passes(ALL, proposed([]));
    passes(ALL, proposed([{ annotations: { a: 'b' }, env: ['A=1'], linux: { oomScoreAdj: 5 } }]));
  });
});

const KEY = 'required-plugins.noderesource.dev';
const annotated = (value: string, suffix = '') => proposed([], { annotations: { [`${KEY}${suffix}`]: value } });

const missing = (settings: NriValidatorRules, what: ProposedContainer): string =>
  rejection(settings, what, 'PluginMissing');

describe('required plugins', () => {
  it('have to be there by name, with or without their index', () => {
    passes({ requiredPlugins: ['odd', '21-other'] }, proposed([]));
    assert.match(
      missing({ requiredPlugins: ['odd', 'gone'] }, proposed([])),
      /it needs NRI plugin "gone" \(it is not connected\): start it, or take it from nri\.default_validator\.required_plugins\.$/,
    );
    assert.match(
      missing({ requiredPlugins: ['11-odd', 'gone'] }, proposed([])),
      /it needs NRI plugins "11-odd" \(it is not connected\), "gone" \(it is not connected\): start them, or take them/,
    );
  });

  it('have to have answered: why one did not is told', () => {
    const silent = {
      ...proposed([]),
      plugins: [],
      answers: [says('10-odd', 'unanswered', 'It did not answer in time.')],
    };
    for (const name of ['odd', '10-odd'])
      assert.match(missing({ requiredPlugins: [name] }, silent), /odd" \(It did not answer in time\): start it/);
  });

  it('are also those that the pod names, for the container, for all of its containers, or at all', () => {
    for (const suffix of ['/container.app', '/pod', ''])
      assert.match(missing({}, annotated('[gone]', suffix)), /"gone".*from the pod's annotation required-plugins/);
    passes({}, annotated('[gone]', '/container.another'));
    const both = { [`${KEY}/container.app`]: '[]', [`${KEY}/pod`]: '[gone]' };
    passes({}, proposed([], { annotations: both }));
    assert.match(
      missing({ requiredPlugins: ['lost'] }, annotated('[gone]')),
      /"lost" .*"gone" .*required_plugins and the pod/,
    );
  });

  it('are named in a list as YAML writes one', () => {
    for (const text of [
      '[gone, odd]',
      '["odd", \'gone\',]',
      '- odd\n- gone',
      '---\n# ours\n- "odd"\n\n  - gone # lost\n',
    ])
      assert.match(missing({}, annotated(text)), /plugin "gone"/);
    for (const text of ['', '[]', '[ ]', '[odd]', '- odd', '- 10-odd']) passes({}, annotated(text));
  });

  it('named in what is no such list are a rejection', () => {
    for (const text of ['odd', '[odd', '{odd: 1}', '- [odd]', '- a b', '-odd', '[,]', `[${'a'.repeat(20_000)}]`])
      assert.match(rejection({}, annotated(text)), /annotation required-plugins.noderesource.dev is .* YAML list/);
  });

  it('can be done without by the annotation that the configuration names', () => {
    const settings: NriValidatorRules = { requiredPlugins: ['gone'], tolerateMissingPluginsAnnotation: 'tolerate.me' };
    const tolerating = (value: string, suffix = '') =>
      proposed([], { annotations: { [`tolerate.me${suffix}`]: value, [KEY]: '[lost]' } });
    for (const value of ['true', '1', 'T']) passes(settings, tolerating(value));
    passes(settings, tolerating('true', '/container.app'));
    for (const value of ['false', '0'])
      assert.match(missing(settings, tolerating(value)), /"gone" .*"lost" .*by the annotation tolerate.me: "true"/);
    assert.match(rejection(settings, tolerating('yes')), /annotation tolerate.me is "yes": it must be true or false/);
    assert.match(missing({ requiredPlugins: ['gone'] }, tolerating('true')), /"gone" .*"lost"/);
  });
});
