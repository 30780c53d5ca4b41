/** Conformance tests for every LogStore: groups that are removed from a node and come back. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { GroupWrite } from '../../raft/driver/store.ts';
import {
  append,
  chunk,
  entries,
  entry,
  installing,
  position,
  snapshot,
  staging,
  storedSnapshot,
} from './fixtures.ts';
import { expectRefused, type StoreBench } from './store-bench.ts';

function removal(placement: number, term: number): GroupWrite {
  return { group: 1, placement, remove: true, hardState: { term, vote: 0, commit: 0 }, entries: [] };
}

function placed(placement: number): GroupWrite {
  return { group: 1, placement, entries: [] };
}

export function describeRemoval(t: StoreBench): void {
  describe('a placement', () => {
    it('is 0 until one is recorded, and never falls', async () => {
      await t.write(append(1, entries(1, 2)));
      expect(await t.store.load(1)).toMatchObject({ placement: 0, removedAt: 0, removed: false });
      await t.write(placed(4));
      await t.write({ ...append(1, [entry(3)]), placement: 6 });
      await t.write(append(1, [entry(4)]));
      await t.restart();
      expect(await t.store.load(1)).toMatchObject({ placement: 6, removed: false, entries: entries(1, 4) });
      await expectRefused(t, placed(5), /placement 5 must not go back from 6/);
      await expectRefused(t, placed(6.5), /must be a safe integer/);
      await t.write(placed(6));
    });

    it('may be recorded for a group that has nothing else', async () => {
      await t.write(placed(3));
      await t.restart();
      expect(await t.store.load(1)).toMatchObject({ placement: 3, hardState: { term: 0 }, entries: [] });
    });
  });

  describe('a removed group', () => {
    const tombstone = {
      placement: 3,
      removedAt: 3,
      removed: true,
      hardState: { term: 5, vote: 0, commit: 0 },
      base: position(0, 0, 0),
      entries: [],
    };

    beforeEach(async () => {
      await t.write({ ...append(1, entries(1, 20, 4), 15), placement: 2 });
      await t.takeSnapshot(1, 10, 4);
      await t.write({ group: 1, entries: [], compactTo: position(8, 4) });
      await t.write({ group: 1, entries: [], stage: staging(12, 0, chunk(1)) });
    });

    it('leaves a tombstone and nothing else', async () => {
      await t.write(removal(3, 5), append(2, entries(1, 2)));
      expect(await t.store.load(1)).toEqual(tombstone);
      expect(await t.store.readSnapshotChunk(1, 10, 0)).toBeUndefined();
      await t.restart();
      expect(await t.store.load(1)).toEqual(tombstone);
      expect(await t.store.readSnapshotChunk(1, 10, 0)).toBeUndefined();
      expect(t.store.groups()).toEqual([1, 2]);
      expect((await t.store.load(2))?.entries).toEqual(entries(1, 2));
    });

    it('is removed only by a newer placement, in a newer term, without a vote, and by a write with nothing else', async () => {
      await expectRefused(
        t,
        removal(2, 5),
        /may only remove a group that was last offered under an older one/,
      );
      await expectRefused(
        t,
        { ...removal(3, 5), hardState: { term: 4, vote: 0, commit: 0 } },
        /must be above 4/,
      );
      await expectRefused(t, { ...removal(3, 5), hardState: { term: 5, vote: 1, commit: 0 } }, /no vote/);
      await expectRefused(t, { ...removal(3, 5), hardState: { term: 5, vote: 0, commit: 9 } }, /no log/);
      await expectRefused(t, { ...removal(3, 5), entries: [entry(21, 4)] }, /nothing else/);
      await expectRefused(t, { ...removal(3, 5), ...installing(snapshot(30, [], 4)) }, /nothing else/);
      const { hardState: _hardState, ...bare } = removal(3, 5);
      await expectRefused(t, bare, /the term of a tombstone, undefined/);
    });

    it('accepts nothing but a newer placement', async () => {
      await t.write(removal(3, 5));
      for (const restarts of [false, true]) {
        if (restarts) await t.restart();
        await expectRefused(t, append(1, [entry(1, 6)]), /only a higher one may bring it back/);
        await expectRefused(t, placed(3), /only a higher one may bring it back/);
        await expectRefused(t, removal(4, 6), /was removed already/);
      }
    });

    it('comes back empty, in its term, and remembers that it was removed', async () => {
      await t.write(removal(3, 5));
      await t.restart();
      await t.write(placed(4));
      const empty = { ...tombstone, placement: 4, removed: false };
      expect(await t.store.load(1)).toEqual(empty);
      await expectRefused(t, { group: 1, hardState: { term: 4, vote: 0, commit: 0 }, entries: [] }, /term 4/);
      await t.write(append(1, [entry(1, 6)]));
      await t.restart();
      expect(await t.store.load(1)).toEqual({
        ...empty,
        hardState: { term: 6, vote: 1, commit: 0 },
        entries: [entry(1, 6)],
      });
    });

    it.each([false, true])(
      'comes back without anything it had before; with a restart in between: %s',
      async (restarts) => {
        await t.write(removal(3, 5));
        if (restarts) await t.restart();
        await t.write({ ...append(1, entries(1, 3, 6)), placement: 4 });
        await t.restart();
        expect((await t.store.load(1))?.entries).toEqual(entries(1, 3, 6));
        expect((await t.store.load(1))?.snapshot).toBeUndefined();
        await t.write(append(1, entries(4, 15, 6), 12));
        await t.restart();
        expect((await t.store.load(1))?.entries).toEqual(entries(1, 15, 6));
        // The same index as the snapshot that it had before.
        await t.takeSnapshot(1, 10, 6);
        await t.write({ group: 1, entries: [], compactTo: position(10, 6) });
        await t.restart();
        const loaded = await t.store.load(1);
        expect(await storedSnapshot(t.store, 1)).toEqual(snapshot(10, [chunk(1), chunk(2, 7)], 6));
        expect(loaded?.entries).toEqual(entries(11, 15, 6));
      },
    );

    it('can come back with a snapshot of the leader', async () => {
      await t.write(removal(3, 5));
      await t.write(placed(4));
      await t.write({
        group: 1,
        entries: entries(11, 12, 6),
        ...installing(snapshot(10, [chunk(8)], 6)),
        hardState: { term: 6, vote: 0, commit: 10 },
      });
      await t.restart();
      const loaded = await t.store.load(1);
      expect(await storedSnapshot(t.store, 1)).toEqual(snapshot(10, [chunk(8)], 6));
      expect(loaded?.entries).toEqual(entries(11, 12, 6));
    });

    it('may be removed and come back again and again', async () => {
      for (let round = 0; round < 5; round += 1) {
        const placement = 3 + 2 * round;
        await t.write(removal(placement, 5 + round));
        if (round % 2 === 0) await t.restart();
        await t.write({ ...append(1, entries(1, 3 + round, 5 + round), 2), placement: placement + 1 });
        if (round % 3 === 0) await t.restart();
        expect(await t.store.load(1)).toMatchObject({
          placement: placement + 1,
          removedAt: placement,
          removed: false,
          entries: entries(1, 3 + round, 5 + round),
        });
      }
    });
  });
}
