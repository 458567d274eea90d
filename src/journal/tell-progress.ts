/** Words of a thread about how far it is: each is a message to another thread, so not every record is worth one. */

/** Tells of a count whenever it has grown by so much. */
export const tellEvery = (records: number, tell: (count: number) => void): ((count: number) => void) => {
  let told = 0;
  return (count) => {
    if (count - told < records) return;
    told = count;
    tell(count);
  };
};
