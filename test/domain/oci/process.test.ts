/** Arguments, environment and working directory: what CRI says against what the image says. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ContainerConfig } from '../../../src/domain/model/cri.ts';
import type { ImageConfig } from '../../../src/domain/model/image-content.ts';
import { containerSpec } from '../../../src/domain/oci/container-spec.ts';
import { buildContainer, containerInput, failureIn, imageConfig, podConfig } from './support.ts';

const processOf = (config: ContainerConfig, image: ImageConfig = imageConfig) =>
  buildContainer(config, { imageConfig: image }).process;

const refusal = (config: ContainerConfig, image: ImageConfig) =>
  failureIn(containerSpec(containerInput(config, { imageConfig: image })));

describe('arguments', () => {
  const cases: readonly (readonly [string, ContainerConfig, readonly string[]])[] = [
    ['neither: ENTRYPOINT and CMD', {}, ['/entry', 'serve', '--fast']],
    ['args alone replace CMD', { args: ['other'] }, ['/entry', 'other']],
    ['a command replaces ENTRYPOINT and drops CMD', { command: ['/bin/x'] }, ['/bin/x']],
    ['both replace both', { command: ['/bin/x'], args: ['y'] }, ['/bin/x', 'y']],
  ];
  for (const [name, config, expected] of cases) {
    it(name, () => assert.deepEqual(processOf(config).args, expected));
  }

  it('nothing to run is refused, naming the field', () => {
    const failure = refusal({}, {});
    assert.equal(failure.reason, 'InvalidField');
    assert.match(failure.message, /^command is empty/);
    assert.equal(refusal({ command: [''] }, {}).reason, 'InvalidField');
  });

  it('an image with a NUL byte is refused', () => {
    assert.equal(refusal({}, { entrypoint: ['/a\0b'] }).reason, 'ImageInvalid');
    assert.equal(refusal({}, { ...imageConfig, env: ['A=b\0c'] }).reason, 'ImageInvalid');
    assert.equal(refusal({}, { ...imageConfig, workingDir: '/\0' }).reason, 'ImageInvalid');
  });
});

describe('environment', () => {
  it('lets the image replace defaults and CRI replace the image, and keeps secrets as tokens', () => {
    const { env } = processOf({ envs: [{ key: 'MODE', token: 't1' }, { key: 'HOSTNAME', token: 't2' }, { key: 'E' }] });
    assert.deepEqual(env, [
      'PATH=/app/bin:/bin',
      { name: 'HOSTNAME', token: 't2' },
      { name: 'MODE', token: 't1' },
      'E=',
    ]);
  });

  it('has a PATH, the name of the pod, and TERM with a terminal', () => {
    assert.deepEqual(processOf({ tty: true }, { cmd: ['x'] }).env, [
      'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      'TERM=xterm',
      'HOSTNAME=web',
    ]);
    const unnamed = buildContainer({}, { sandboxConfig: { ...podConfig, hostname: '' }, imageConfig: { cmd: ['x'] } });
    assert.equal(unnamed.process.env.at(-1), 'HOSTNAME=node-1');
  });

  it('skips what an image sets without a name or value, and keeps the last of a name', () => {
    const env = ['=x', 'NONE', '', 'A=1', 'A=2=3', 'B='];
    assert.deepEqual(processOf({}, { cmd: ['x'], env }).env.slice(2), ['A=2=3', 'B=']);
  });

  it('an image cannot name a token', () => {
    const { env } = processOf({}, { cmd: ['x'], env: ['A=t1', '[object Object]=t1'] });
    assert.ok(env.every((entry) => typeof entry === 'string'));
  });
});

describe('working directory', () => {
  it("is CRI's, else the image's, else the root", () => {
    assert.equal(processOf({ workingDir: '/cri' }).cwd, '/cri');
    assert.equal(processOf({}).cwd, '/app');
    assert.equal(processOf({}, { cmd: ['x'], workingDir: 'relative' }).cwd, '/relative');
    assert.equal(processOf({}, { cmd: ['x'] }).cwd, '/');
  });
});
