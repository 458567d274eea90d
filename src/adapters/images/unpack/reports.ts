/**
 * The daemon's end of what an unpacking child says. The child reads hostile archives, so its words are taken as hostile too:
 * what is no report, or too long, ends it.
 */
import * as z from 'zod';
import { codeOfReason, FailureError, type FailureReason } from '../../../domain/model/errors.ts';
import { readAs } from '../../../platform/foreign-json.ts';
import type { UnpackReport } from './protocol.ts';

const LINE_BYTES_MAX = 64 * 1024;

const countSchema = z.int().nonnegative();
const reasonSchema = z.custom<FailureReason>(
  (reason) => typeof reason === 'string' && Object.hasOwn(codeOfReason, reason),
);

const reportSchema: z.ZodType<UnpackReport> = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('loaded') }),
  z.object({ kind: z.literal('progress'), bytesDone: countSchema }),
  z.object({ kind: z.literal('implied'), path: z.string() }),
  z.object({ kind: z.literal('opaque'), path: z.string() }),
  z.object({ kind: z.literal('done'), usedBytes: countSchema, inodesUsed: countSchema }),
  z.object({ kind: z.literal('failed'), reason: reasonSchema, message: z.string() }),
]);

const badAnswer = (): FailureError => new FailureError('HostFailed', 'The unpacking process answered with nonsense.');

/** Takes pieces of the child's stdout as they come; throws FailureError HostFailed on what is no report. */
export const createReportReader = (onReport: (report: UnpackReport) => void): ((chunk: Uint8Array) => void) => {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(0x0a); end >= 0; end = rest.indexOf(0x0a)) {
      const report = readAs(reportSchema, rest.toString('utf8', 0, end));
      if (report === null) throw badAnswer();
      onReport(report);
      rest = rest.subarray(end + 1);
    }
    if (rest.length > LINE_BYTES_MAX) throw badAnswer();
  };
};
