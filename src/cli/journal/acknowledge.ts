/** `scribe journal acknowledge`: somebody knows why the journal is not all that was written on this node. */
import { DaemonDefinition } from '../../wire/scribe/v1/daemon.ts';
import { connectDaemon } from '../client.ts';
import { command, misuse } from '../command.ts';
import { write } from '../io.ts';
import { configOption, socketOf, socketOption } from '../places.ts';

const TIMEOUT_MS = 20_000;

export const journalAcknowledge = command({
  name: 'journal acknowledge',
  summary: 'say that you know why the journal is not all that was written here',
  description: [
    'A journal that was put back from a copy, cut, or begun anew is doubted: scribe doctor and scribe verify say so, pods whose creation it says was under way are left as they are, and no image content is deleted, since what the journal does not know of may be running. The head that it does not contain is kept beside it.',
    'This ends the doubt: what was left alone is undone, and content that no image needs is collected again. It is recorded with who called and the reason that was given, for ever; scribe history shows it.',
    'Look first at what scribe doctor lists: scribe journal clear-strays ends what runs unknown to the journal.',
  ],
  options: {
    config: configOption,
    socket: socketOption,
    reason: { value: 'TEXT', required: true, about: 'Why it is right so. It has to be given.' },
  },
  examples: [
    [
      "scribe journal acknowledge --reason 'restored from the backup of last night, disk replaced'",
      'Ends the doubt, and says why for whoever reads the journal later.',
    ],
  ],
  run: async (values, _operands, io) => {
    const { reason } = values;
    if (reason === undefined) throw misuse('--reason is missing: say why it is right so.');
    const daemon = await connectDaemon(await socketOf(values));
    try {
      const { acknowledgeJournal } = DaemonDefinition.methods;
      const { doubts } = await daemon.call(DaemonDefinition, acknowledgeJournal, { reason }, TIMEOUT_MS);
      await write(io.stdout, doubts.map((doubt) => `acknowledged: ${doubt}\n`).join(''));
      return 0;
    } finally {
      daemon.close();
    }
  },
});
