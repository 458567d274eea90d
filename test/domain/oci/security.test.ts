/** What a container may do: capabilities, privilege, seccomp, AppArmor, namespaces. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ApparmorFact } from '../../../src/domain/model/container-facts.ts';
import { NamespaceMode, ProfileType, SupplementalGroupsPolicy } from '../../../src/domain/model/cri.ts';
import type { NodeFacts } from '../../../src/domain/model/node-facts.ts';
import { containerQuestions, containerSpec } from '../../../src/domain/oci/container-spec.ts';
import type { ContainerSpecInput } from '../../../src/domain/oci/input.ts';
import { podSandboxSpec } from '../../../src/domain/oci/pod-sandbox-spec.ts';
import type { OciNamespace } from '../../../src/domain/model/oci.ts';
import {
  buildContainer,
  buildSandbox,
  containerInput,
  failureIn,
  imageConfig,
  nodeV1,
  nodeV2,
  podConfig,
  privilegedPod,
  rootFacts,
  sandboxInput,
  withContext,
} from './support.ts';

type Context = Parameters<typeof withContext>[0];

const build = (context: Context, overrides?: Partial<ContainerSpecInput>) =>
  buildContainer(withContext(context), overrides);
const refusal = (context: Context, overrides?: Partial<ContainerSpecInput>) =>
  failureIn(containerSpec(containerInput(withContext(context), overrides)));

describe('capabilities', () => {
  const given = (addCapabilities: string[], dropCapabilities: string[], node = nodeV2): readonly string[] =>
    build({ capabilities: { addCapabilities, dropCapabilities } }, { node }).process.capabilities.bounding;

  it('are the default set, plus what is added, minus what is dropped', () => {
    const defaults = given([], []);
    assert.equal(defaults.length, 14);
    assert.deepEqual(new Set(given(['net_admin'], [])), new Set([...defaults, 'CAP_NET_ADMIN']));
    assert.ok(!given([], ['CAP_NET_RAW']).includes('CAP_NET_RAW'));
    assert.deepEqual(given(['SYS_TIME'], ['ALL']), ['CAP_SYS_TIME']);
    assert.deepEqual(given([], ['all']), []);
    assert.deepEqual(given(['ALL'], []), nodeV2.capabilities);
    assert.ok(!given(['ALL'], ['SYS_ADMIN']).includes('CAP_SYS_ADMIN'));
    assert.ok(!given(['KILL'], ['KILL']).includes('CAP_KILL'));
  });

  it('are the same in three sets, and none is inheritable or ambient unless asked for', () => {
    const { bounding, effective, permitted, inheritable, ambient } = build({
      capabilities: { addCapabilities: ['NET_ADMIN'] },
    }).process.capabilities;
    assert.deepEqual([effective, permitted], [bounding, bounding]);
    assert.deepEqual([inheritable, ambient], [[], []]);
  });

  it('that are ambient are in every set, unless they are dropped by name', () => {
    const sets = (addAmbientCapabilities: string[], dropCapabilities: string[]) =>
      build({ capabilities: { addAmbientCapabilities, dropCapabilities } }).process.capabilities;
    const only = ['CAP_NET_BIND_SERVICE'];
    assert.deepEqual(sets(['net_bind_service'], ['ALL']), {
      bounding: only,
      effective: only,
      permitted: only,
      inheritable: only,
      ambient: only,
    });
    assert.deepEqual(sets(['SYS_TIME'], []).ambient, ['CAP_SYS_TIME']);
    assert.ok(sets(['SYS_TIME'], []).permitted.includes('CAP_KILL'));
    assert.deepEqual(sets(['SYS_TIME'], ['SYS_TIME']).ambient, []);
    assert.deepEqual(
      sets(['ALL'], ['SYS_TIME']).ambient,
      nodeV2.capabilities.filter((name) => name !== 'CAP_SYS_TIME'),
    );
    const refused = refusal({ capabilities: { addAmbientCapabilities: ['SYS_RESOURCE'] } }, { node: nodeV1 });
    assert.equal(refused.reason, 'HostLacks');
    assert.match(refused.message, /add_ambient_capabilities asks for CAP_SYS_RESOURCE/);
  });

  it('cannot be more than the daemon has', () => {
    assert.deepEqual(given(['ALL'], [], nodeV1), nodeV1.capabilities);
    const failure = refusal({ capabilities: { addCapabilities: ['SYS_RESOURCE'] } }, { node: nodeV1 });
    assert.equal(failure.reason, 'HostLacks');
    assert.match(failure.message, /CAP_SYS_RESOURCE/);
  });
});

describe('privilege', () => {
  it('needs a privileged pod', () => {
    const failure = refusal({ privileged: true });
    assert.equal(failure.reason, 'InvalidField');
    assert.match(failure.message, /^linux\.security_context\.privileged/);
  });

  it('gives all that the daemon has, and lifts every mask', () => {
    const spec = build(
      { privileged: true, maskedPaths: ['/proc/kcore'], readonlyPaths: ['/proc/sys'], seccomp: {} },
      { sandboxConfig: privilegedPod },
    );
    assert.deepEqual(spec.process.capabilities.effective, nodeV2.capabilities);
    assert.deepEqual([spec.linux.maskedPaths, spec.linux.readonlyPaths, spec.linux.seccomp], [[], [], undefined]);
    assert.deepEqual(spec.linux.resources.devices, [{ allow: true, access: 'rwm' }]);
    for (const destination of ['/sys', '/sys/fs/cgroup']) {
      assert.ok(spec.mounts.find((mount) => mount.destination === destination)?.options.includes('rw'));
    }
  });
});

describe('seccomp', () => {
  const file = {
    defaultAction: 'SCMP_ACT_ERRNO',
    architectures: ['SCMP_ARCH_X86_64'],
    flags: ['SECCOMP_FILTER_FLAG_LOG'],
    comment: 'not of the specification',
    syscalls: [
      { names: ['read'], action: 'SCMP_ACT_ALLOW', args: null },
      {
        names: ['clone'],
        action: 'SCMP_ACT_ALLOW',
        args: [{ index: 0, value: 2114060288, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }],
      },
    ],
  };
  const localhost = { seccomp: { profileType: ProfileType.Localhost, localhostRef: '/profiles/a.json' } };

  it('is nothing unless asked for', () => {
    assert.equal(build({}).linux.seccomp, undefined);
    assert.equal(build({ seccomp: { profileType: ProfileType.Unconfined } }).linux.seccomp, undefined);
    assert.equal(build({ seccompProfilePath: 'unconfined' }).linux.seccomp, undefined);
  });

  it('an empty profile message means RuntimeDefault', () => {
    const seccomp = build({ seccomp: {} }).linux.seccomp;
    assert.equal(seccomp?.defaultAction, 'SCMP_ACT_ERRNO');
    assert.deepEqual(build({ seccompProfilePath: 'runtime/default' }).linux.seccomp, seccomp);
  });

  it('the default profile opens what a capability guards', () => {
    const namesWith = (addCapabilities: string[]): Set<string> =>
      new Set(
        build({ seccomp: {}, capabilities: { addCapabilities } })
          .linux.seccomp?.syscalls?.filter(({ action }) => action === 'SCMP_ACT_ALLOW')
          .flatMap(({ names }) => names),
      );
    assert.ok(!namesWith([]).has('mount') && !namesWith([]).has('bpf') && !namesWith([]).has('clone3'));
    assert.ok(namesWith(['SYS_ADMIN']).has('mount') && namesWith(['SYS_ADMIN']).has('clone3'));
    assert.ok(namesWith(['BPF']).has('bpf') && !namesWith(['BPF']).has('mount'));
    for (const name of ['keyctl', 'io_uring_setup', 'userfaultfd', 'kexec_load']) {
      assert.ok(!namesWith(['ALL']).has(name), name);
    }
  });

  it('the default profile lets no AF_ALG and no AF_VSOCK through, whatever the upper half says', () => {
    const rules = build({ seccomp: {} }).linux.seccomp?.syscalls?.filter(({ names }) => names.includes('socket')) ?? [];
    const allowed = (family: bigint): boolean =>
      rules.some(({ args }) =>
        (args ?? []).every(({ value, valueTwo, op }) => {
          assert.equal(op, 'SCMP_CMP_MASKED_EQ');
          return (family & BigInt(value)) === BigInt(valueTwo ?? 0);
        }),
      );
    for (let family = 0n; family < 46n; family += 1n) {
      const blocked = family === 38n || family === 40n;
      assert.equal(allowed(family), !blocked, `family ${family}`);
      assert.equal(allowed(family | (1n << 32n)), !blocked, `family ${family} with upper bits`);
    }
  });

  it('a profile of the node is asked for and checked', () => {
    const questions = containerQuestions({
      config: withContext(localhost),
      imageConfig,
      sandboxConfig: podConfig,
      node: nodeV2,
      chainIds: [],
    });
    assert.equal(questions.seccompProfilePath, '/profiles/a.json');
    const { seccomp } = build(localhost, { facts: { ...rootFacts, seccompProfile: file } }).linux;
    const { comment: _comment, ...known } = file;
    assert.deepEqual(seccomp, {
      ...known,
      syscalls: [{ names: ['read'], action: 'SCMP_ACT_ALLOW' }, file.syscalls[1]],
    });
  });

  it('a bad profile is refused, saying where', () => {
    const bad: readonly (readonly [unknown, RegExp])[] = [
      [[], /must be an object/],
      [{}, /defaultAction must be/],
      [{ defaultAction: 'ALLOW' }, /defaultAction must be/],
      [{ defaultAction: 'SCMP_ACT_ALLOW', syscalls: {} }, /syscalls must be a list/],
      [{ defaultAction: 'SCMP_ACT_ALLOW', syscalls: [{ names: ['a b'] }] }, /syscalls\[0\]\.names\[0\]/],
      [
        {
          defaultAction: 'SCMP_ACT_ALLOW',
          syscalls: [
            { names: ['x'], action: 'SCMP_ACT_ALLOW', args: [{ index: 0, value: 2 ** 60, op: 'SCMP_CMP_EQ' }] },
          ],
        },
        /args\[0\]\.value must be a whole number/,
      ],
    ];
    for (const [seccompProfile, message] of bad) {
      const failure = refusal(localhost, { facts: { ...rootFacts, seccompProfile } });
      assert.equal(failure.reason, 'InvalidField');
      assert.match(failure.message, message);
      assert.match(failure.message, /"\/profiles\/a\.json"/);
    }
  });

  it('a kernel without filters is named', () => {
    assert.equal(refusal({ seccomp: {} }, { node: { ...nodeV2, seccomp: false } }).reason, 'HostLacks');
  });

  it('a sandbox takes the default profile; that of a file is added when it is prepared', () => {
    const pod = (profileType: number) => ({ ...podConfig, linux: { securityContext: { seccomp: { profileType } } } });
    assert.ok(buildSandbox(pod(ProfileType.RuntimeDefault)).linux.seccomp);
    assert.equal(buildSandbox(pod(ProfileType.Localhost)).linux.seccomp, undefined);
    const unfiltered = { ...sandboxInput(pod(ProfileType.Localhost)), node: { ...nodeV2, seccomp: false } };
    assert.equal(failureIn(podSandboxSpec(unfiltered)).reason, 'HostLacks');
  });
});

describe('groups', () => {
  it('of the image are added unless the policy is Strict', () => {
    const asked = (supplementalGroupsPolicy?: number) => {
      const config = withContext(supplementalGroupsPolicy === undefined ? {} : { supplementalGroupsPolicy });
      return containerQuestions({ config, imageConfig, sandboxConfig: podConfig, node: nodeV2, chainIds: [] }).user;
    };
    const { Merge, Strict } = SupplementalGroupsPolicy;
    assert.deepEqual(
      [undefined, Merge, Strict].map((policy) => asked(policy).mergeImageGroups),
      [true, true, false],
    );
  });
});

describe('AppArmor', () => {
  const { Localhost, RuntimeDefault, Unconfined } = ProfileType;
  const apparmor = { profileType: Localhost, localhostRef: 'localhost/mine' };
  const node = { ...nodeV2, apparmor: true };
  const loaded: ApparmorFact = { loaded: true };
  const missing: ApparmorFact = { loaded: false, problem: 'nobody has' };
  const confined = (fact?: ApparmorFact) => ({ node, facts: fact ? { ...rootFacts, apparmor: fact } : rootFacts });
  const profileOf = (context: Context, fact: ApparmorFact | undefined = loaded): string | undefined =>
    build(context, confined(fact)).process.apparmorProfile;
  const asked = (context: Context, on: NodeFacts = node): string | undefined =>
    containerQuestions({ config: withContext(context), imageConfig, sandboxConfig: podConfig, node: on, chainIds: [] })
      .apparmorProfile;

  it('a profile of the node is named; the newer field wins', () => {
    assert.equal(profileOf({ apparmor }), 'mine');
    assert.equal(profileOf({ apparmorProfile: 'localhost/old' }), 'old');
    assert.equal(profileOf({ apparmor: { profileType: Unconfined }, apparmorProfile: 'localhost/old' }), undefined);
    assert.equal(profileOf({ apparmor, apparmorProfile: 'unconfined' }), 'mine');
    const empty = { apparmor: { profileType: Localhost } };
    assert.equal(refusal(empty, confined(loaded)).reason, 'InvalidField');
    assert.equal(refusal({ apparmorProfile: 'mine' }, confined(loaded)).reason, 'InvalidField');
  });

  it('the pause task has no profile, whatever its pod names', () => {
    const pod = { ...podConfig, linux: { securityContext: { apparmor } } };
    assert.equal(buildSandbox(pod).process.apparmorProfile, undefined);
  });

  it('a profile that is not loaded, or a node without AppArmor, is refused', () => {
    assert.deepEqual([asked({ apparmor }), asked({ apparmor }, nodeV2)], ['mine', undefined]);
    assert.match(refusal({ apparmor }, confined(missing)).message, /"mine", which is not loaded: nobody has/);
    assert.equal(refusal({ apparmor }, confined(missing)).reason, 'HostLacks');
    assert.equal(refusal({ apparmor }).reason, 'HostLacks');
  });

  it('containers have the profile of scribe unless they say otherwise', () => {
    assert.equal(asked({}), 'scribe-default');
    assert.equal(profileOf({}), 'scribe-default');
    assert.equal(build({ apparmor: { profileType: RuntimeDefault } }).process.apparmorProfile, undefined);
    for (const context of [{ apparmor: { profileType: RuntimeDefault } }, { apparmorProfile: 'runtime/default' }]) {
      assert.equal(profileOf(context), 'scribe-default');
      assert.equal(refusal(context, confined(missing)).reason, 'HostLacks');
    }
    for (const context of [{ apparmor: { profileType: Unconfined } }, { apparmorProfile: 'unconfined' }]) {
      assert.equal(asked(context), undefined);
      assert.equal(profileOf(context), undefined);
    }
  });

  it('a container that says nothing runs unconfined where the profile cannot be loaded', () => {
    assert.equal(profileOf({}, missing), undefined);
    assert.equal(build({}, { node }).process.apparmorProfile, undefined, 'as journals of before have it');
  });

  it('privileged containers are unconfined unless they name a profile', () => {
    const privileged = (context: Context) =>
      build({ ...context, privileged: true }, { ...confined(loaded), sandboxConfig: privilegedPod }).process
        .apparmorProfile;
    assert.equal(privileged({}), undefined);
    assert.equal(privileged({ apparmor: { profileType: RuntimeDefault } }), undefined);
    assert.equal(privileged({ apparmor }), 'mine');
  });
});

describe('namespaces', () => {
  const of = (namespaces: readonly OciNamespace[]): Record<string, string | undefined> =>
    Object.fromEntries(namespaces.map(({ type, path }) => [type, path ?? 'new']));
  const pidOf = (pid: number, overrides?: Partial<ContainerSpecInput>) =>
    of(build({ namespaceOptions: { pid } }, overrides).linux.namespaces)['pid'];
  const hostPid = { ...podConfig, linux: { securityContext: { namespaceOptions: { pid: NamespaceMode.NODE } } } };

  it('of a container are those of its pod', () => {
    assert.deepEqual(of(build({}).linux.namespaces), {
      pid: '/proc/4242/ns/pid',
      network: '/state/netns/web',
      ipc: '/proc/4242/ns/ipc',
      uts: '/proc/4242/ns/uts',
      mount: 'new',
      cgroup: 'new',
    });
    assert.equal(of(build({}, { node: nodeV1 }).linux.namespaces)['cgroup'], undefined);
  });

  it('for processes are its own choice, but the node only with its pod', () => {
    assert.equal(pidOf(NamespaceMode.CONTAINER), 'new');
    assert.equal(pidOf(NamespaceMode.TARGET, { targetPid: 99 }), '/proc/99/ns/pid');
    assert.equal(pidOf(NamespaceMode.NODE), '/proc/4242/ns/pid');
    assert.equal(pidOf(NamespaceMode.NODE, { sandboxConfig: hostPid }), undefined);
    assert.equal(pidOf(NamespaceMode.POD, { sandboxConfig: hostPid }), undefined);
  });

  it('a container cannot have more of the node than its pod, whatever it says', () => {
    const { NODE } = NamespaceMode;
    const spec = build({ namespaceOptions: { network: NODE, ipc: NODE, pid: NODE } });
    assert.deepEqual(of(spec.linux.namespaces), of(build({}).linux.namespaces));
  });

  it('need processes to be joined', () => {
    assert.equal(refusal({ namespaceOptions: { pid: NamespaceMode.TARGET } }).reason, 'WrongState');
    assert.equal(refusal({}, { sandboxPid: 0 }).reason, 'WrongState');
    assert.equal(refusal({}, { netnsPath: null }).reason, 'Bug');
  });

  it("a pod with the node's UTS namespace does not rename the node", () => {
    const { NODE } = NamespaceMode;
    const config = { ...podConfig, linux: { securityContext: { namespaceOptions: { network: NODE } } } };
    const spec = buildSandbox(config, { netnsPath: null });
    assert.deepEqual([spec.hostname, of(spec.linux.namespaces)['uts']], [undefined, undefined]);
    assert.equal(buildSandbox().hostname, 'web');
  });
});
