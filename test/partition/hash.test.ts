/** The partition of a user is fixed forever, and users are spread evenly. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type Hash32, loadHash32, partitionOf } from '../../src/partition/hash.ts';

let hash: Hash32;

beforeAll(async () => {
  hash = await loadHash32();
});

describe('the partition of a user', () => {
  // Another hash would send users to partitions that do not know their grants.
  it.each([
    ['', 46_947_589, 0],
    ['ada', 4_275_982_562, 5],
    ['user-1', 2_755_638_957, 12],
    ['ünïcödé', 1_162_622_993, 9],
    ['😀', 1_127_825_596, 2],
    ['a'.repeat(256), 959_098_440, 7],
    ['{ada}.x', 3_269_985_769, 5],
  ])('never changes: %s', (userId, expected, of16) => {
    expect(hash(userId)).toBe(expected);
    expect(partitionOf(userId, 16)).toBe(of16);
  });

  it('depends only on the id: another instance gives the same', async () => {
    const other = await loadHash32();
    for (let i = 0; i < 1_000; i += 1) expect(other(`user-${i}`)).toBe(hash(`user-${i}`));
  });

  it.each([1, 7, 16, 64])('is spread evenly over %i partitions', (partitionCount) => {
    const users = 1_000 * partitionCount;
    const counts = Array.from({ length: partitionCount }, () => 0);
    for (let i = 0; i < users; i += 1) {
      const partition = partitionOf(`customer/${i}`, partitionCount);
      counts[partition] = (counts[partition] ?? 0) + 1;
    }
    expect(counts).toHaveLength(partitionCount);
    // Five standard deviations of a binomial distribution around 1,000.
    expect(Math.min(...counts)).toBeGreaterThan(840);
    expect(Math.max(...counts)).toBeLessThan(Math.max(1_160, users / partitionCount + 1));
  });
});
