/**
 * critest, the public CRI validation suite, with stand-ins for the images it pulls: made of this machine's busybox and
 * of the pause program, under the names critest knows, in a registry that mirrors theirs.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pauseProgram } from '../../src/adapters/pause/pause-program.ts';
import {
  buildImage,
  busyboxImage,
  busyboxLayer,
  type Image,
  type LayerEntry,
  programLayer,
} from '../../scripts/lib/image.ts';
import type { Owner } from './cleanup.ts';
import { criTool } from './cri-tools.ts';
import type { Daemon } from './daemon.ts';
import { insideMounts } from './mount-namespace.ts';
import { run } from './process.ts';
import type { Registry } from './registry.ts';
import { tempDir } from './temp-dir.ts';

/** The registries that critest pulls from. */
export const critestRegistries = ['registry.k8s.io', 'k8s.gcr.io', 'gcr.io'];

const file = (name: string, content: string, mode = 0o644): LayerEntry => ({ name, content, mode });

/** What Debian's busybox lacks: critest looks for processes with it. */
const pgrep = `#!/bin/sh
ps -o pid,comm | awk -v name="$1" '$2 ~ name { print $1; found = 1 } END { exit !found }'
`;

/** Debian's busybox lacks this one too: critest looks for a segment of shared memory by its id. */
const ipcs = `#!/bin/sh
cat /proc/sysvipc/shm
`;

/** The user that critest runs as, and the group that only the image knows it to be in. */
const predefinedGroup = [
  file('etc/passwd', 'root:x:0:0:root:/root:/bin/sh\ndefault-user:x:1000:1000::/:/bin/sh\n'),
  file('etc/group', 'root:x:0:\ndefault-user:x:1000:\ngroup-defined-in-image:x:50000:default-user\n'),
];

/** Named as critest looks for it, with its pid in the file and the words among its arguments. */
const nginx = `#!/bin/sh
trap 'kill $!; exit 0' TERM
mkdir -p /var/run
echo $$ > /var/run/nginx.pid
echo httpd starts
httpd -f -p 80 -h /www &
wait
`;

/** Says who it runs as: root by its setuid bit, unless a container may gain no privileges. */
const whoAmI = `#!/bin/sh
echo "Effective uid: $(/suid/id -u)"
`;

const webServer = {
  layers: [
    [
      { name: 'www', type: 'directory' as const },
      file('www/index.html', '<h1>It works!</h1>\n'),
      file('bin/nginx', nginx, 0o755),
    ],
  ],
  config: { Entrypoint: ['/bin/nginx', 'master process'] },
};

/** Pods on the host's network would be in each other's way at port 80. */
const hostWebServer = {
  ...webServer,
  config: { Entrypoint: ['sh', '-c', 'echo httpd starts; exec httpd -f -p 12003 -h /www'] },
};

