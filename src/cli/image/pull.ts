/** `scribe image pull`: has the daemon pull an image, and shows how far it is. */
import { ImagesDefinition } from '../../wire/scribe/v1/images.ts';
import { connectDaemon } from '../client.ts';
import { command, misuse } from '../command.ts';
import type { Io } from '../io.ts';
import { configOption, socketOf, socketOption } from '../places.ts';
import { createTransfer, showTransfer } from './transfer.ts';

/** Nobody's password is longer. */
const PASSWORD_BYTES_MAX = 64 * 1024;

/** All of standard input but the line's end that a shell puts behind it. */
const readPassword = async ({ stdin }: Io): Promise<string> => {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stdin) {
    const bytes = Buffer.from(chunk as Uint8Array | string);
    size += bytes.length;
    if (size > PASSWORD_BYTES_MAX)
      throw misuse(`The password on standard input has more than ${PASSWORD_BYTES_MAX} bytes.`);
    chunks.push(bytes);
  }
  const password = Buffer.concat(chunks)
    .toString('utf8')
    .replace(/\r?\n$/, '');
  if (password === '') throw misuse('There is no password on standard input.');
  return password;
};

export const imagePull = command({
  name: 'image pull',
  summary: 'pull an image from its registry',
  description: [
    "Has the daemon pull an image, shows how far each layer is, and prints the image's id when all of it is there. What is there already is not fetched again, and a pull that was cut goes on where it ended.",
    "The pull is a call like the kubelet's and is recorded as one; credentials are not.",
  ],
  options: {
    socket: socketOption,
    config: configOption,
    username: { value: 'NAME', about: 'Who pulls, for registries that ask. Goes with --password-stdin.' },
    'password-stdin': {
      about: 'Reads the password from standard input: on a command line everybody could see it. Goes with --username.',
    },
  },
  operands: { name: 'REFERENCE', count: 1 },
  examples: [
    ['scribe image pull busybox', "Pulls docker.io/library/busybox:latest, as docker's users call it."],
    [
      'scribe image pull --username me --password-stdin registry.example/app:1 < password',
      'Pulls from a registry that asks who you are.',
    ],
  ],
  run: async (values, [image = ''], io) => {
    const { username = '', 'password-stdin': asksForPassword = false } = values;
    if ((username !== '') !== asksForPassword) throw misuse('--username and --password-stdin go together.');
    const password = asksForPassword ? await readPassword(io) : '';
    const daemon = await connectDaemon(await socketOf(values));
    try {
      const messages = daemon.serverStream(ImagesDefinition, ImagesDefinition.methods.pull, {
        image,
        username,
        password,
      });
      await showTransfer(createTransfer(io), messages, io);
    } finally {
      daemon.close();
    }
    return 0;
  },
});
