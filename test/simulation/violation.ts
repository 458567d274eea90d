/** What a check throws: something happened that must not. */
export class Violation extends Error {}
