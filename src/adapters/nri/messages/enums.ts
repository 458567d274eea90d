/** Enums of the protocol between their names, which the domain and OCI specs have, and the numbers of the wire. */

/** As the generated code has them: the names, and one more for all others. */
type Enum<N extends number> = Readonly<Record<string, N>>;

/** undefined: the number has no name that is known here. */
export const nameIn = (names: Enum<number>, value: number): string | undefined =>
  Object.keys(names).find((name) => names[name] === value && value >= 0);

/** 0, which none of them gives a meaning that binds, for a name that has no number. */
export const numberIn = <N extends number>(names: Enum<N>, name: string): N => names[name] ?? (0 as N);
