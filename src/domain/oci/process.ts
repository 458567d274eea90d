/**
 * What runs in a container and with what around it: arguments, environment, working directory. The image's config
 * comes from a registry and is not trusted; the values of CRI's environment are secrets, present as tokens only.
 */
import type { ContainerConfig } from '../model/cri.ts';
import type { ImageConfig } from '../model/image-content.ts';
import { isAbsolute } from './paths.ts';
import { refuse, refuseField, shown } from './refuse.ts';
import type { OciArg, OciEnv } from '../model/oci.ts';

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const NUL = '\0';

function checkImageText(what: string, text: string): string {
  return text.includes(NUL) ? refuse('ImageInvalid', `the image's ${what} holds a NUL byte: ${shown(text)}`) : text;
}

/**
 * A command replaces ENTRYPOINT and lets CMD fall; args alone replace CMD; neither leaves both (the Kubernetes rule).
 * @throws {FailureError} InvalidField when nothing is left to run.
 */
export function processArgs(config: ContainerConfig, imageConfig: ImageConfig): readonly OciArg[] {
  const command = config.command ?? [];
  const args = config.args ?? [];
  const entrypoint = imageConfig.entrypoint ?? [];
  const own = command.length > 0 || args.length > 0;
  const all = [
    ...(command.length > 0 ? command : entrypoint.map((text) => checkImageText('Entrypoint', text))),
    ...(own ? args : (imageConfig.cmd ?? []).map((text) => checkImageText('Cmd', text))),
  ];
  if (all.length === 0)
    refuseField('command', 'is empty, and the image has neither ENTRYPOINT nor CMD: say what to run');
  if (all[0] === '') refuseField('command', 'begins with an empty word: name a program');
  return all;
}

/** Name and entry of "NAME=value"; entries without a name, or without a value, set nothing. */
function imageEnv(imageConfig: ImageConfig): readonly (readonly [string, OciEnv])[] {
  return (imageConfig.env ?? []).flatMap((entry) => {
    const at = checkImageText('Env', entry).indexOf('=');
    return at > 0 ? [[entry.slice(0, at), entry] as const] : [];
  });
}

/**
 * Later entries replace earlier ones of the same name: the defaults, the runtime handler's, the image's, then CRI's.
 * An entry of CRI without a token has an empty value.
 */
export function processEnv(
  config: ContainerConfig,
  imageConfig: ImageConfig,
  hostname: string,
  base: readonly string[] = [],
): readonly OciEnv[] {
  const asked = (config.envs ?? []).map(
    ({ key = '', token }) => [key, token === undefined ? `${key}=` : { name: key, token }] as const,
  );
  const env = new Map<string, OciEnv>([
    ['PATH', `PATH=${DEFAULT_PATH}`],
    ...(config.tty ? [['TERM', 'TERM=xterm'] as const] : []),
    ['HOSTNAME', `HOSTNAME=${hostname}`],
    ...base.map((entry) => [entry.slice(0, entry.indexOf('=')), entry] as const),
    ...imageEnv(imageConfig),
    ...asked,
  ]);
  return [...env.values()];
}

/** CRI's, else the image's, else the root. Images may hold a relative one, meant from the root. */
export function processCwd(config: ContainerConfig, imageConfig: ImageConfig): string {
  if (config.workingDir) return config.workingDir;
  const cwd = checkImageText('WorkingDir', imageConfig.workingDir ?? '') || '/';
  return isAbsolute(cwd) ? cwd : `/${cwd}`;
}
