/** What the witnesses of the configuration have cosigned of a journal, by the files beside it: for doctor and journal info. */
import type { Config } from '../../config/config.ts';
import { cosignedAtSeconds, cosignerOf, readCosigned } from '../../journal/cosigned.ts';

export interface Witnessed {
  readonly name: string;
  /** The last record that it has cosigned, and when; null: none, by the key of the configuration. */
  readonly cosigned: { readonly seq: number; readonly atSeconds: number } | null;
}

export const witnessedOf = async (
  journalPath: string,
  witnesses: Config['journal']['witnesses'],
): Promise<readonly Witnessed[]> =>
  Promise.all(
    witnesses.map(async ({ name, key }) => {
      const [note, cosigner] = [await readCosigned(journalPath, name), cosignerOf(key)];
      const atSeconds = note === null || cosigner === null ? null : cosignedAtSeconds(cosigner, note);
      return { name, cosigned: note === null || atSeconds === null ? null : { seq: note.size, atSeconds } };
    }),
  );
