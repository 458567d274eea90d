/** What a history that broke a promise leaves behind: what was broken, and all that was written down until then. */
import type { Sequenced } from '../../src/domain/model/records.ts';

export class Finding extends Error {
  /** Durable records until then, as the domain reads them. */
  readonly records: readonly Sequenced[];
  /** How many choices were made until then. */
  readonly choices: number;

  constructor(cause: unknown, records: readonly Sequenced[], choices: number) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.name = 'Finding';
    this.records = records;
    this.choices = choices;
  }

  /** The same for findings that differ in ids, numbers and times only. */
  get sort(): string {
    return this.message.replace(/[0-9a-f]{8,}|\d+/g, '#').slice(0, 100);
  }
}
