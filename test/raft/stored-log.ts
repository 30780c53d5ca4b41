/** Hand-made states that a node finds on its disk when it starts. */
import type { Entry, StoredGroup } from '../../raft/types.ts';

/** The placement on disk of a group that was there from the start and never moved. */
export const NEVER_PLACED: Pick<StoredGroup, 'placement' | 'removedAt' | 'removed'> = {
  placement: 0,
  removedAt: 0,
  removed: false,
};

/** A stored log of entries with these terms; group time is 10 ms an index. */
export function storedLog(
  terms: readonly number[],
  hardState: Partial<StoredGroup['hardState']> = {},
): StoredGroup {
  return {
    ...NEVER_PLACED,
    hardState: { term: terms.at(-1) ?? 0, vote: 0, commit: 0, ...hardState },
    base: { index: 0, term: 0, timeMillis: 0 },
    entries: entriesAfter(0, terms, (term, index) => `${term}.${index}`),
  };
}

/** Commands of these terms behind `index`. */
export function entriesAfter(
  index: number,
  terms: readonly number[],
  textOf: (term: number, index: number) => string = () => '-',
): Entry[] {
  return terms.map((term, i) => ({
    index: index + 1 + i,
    term,
    timeMillis: (index + 1 + i) * 10,
    kind: 'command',
    data: new TextEncoder().encode(textOf(term, index + 1 + i)),
  }));
}
