/** The small modules of storage: keys, group records, digests, the log index and free space. */
import { tmpdir } from 'node:os';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EMPTY_DIGEST, combine, recordHash } from '../../storage/digest.ts';
import { DEFAULT_FREE_FLOOR_BYTES, freeBytes, isLowDisk } from '../../storage/free-space.ts';
import { chunkKey, entryKey, groupKey } from '../../storage/keys.ts';
import { LogIndex } from '../../storage/log-index.ts';
import { decodeGroupRecord, encodeGroupRecord, type GroupRecord } from '../../storage/records.ts';

describe('keys', () => {
  it('sort like their groups, indexes and chunks', () => {
    const group = fc.nat({ max: 0xffff_ffff });
    const index = fc.nat({ max: 2 ** 48 - 1 });
    fc.assert(
      fc.property(group, index, group, index, (groupA, indexA, groupB, indexB) => {
        const expected = Math.sign(groupA - groupB || indexA - indexB);
        expect(Buffer.compare(entryKey(groupA, indexA), entryKey(groupB, indexB))).toBe(expected);
        expect(Buffer.compare(chunkKey(groupA, indexA, 7), chunkKey(groupB, indexB, 7))).toBe(expected);
        expect(Buffer.compare(groupKey(groupA), groupKey(groupB))).toBe(Math.sign(groupA - groupB));
      }),
    );
  });
});

describe('a group record', () => {
  it('is decoded as it was encoded', () => {
    const count = fc.maxSafeNat();
    const at = fc.record({ index: count, term: count, timeMillis: count });
    const record: fc.Arbitrary<GroupRecord> = fc.record(
      {
        batch: count,
        hardState: fc.record({ term: count, vote: count, commit: count }),
        placement: count,
        removedAt: count,
        lastIndex: count,
        lastChain: fc.nat({ max: 0xffff_ffff }),
        base: at,
        baseChain: fc.nat({ max: 0xffff_ffff }),
        oldestKey: count,
        newestKey: count,
        snapshot: fc.record(
          {
            index: count,
            term: count,
            timeMillis: count,
            chunkCount: count,
            byteLength: count,
            epoch: fc.maxSafeNat().filter((epoch) => epoch > 0),
            voters: fc.array(count, { maxLength: 7 }),
            outgoing: fc.array(count, { minLength: 1, maxLength: 7 }),
            learners: fc.array(count, { minLength: 1, maxLength: 7 }),
            checksum: fc.nat({ max: 0xffff_ffff }),
          },
          { requiredKeys: ['index', 'term', 'timeMillis', 'chunkCount', 'byteLength', 'voters'] },
        ),
      },
      {
        requiredKeys: [
          'batch',
          'hardState',
          'placement',
          'removedAt',
          'lastIndex',
          'lastChain',
          'base',
          'baseChain',
          'oldestKey',
          'newestKey',
        ],
      },
    );
    fc.assert(
      fc.property(fc.nat({ max: 0xffff_ffff }), record, (group, original) => {
        const stored = encodeGroupRecord(group, original);
        const { checksum } = stored;
        expect(decodeGroupRecord(stored.key, stored.value)).toEqual({ group, record: original, checksum });
      }),
    );
  });
});

describe('the digest', () => {
  it('does not depend on the order, and forgets removed records', () => {
    const [a, b] = [recordHash(1, 10, 0xdead_beef), recordHash(2, 10, 0x0bad_cafe)];
    expect(combine(combine(EMPTY_DIGEST, a), b)).toEqual(combine(combine(EMPTY_DIGEST, b), a));
    expect(combine(combine(combine(EMPTY_DIGEST, a), b), a)).toEqual(b);
  });

  it('notices the same change in two groups, which cancels out in an XOR of checksums', () => {
    const difference = 0x0102_0304;
    for (let group = 0; group < 200; group += 2) {
      const digest = (change: number): unknown =>
        combine(recordHash(group, 5, 0x1234_5678 ^ change), recordHash(group + 1, 5, 0x7654_3210 ^ change));
      expect(digest(difference)).not.toEqual(digest(0));
    }
  });
});

describe('the log index', () => {
  it('behaves like a list of positions', () => {
    const command = fc.oneof(
      fc.record({ name: fc.constant('append' as const), count: fc.nat({ max: 90 }) }),
      fc.record({ name: fc.constant('truncate' as const), count: fc.nat({ max: 40 }) }),
      fc.record({ name: fc.constant('compact' as const), count: fc.nat({ max: 90 }) }),
    );
    fc.assert(
      fc.property(fc.array(command, { maxLength: 40 }), (commands) => {
        const log = new LogIndex();
        let base = 0;
        let model = [0];
        let stamp = 0;
        for (const { name, count } of commands) {
          if (name === 'append') {
            for (let i = 0; i < count; i += 1) {
              stamp += 1;
              model.push(stamp);
              log.append(stamp, stamp * 2, stamp * 3);
            }
          } else {
            const moved = Math.min(count, model.length - 1);
            if (name === 'truncate') {
              model.length -= moved;
              log.truncateTo(base + model.length - 1);
            } else {
              base += moved;
              model = model.slice(moved);
              log.compactTo(base);
            }
          }
        }
        expect(log.baseIndex).toBe(base);
        const found = model.map((_, i) => [log.positionAt(base + i), log.chainAt(base + i)]);
        const expected = model.map((one, i) => [
          { index: base + i, term: one, timeMillis: one * 2 },
          one * 3,
        ]);
        expect(found).toEqual(expected);
        expect(log.lastIndex).toBe(base + model.length - 1);
        expect(() => log.positionAt(base + model.length)).toThrow(/must be within/);
      }),
    );
  });
});

describe('free space', () => {
  it('is measured in bytes of the file system that holds the directory', async () => {
    expect(await freeBytes(tmpdir())).toBeGreaterThan(1024);
  });

  it('is too low only below the floor', () => {
    expect(isLowDisk(DEFAULT_FREE_FLOOR_BYTES)).toBe(false);
    expect(isLowDisk(DEFAULT_FREE_FLOOR_BYTES - 1)).toBe(true);
    expect(isLowDisk(999, 1000)).toBe(true);
    expect(isLowDisk(0, 0)).toBe(false);
  });
});
