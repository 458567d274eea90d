/** What processes have had of the processors, as proc(5) tells it. */
import { readFileSync } from 'node:fs';

/** Of times in proc(5). */
const TICKS_PER_SECOND = 100;
const MS_PER_S = 1000;

/** whole: with those children that it has waited for, and theirs. */
export type Counted = 'itself' | 'whole';

/** So far, ms; 0: the process has ended. */
export const processorMsOf = (pid: number, counted: Counted): number => {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return 0;
  }
  // utime, stime, cutime and cstime, fields 14 to 17; the second field may hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = fields.slice(11, counted === 'whole' ? 15 : 13).reduce((sum, field) => sum + Number(field), 0);
  return (ticks * MS_PER_S) / TICKS_PER_SECOND;
};
