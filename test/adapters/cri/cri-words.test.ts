/** Configurations in the words of api.proto: names and numbers are those of the contract, keys of maps are a client's. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { inCriWords, INT64_FIELDS } from '../../../src/adapters/cri/messages/cri-words.ts';
import { fields } from '../../../src/wire/fields.ts';

const protoPath = join(import.meta.dirname, '../../../proto/cri/api.proto');

/** Messages that a configuration consists of, those for other systems aside. */
function messagesIn(type: string, found = new Set<string>()): ReadonlySet<string> {
  if (found.has(type) || type.includes('Windows')) return found;
  found.add(type);
  for (const [, inner] of Object.values(fields[type] ?? {})) if (inner !== undefined) messagesIn(inner, found);
  return found;
}

describe('words of CRI', () => {
  it('numbers of 64 bits are all that the contract has', async () => {
    const proto = await readFile(protoPath, 'utf8');
    const types = [
      ...messagesIn('runtime.v1.PodSandboxConfig'),
      ...messagesIn('runtime.v1.ContainerConfig', new Set()),
    ];
    const expected = new Map<string, readonly string[]>();
    for (const type of types) {
      const body =
        new RegExp(`^message ${type.replace('runtime.v1.', '')} \\{\n([^]*?)^\\}`, 'm').exec(proto)?.[1] ?? '';
      const names = [...body.matchAll(/^ +(?:repeated )?u?int64 (\w+) =/gm)].map(([, name = '']) => name);
      if (names.length > 0) expected.set(type, names);
    }
    const known = Object.entries(INT64_FIELDS).map(([type, names]) => [type, new Set(names)] as const);
    assert.deepEqual(new Map(known), new Map([...expected].map(([type, names]) => [type, new Set(names)])));
  });

  it('names are those of the contract, and what clients call things stays', () => {
    assert.deepEqual(
      inCriWords('runtime.v1.ContainerConfig', {
        CDIDevices: [{ name: 'vendor.com/class=device' }],
        labels: { camelCase: '1', __proto: '2' },
        command: [{ token: 'secret' }, 'logPath'],
        mounts: [{ containerPath: '/a', uidMappings: [{ hostId: 1 }], mountOptions: ['noexec'] }],
        linux: {
          resources: {
            cpusetCpus: '0',
            unified: { 'memory.high': '5' },
            hugepageLimits: [{ pageSize: '2MB', limit: '7' }],
            memoryLimitInBytes: '9223372036854775807',
          },
          securityContext: {
            runAsUser: { value: '1000' },
            supplementalGroups: ['5', '6'],
            namespaceOptions: { pid: 1 },
          },
        },
      }),
      {
        CDI_devices: [{ name: 'vendor.com/class=device' }],
        labels: { camelCase: '1', __proto: '2' },
        command: [{ token: 'secret' }, 'logPath'],
        mounts: [{ container_path: '/a', uidMappings: [{ host_id: 1 }], mount_options: ['noexec'] }],
        linux: {
          resources: {
            cpuset_cpus: '0',
            unified: { 'memory.high': '5' },
            hugepage_limits: [{ page_size: '2MB', limit: 7 }],
            memory_limit_in_bytes: '9223372036854775807',
          },
          security_context: {
            run_as_user: { value: 1000 },
            supplemental_groups: [5, 6],
            namespace_options: { pid: 1 },
          },
        },
      },
    );
  });
});
