/**
 * The log in memory: which entries are on disk, and which may be applied. The numbers are those of the scenarios in
 * test/raft/SCENARIOS.md.
 */
import { describe, expect, it } from 'vitest';
import { RaftLog } from '../../raft/log.ts';
import type { Entry } from '../../raft/types.ts';

const START = { index: 0, term: 0, timeMillis: 0 };

/** Entries of these terms, from `first` on. */
function entriesOf(first: number, terms: readonly number[]): Entry[] {
  return terms.map((term, i) => ({
    index: first + i,
    term,
    timeMillis: first + i,
    kind: 'command',
    data: new Uint8Array(10),
  }));
}

const indexes = (entries: readonly Entry[]): number[] => entries.map(({ index }) => index);
const terms = (entries: readonly Entry[]): number[] => entries.map(({ term }) => term);

describe('the entries on disk', () => {
  it('117: are the entries that were written; those that came during the write are written next', () => {
    const log = new RaftLog(START, [], 0, 0);
    log.append(entriesOf(1, [1, 1]));
    const first = log.unstable(Infinity);
    log.append(entriesOf(3, [1]));
    expect(log.stable).toBe(0);
    log.stableTo(first);
    expect(log.stable).toBe(2);
    const second = log.unstable(Infinity);
    expect(indexes(second)).toEqual([3]);
    log.stableTo(second);
    expect([log.stable, log.unstable(Infinity)]).toEqual([3, []]);
  });

  it.each([
    { why: 'all of it replaced', written: [1, 1, 1], prev: 0, fresh: [2, 2, 2], stable: 0, next: [2, 2, 2] },
    { why: 'its end replaced', written: [1, 1, 1], prev: 1, fresh: [2, 2], stable: 1, next: [2, 2] },
    { why: 'its end cut off', written: [1, 1, 1], prev: 1, fresh: [2], stable: 1, next: [2] },
    { why: 'more behind it', written: [1, 1], prev: 2, fresh: [2], stable: 2, next: [2] },
  ])(
    '117: after a write during which the log changed ($why), only entries that the log still holds are on disk',
    (row) => {
      const log = new RaftLog(START, [], 0, 0);
      log.append(entriesOf(1, row.written));
      const writing = log.unstable(Infinity);
      const fresh = entriesOf(row.prev + 1, row.fresh);
      expect(log.maybeAppend(row.prev, row.prev === 0 ? 0 : 1, fresh)).toBe(row.prev + fresh.length);
      log.stableTo(writing);
      expect(log.stable).toBe(row.stable);
      expect(terms(log.unstable(Infinity))).toEqual(row.next);
    },
  );

  it('117: shrink with the log: an entry that replaces one on disk is not on disk itself', () => {
    const log = new RaftLog(START, entriesOf(1, [1, 1, 1]), 1, 1);
    expect(log.stable).toBe(3);
    log.maybeAppend(1, 1, entriesOf(2, [2]));
    expect(log.stable).toBe(1);
    // A late completion of a write of replaced entries marks nothing.
    log.stableTo(entriesOf(2, [1, 1]));
    expect(log.stable).toBe(1);
  });

  it('117: stay on disk after compaction, and after a completed write of entries before the base', () => {
    const log = new RaftLog(START, entriesOf(1, [1, 1, 1]), 3, 3);
    log.append(entriesOf(4, [1]));
    const writing = log.unstable(Infinity);
    log.compact(3);
    log.stableTo(entriesOf(2, [1]));
    expect(log.stable).toBe(3);
    log.stableTo(writing);
    expect(log.stable).toBe(4);
  });
});

describe('the entries that may be applied', () => {
  it('83, 119: are committed and on the own disk, and are handed out a bounded number of bytes at a time', () => {
    const log = new RaftLog(START, [], 0, 0);
    log.append(entriesOf(1, [1, 1, 1, 1, 1]));
    log.commitTo(5);
    const everything = Number.POSITIVE_INFINITY;
    expect(log.applicable(everything)).toEqual([]);
    log.stableTo(entriesOf(1, [1, 1, 1]));
    expect(indexes(log.applicable(everything))).toEqual([1, 2, 3]);
    const [first, ...rest] = log.applicable(everything);
    const bytes = (first?.data.byteLength ?? 0) + 32;
    expect(rest).toHaveLength(2);
    expect(indexes(log.applicable(2 * bytes))).toEqual([1, 2]);
    // Asking twice gives the same entries; at least one entry is given, of any size.
    expect(indexes(log.applicable(2 * bytes))).toEqual([1, 2]);
    expect(indexes(log.applicable(1))).toEqual([1]);
    log.appliedTo(2);
    expect(indexes(log.applicable(everything))).toEqual([3]);
    expect(() => log.appliedTo(4)).toThrow(/stable 3/);
    log.stableTo(entriesOf(4, [1, 1]));
    expect(indexes(log.applicable(everything))).toEqual([3, 4, 5]);
  });
});
