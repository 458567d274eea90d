/** What several of these programs read from their command lines. */

/** Those of `known` that the list names, in their order. Throws one sentence for one that is not known. */
export const namedIn = <Name extends string>(option: string, list: string, known: readonly Name[]): readonly Name[] => {
  const wanted = list.split(',');
  const unknown = wanted.filter((name) => !known.some((one) => one === name));
  if (unknown.length > 0) throw new Error(`--${option} ${unknown.join(',')}: there are ${known.join(', ')}`);
  return known.filter((one) => wanted.includes(one));
};
