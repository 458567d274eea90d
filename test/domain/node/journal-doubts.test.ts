/** A journal that may lack records, and the operator's word that it is all there is. */
import { describe, it } from 'node:test';
import { NODE_STREAM } from '../../../src/domain/model/records.ts';
import { type Happening, given } from '../given.ts';
import { call } from '../happenings.ts';

const acknowledge = call({ method: 'AcknowledgeJournal', reason: 'It was restored from a backup.' });
const journalIsDoubted: Happening = (tell) =>
  tell({ type: 'journal.doubted', body: { what: 'Its newest records are missing.' }, stream: NODE_STREAM, call: null });

describe('AcknowledgeJournal', () => {
  it('takes the journal for whole from now on', () => {
    given(journalIsDoubted)
      .when(acknowledge)
      .follows({ records: ['journal.acknowledged'], answers: ['AcknowledgeJournal OK'] });
  });

  it('is refused where nothing is doubted', () => {
    given()
      .when(acknowledge)
      .follows({ answers: ['AcknowledgeJournal WrongState'] });
  });
});
