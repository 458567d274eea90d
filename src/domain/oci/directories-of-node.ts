/**
 * Places that everybody on a node needs as they are: to give one of them another label, mode or owner would take the node
 * from all others on it.
 */

export const DIRECTORIES_OF_NODE: readonly string[] = [
  ...[
    '/',
    '/bin',
    '/boot',
    '/dev',
    '/etc',
    '/etc/passwd',
    '/etc/pki',
    '/etc/shadow',
    '/home',
    '/lib',
    '/lib64',
    '/media',
  ],
  ...['/mnt', '/opt', '/proc', '/root', '/run', '/sbin', '/srv', '/sys', '/system', '/tmp', '/usr', '/var', '/var/lib'],
  ...['/var/log', '/var/run', '/var/tmp'],
];
