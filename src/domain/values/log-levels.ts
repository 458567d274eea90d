/** How severe a line of the daemon's log is, the least first: as the configuration names it, and whoever changes it by a call. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