/** Puts every image that critest asks for into the registry. */
export const pushCritestImages = async (registry: Registry): Promise<void> => {
  const base = [...(await busyboxLayer()), file('bin/pgrep', pgrep, 0o755), file('bin/ipcs', ipcs, 0o755)];
  const env = { Cmd: ['sh'], Env: ['PATH=/usr/sbin:/usr/bin:/sbin:/bin'] };
  const named = (name: string): Promise<Image> => busyboxImage({}, [[file(name, `${name}\n`)]]);
  const ofUser = (user: string): Promise<Image> => busyboxImage({ User: user });
  const pause = await buildImage([[{ name: 'pause', content: pauseProgram(process.arch) }]], {
    Entrypoint: ['/pause'],
  });
  const web = await busyboxImage(webServer.config, webServer.layers);
  const hostWeb = await busyboxImage(hostWebServer.config, hostWebServer.layers);
  const images: readonly (readonly [repository: string, tag: string, image: Image])[] = [
    ['e2e-test-images/busybox', '1.29-2', await buildImage([base], env)],
    ['e2e-test-images/nginx', '1.14-2', web],
    [`k8s-staging-cri-tools/hostnet-nginx-${process.arch === 'x64' ? 'amd64' : process.arch}`, 'latest', hostWeb],
    ['e2e-test-images/httpd', '2.4.39-4', web],
    ['pause', '3.9', pause],
    ['k8s-staging-cri-tools/test-image-latest', 'latest', await named('latest')],
    ['k8s-staging-cri-tools/test-image-tag', 'test', await named('tag')],
    ['k8s-staging-cri-tools/test-image-tag', 'all', await named('tag-all')],
    ...(await Promise.all(
      ['1', '2', '3'].map(
        async (number) => [`k8s-staging-cri-tools/test-image-${number}`, 'latest', await named(number)] as const,
      ),
    )),
    ...(await named('tags').then((image) =>
      ['1', '2', '3'].map((tag) => ['k8s-staging-cri-tools/test-image-tags', tag, image] as const),
    )),
    ['k8s-staging-cri-tools/test-image-predefined-group', 'latest', await busyboxImage({}, [predefinedGroup])],
    [
      'e2e-test-images/nonewprivs',
      '1.3',
      await busyboxImage({ Entrypoint: ['/who-am-i'] }, [
        [...(await programLayer('/usr/bin/id', 'suid/id', 0o4755)), file('who-am-i', whoAmI, 0o755)],
      ]),
    ],
    ['k8s-staging-cri-tools/test-image-user-uid', 'latest', await ofUser('1002')],
    ['k8s-staging-cri-tools/test-image-user-username', 'latest', await ofUser('www-data')],
    ['k8s-staging-cri-tools/test-image-user-uid-group', 'latest', await ofUser('1003:50000')],
    ['k8s-staging-cri-tools/test-image-user-username-group', 'latest', await ofUser('www-data:100')],
  ];
  for (const [repository, tag, image] of images) await registry.push(repository, tag, image);
};

export interface SpecResult {
  /** As critest prints it: groups and the spec's own words. */
  readonly name: string;
  /** passed, failed, skipped, pending, timedout, … */
  readonly state: string;
  readonly failure: string;
}

interface SpecReport {
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly LeafNodeType: string;
  readonly LeafNodeText: string;
  readonly State: string;
  readonly Failure?: {
    readonly Message: string;
    readonly Location: { readonly FileName: string; readonly LineNumber: number };
  };
}

export interface CritestRun {
  readonly focus: string;
  readonly skip: string;
  readonly timeoutMs: number;
  /** Where it runs, as the daemon does: some specs mount what a container is to see. */
  readonly mountNamespace?: string | undefined;
  /** `critest-nri`: with the specs of NRI, which the release does not have. */
  readonly program?: 'critest' | 'critest-nri';
  /** Further arguments. */
  readonly flags?: readonly string[];
}

/** Runs the specs whose names match `focus` and not `skip` (Go regular expressions); of the others, none is told. */
export const runCritest = async (
  owner: Owner,
  daemon: Pick<Daemon, 'netns' | 'socket'>,
  { focus, skip, timeoutMs, mountNamespace, program = 'critest', flags = [] }: CritestRun,
): Promise<SpecResult[]> => {
  const reportPath = join(await tempDir(owner), 'report.json');
  const endpoint = `unix://${daemon.socket}`;
  const { stdout, stderr } = await run(
    daemon.netns.inside([
      ...insideMounts(mountNamespace),
      criTool(program),
      ...['-runtime-endpoint', endpoint, '-image-endpoint', endpoint],
      ...flags,
      ...[`-ginkgo.focus=${focus}`, `-ginkgo.skip=${skip}`, '-ginkgo.no-color', `-ginkgo.json-report=${reportPath}`],
    ]),
    { timeoutMs },
  );
  const text = await readFile(reportPath, 'utf8').catch(() => null);
  if (text === null) throw new Error(`critest left no report:\n${stdout}${stderr}`);
  const suites = JSON.parse(text) as { readonly SpecReports: readonly SpecReport[] }[];
  return (
    suites
      .flatMap(({ SpecReports }) => SpecReports)
      // One that skips itself says why; one that was not asked for has nothing to say.
      .filter(
        ({ LeafNodeType, State, Failure }) => LeafNodeType === 'It' && (State !== 'skipped' || Failure !== undefined),
      )
      .map(({ ContainerHierarchyTexts, LeafNodeText, State, Failure }) => ({
        name: [...(ContainerHierarchyTexts ?? []), LeafNodeText].join(' '),
        state: State,
        failure:
          Failure === undefined ? '' : `${Failure.Location.FileName}:${Failure.Location.LineNumber} ${Failure.Message}`,
      }))
  );
};
