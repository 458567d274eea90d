/**
 * The command line that starts a program with few rights, in namespaces of its own, by unshare(1) and setpriv(1): all of
 * it holds before the program's first instruction, and so for each of its threads. The program sees the node's files
 * until the spawner gives it another root (Told.root), which is why it must not be a stranger's.
 */

/** Capabilities (capabilities(7)) by which files of any owner and mode, devices and capabilities of files are made. */
const CAPABILITIES = ['chown', 'dac_override', 'fowner', 'fsetid', 'mknod', 'setfcap'] as const;

/** Where both programs are on any system; the daemon's own PATH may be a short one. */
export const JAILER_PATH = '/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * With mount, network and process namespaces of its own, these capabilities and no way to others, whatever it executes.
 * It dies with the process that started it. What the node unmounts meanwhile is unmounted for it too.
 */
export const jailedCommand = (command: string, args: readonly string[]): { command: string; args: string[] } => ({
  command: 'unshare',
  args: [
    ...['--mount', '--propagation', 'slave', '--net', '--pid', '--fork', '--kill-child', '--'],
    ...['setpriv', '--no-new-privs', '--inh-caps=-all'],
    `--bounding-set=${['-all', ...CAPABILITIES.map((name) => `+${name}`)].join(',')}`,
    ...['--', command, ...args],
  ],
});
