/**
 * An OCI runtime and a CRIU that do as tests tell them, in a PATH of their own: CRIU itself depends on the kernel. What is
 * real is all around them: the shim, the other calls of runc, tar.
 */
import { chmod, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import type { Owner } from './cleanup.ts';
import type { NodeOptions } from './node.ts';
import { tempDir } from './temp-dir.ts';

const tracer = join(import.meta.dirname, 'tracer-child.ts');

/**
 * runc, but for checkpoints: <dir>/fails makes them (and restores) fail, with <dir>/logs for CRIU's log, <dir>/hangs never end; both leave the container frozen. Restores that hang have restored it, and leave what runc mounts for CRIU. Nor with <dir>/traces, whose container has somebody hold of it. Those that
 * succeed write what runc lists meanwhile into <dir>/listed. What is restored is run anew, and what it would have been
 * restored from is listed in <dir>/restored.
 */
const runtime = (dir: string): string => `#!/bin/sh
restore() {
  images= run= log= root= id=
  while [ $# -gt 0 ]; do
    case $1 in
      restore) run="$run run" ;;
      --image-path) images=$2; shift ;;
      --work-path) shift ;;
      --root) run="$run $1 $2" root=$2; shift ;;
      --log) run="$run $1 $2" log=$2; shift ;;
      *) run="$run $1" id=$1 ;;
    esac
    shift
  done
  if [ -e ${dir}/fails ]; then
    echo '{"level":"error","msg":"criu failed: type NOTIFY errno 0"}' >>"$log"
    exit 1
  fi
  ls -lAn "$images" >>${dir}/restored
  if [ -e ${dir}/hangs ]; then
    runc $run
    mkdir "$root/$id/criu-root"
    mount --bind "$images" "$root/$id/criu-root"
    touch ${dir}/hanging
    exec sleep 1000
  fi
  exec runc $run
}
case " $* " in
  *" checkpoint "*) ;;
  *" restore "*) restore "$@" ;;
  *) exec runc "$@" ;;
esac
root=
for word; do
  [ "$previous" = --image-path ] && images=$word
  [ "$previous" = --work-path ] && work=$word
  [ "$previous" = --root ] && root=$word
  previous=$word
done
if [ -e ${dir}/hangs ]; then
  runc --root "$root" pause "$previous"
  touch ${dir}/hanging
  exec sleep 1000
fi
if [ -e ${dir}/traces ]; then
  pid=$(runc --root "$root" state "$previous" | sed -n 's/.*"pid": \\([0-9]*\\),/\\1/p')
  exec ${process.execPath} ${tracer} "$pid" ${dir}/hanging
fi
if [ -e ${dir}/fails ]; then
  runc --root "$root" pause "$previous"
  echo "criu failed: type NOTIFY errno 0" >&2
  [ -e ${dir}/logs ] && cp ${dir}/logs "$work/dump.log"
  exit 1
fi
runc --root "$root" list >>${dir}/listed
echo pages >"$images/pages-1.img"
`;

/** Says what CRIU says of a kernel that it does not know, as long as <dir>/broken is there. */
const criu = (dir: string): string => `#!/bin/sh
[ -e ${dir}/broken ] || exit 0
echo "Error (criu/vdso.c:381): vdso: Unexpected rt vDSO area bounds" >&2
exit 1
`;

/** tar, and how many seconds that takes is in <dir>/tar-takes. */
const tar = (dir: string): string => `#!/bin/sh
[ -e ${dir}/tar-takes ] && sleep "$(cat ${dir}/tar-takes)"
exec /usr/bin/tar "$@"
`;

const scripts = { 'test-runtime': runtime, criu, tar };

export interface CriuTools {
  /** The directory of all that is in PATH, and of the files that tell runtime and CRIU what to do. */
  readonly tools: string;
  /** Puts it there; CRIU is not there before. */
  readonly script: (name: keyof typeof scripts) => Promise<string>;
  readonly nodeOptions: Pick<NodeOptions, 'runtime' | 'env'>;
}

/** Everything that PATH has, but for this machine's own CRIU. */
export const criuTools = async (owner: Owner): Promise<CriuTools> => {
  const tools = await tempDir(owner);
  for (const dir of (process.env['PATH'] ?? '').split(delimiter))
    for (const name of await readdir(dir).catch((): string[] => []))
      if (name !== 'criu') await symlink(join(dir, name), join(tools, name)).catch(() => undefined);
  const script: CriuTools['script'] = async (name) => {
    const path = join(tools, name);
    await rm(path, { force: true });
    await writeFile(path, scripts[name](tools));
    await chmod(path, 0o755);
    return path;
  };
  return { tools, script, nodeOptions: { runtime: await script('test-runtime'), env: { PATH: tools } } };
};
