/**
 * The local time zone, as TZ says it: whether this program knows the zone that is meant, for what it does not know it takes for UTC
 * without a word. For whatever shows local times or takes them; has Node use the zone, and knows no time.
 *
 * glibc, which every other program asks, also takes files and rules (CET-1CEST,M3.5.0,M10.5.0/3). Of these a file of the system's
 * zones and a whole number of hours are zones that Node knows by another name; a rule is none.
 */
import { nearest } from '../config/nearest.ts';
import { misuse } from './command.ts';
import { localTime, type ShowTime, shortUtcTime } from './format.ts';

const ZONE_FILES = '/usr/share/zoneinfo/';
/** The node's own zone, which Node finds by itself, summer time and all, where TZ is not set. */
const OF_THE_NODE = ['/etc/localtime', `${ZONE_FILES}localtime`, 'localtime'];
/** NAME[+-]HOURS without summer time: how far to the west of Greenwich. */
const FIXED = /^(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)([+-]?)(\d{1,2})$/;
/** A day in summer and one in winter, wherever that is; not the same in any zone that is known by its offset alone. */
const PROBES_MS = [Date.UTC(2026, 0, 15), Date.UTC(2026, 6, 15)];

/** Whether Node knows this name and goes by it: of JST and the like it knows the zone, and shows UTC. */
const isUsed = (name: string): boolean => {
  try {
    return PROBES_MS.every((ms) => {
      const shown = Date.parse(`${new Date(ms).toLocaleString('en-US', { timeZone: name })} UTC`);
      return shown === ms - new Date(ms).getTimezoneOffset() * 60_000;
    });
  } catch {
    return false;
  }
};

/** As Node calls it; null: it is to find the node's own. */
const nameOf = (text: string): string | null => {
  const name = text.replace(/^:/, '');
  if (OF_THE_NODE.includes(name)) return null;
  const [, sign = '', hours] = FIXED.exec(name) ?? [];
  if (hours !== undefined && !isUsed(name)) return `Etc/GMT${sign || '+'}${Number(hours)}`;
  const plain = name.startsWith(ZONE_FILES) ? name.slice(ZONE_FILES.length) : name;
  return plain.replace(/^(?:posix|right)\//, '');
};

const use = (name: string | null): void => {
  if (name === null) delete process.env['TZ'];
  else process.env['TZ'] = name;
};

let checked: string | undefined;

/** Throws where TZ says a zone that would be taken for UTC. */
export const needLocalZone = (): void => {
  const text = process.env['TZ'];
  // glibc, too, takes an empty one for UTC.
  if (text === undefined || text === '' || text === ':' || text === checked) return;
  const name = nameOf(text);
  if (name !== text) use(name);
  if (name === null) return;
  if (isUsed(name)) {
    checked = name;
    return;
  }
  // Whoever asks next, in this process, is to be refused as well.
  use(text);
  const meant = nearest(name, Intl.supportedValuesOf('timeZone'));
  throw misuse(
    `TZ=${text}: that time zone is not known${meant === null ? '.' : `; did you mean TZ=${meant}?`} Name one, as TZ=Europe/Berlin, or unset TZ, or give times with their zone (03:12Z) and have them shown in UTC (--utc).`,
  );
};

/** How times are shown: local ones, or with --utc in UTC. Throws for a zone that is not known. */
export const timesIn = ({ utc }: { readonly utc?: boolean }): ShowTime => {
  if (utc === true) return shortUtcTime;
  needLocalZone();
  return localTime;
};
