/** From the cgroupsPath of a spec to a directory below a hierarchy's mount point. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { cgroupDirectory } from '../../../src/platform/linux/cgroup-path.ts';

it('finds cgroups by paths and by systemd names, and never outside of the hierarchy', () => {
  const cases: readonly (readonly [string, string | null])[] = [
    ['/kubepods/besteffort/pod1/abc', 'kubepods/besteffort/pod1/abc'],
    ['kubepods//pod1/', 'kubepods/pod1'],
    [
      'kubepods-burstable-pod1.slice:cri-scribe:abc',
      'kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-scribe-abc.scope',
    ],
    [':cri-scribe:abc', 'system.slice/cri-scribe-abc.scope'],
    ['-.slice:cri-scribe:abc', 'cri-scribe-abc.scope'],
    ['a.slice::b', 'a.slice/b.scope'],
    ['a.slice:x:a-b.slice', 'a.slice/a-b.slice'],
    ['/a/../../b', 'b'],
    ['a/../../b', null],
    ['/..', null],
    ['/', null],
    ['', null],
    ['a.slice:..:../../x', null],
  ];
  for (const [cgroupsPath, directory] of cases) assert.equal(cgroupDirectory(cgroupsPath), directory, cgroupsPath);
});
