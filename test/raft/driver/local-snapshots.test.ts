/**
 * When a snapshot is due: its cost is in proportion to the log since the last one, and the log that a restart reads is
 * bounded.
 */
import { describe, expect, it } from 'vitest';
import { LocalSnapshots } from '../../../raft/driver/local-snapshots.ts';
import { entryBytes } from '../../../raft/log.ts';
import type { Entry } from '../../../raft/types.ts';
import { seeded } from '../seeded.ts';

const EVERY_BYTES = 10_000;
const CHUNK_BYTES = 1_000;
const ENTRY_BYTES_MAX = 2_000;

function entryOf(index: number, bytes: number): Entry {
  return { index, term: 1, timeMillis: 0, kind: 'command', data: new Uint8Array(bytes) };
}

/** Writes a whole snapshot with this many bytes. */
function take(snapshots: LocalSnapshots, index: number, bytes: number): void {
  let left = bytes;
  const next = (): Uint8Array | undefined => {
    const size = Math.min(left, CHUNK_BYTES);
    left -= size;
    return size === 0 ? undefined : new Uint8Array(size);
  };
  const position = { index, term: 1, timeMillis: 0, voters: [1], outgoing: [], learners: [], epoch: 0 };
  snapshots.begin(position, { next, abandon: () => undefined });
  while (snapshots.hasMore) snapshots.take(CHUNK_BYTES);
  snapshots.completed(snapshots.complete!);
}

/**
 * Applies this many entries to a state whose size is drawn for each snapshot. Returns the bytes between snapshots,
 * and theirs.
 */
function run(seed: number, entries: number, stateBytesMax: number): { logs: number[]; written: number[] } {
  const random = seeded(seed);
  const snapshots = new LocalSnapshots(undefined);
  const logs: number[] = [];
  const written: number[] = [];
  let log = 0;
  for (let index = 1; index <= entries; index += 1) {
    const entry = entryOf(index, random(ENTRY_BYTES_MAX));
    snapshots.applied(entry);
    log += entryBytes(entry);
    if (!snapshots.isDue(EVERY_BYTES, 1)) continue;
    const bytes = 1 + random(stateBytesMax);
    take(snapshots, index, bytes);
    logs.push(log);
    written.push(bytes);
    log = 0;
  }
  return { logs, written };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

describe.each([1, 2, 3, 4, 5])('a snapshot is due, from seed %d,', (seed) => {
  it('when the log has grown by the bytes of the last one: snapshots cost no more than the log', () => {
    const { logs, written } = run(seed, 5_000, 50 * EVERY_BYTES);
    expect(written.length).toBeGreaterThan(5);
    for (const [i, bytes] of written.slice(0, -1).entries())
      expect(logs[i + 1]).toBeGreaterThanOrEqual(Math.max(bytes, EVERY_BYTES));
    expect(sum(written.slice(0, -1))).toBeLessThanOrEqual(sum(logs));
  });

  it('no later: a restart reads a log no longer than the snapshot, or than the minimum for one', () => {
    const { logs, written } = run(seed, 5_000, 50 * EVERY_BYTES);
    for (const [i, log] of logs.entries())
      expect(log).toBeLessThan(Math.max(EVERY_BYTES, written[i - 1] ?? 0) + 2 * ENTRY_BYTES_MAX);
  });

  it('after the minimum number of bytes, if the state is small', () => {
    const { logs } = run(seed, 2_000, 10);
    expect(Math.min(...logs)).toBeGreaterThanOrEqual(EVERY_BYTES);
    expect(Math.max(...logs)).toBeLessThan(EVERY_BYTES + 2 * ENTRY_BYTES_MAX);
  });
});

it('only after n times as many bytes, with patience n', () => {
  const snapshots = new LocalSnapshots(undefined);
  for (let index = 1; index <= 2 * (EVERY_BYTES / 1_000); index += 1)
    snapshots.applied(entryOf(index, 1_000));
  expect(snapshots.isDue(EVERY_BYTES, 1)).toBe(true);
  expect(snapshots.isDue(EVERY_BYTES, 4)).toBe(false);
});
