/** Conformance tests for every LogStore: snapshots, own or received, and the log that they replace. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { GroupWrite } from '../../raft/driver/store.ts';
import { NEVER_PLACED } from '../raft/stored-log.ts';
import {
  append,
  chunk,
  entries,
  entry,
  installing,
  meta,
  position,
  snapshot,
  staging,
  storedSnapshot,
  written,
} from './fixtures.ts';
import { expectRefused, type StoreBench } from './store-bench.ts';

function publish(index: number, term = 1): GroupWrite {
  return { group: 1, entries: [], snapshot: meta(index, [], term) };
}

function staged(index: number, number: number): GroupWrite {
  return { group: 1, entries: [], stage: staging(index, number, chunk(1)) };
}

export function describeSnapshots(t: StoreBench): void {
  describe('snapshots of the local state machine', () => {
    beforeEach(() => t.write(append(1, entries(1, 10), 8)));

    it('shows staged chunks only to a caller that names their index, until the snapshot takes effect', async () => {
      const stage = written(t.store, [{ group: 1, entries: [], stage: staging(5, 0, chunk(1), chunk(2)) }]);
      expect(await t.store.readSnapshotChunk(1, 5, 0)).toBeUndefined();
      await stage;
      expect((await t.store.load(1))?.snapshot).toBeUndefined();
      expect(await t.store.readSnapshotChunk(1, 5, 0)).toEqual(chunk(1));
      await t.write({ group: 1, entries: [], stage: staging(5, 2, chunk(3)) });
      expect(await t.store.readSnapshotChunk(1, 5, 2)).toEqual(chunk(3));
      await t.write({ group: 1, entries: [], snapshot: meta(5, [chunk(1), chunk(2), chunk(3)]) });
      expect(await storedSnapshot(t.store, 1)).toEqual(snapshot(5, [chunk(1), chunk(2), chunk(3)]));
    });

    it('shows no chunk of a snapshot that is no longer staged', async () => {
      await t.write({ group: 1, entries: [], stage: staging(5, 0, chunk(1), chunk(2)) });
      await t.write({ group: 1, entries: [], stage: staging(6, 0, chunk(3)) });
      expect(await t.store.readSnapshotChunk(1, 5, 0)).toBeUndefined();
      expect(await t.store.readSnapshotChunk(1, 6, 0)).toEqual(chunk(3));
      await t.restart();
      expect(await t.store.readSnapshotChunk(1, 6, 0)).toBeUndefined();
    });

    it('loads the snapshot after a restart and serves its chunks', async () => {
      await t.takeSnapshot(1, 5);
      await t.restart();
      expect(await storedSnapshot(t.store, 1)).toEqual(snapshot(5, [chunk(1), chunk(2, 7)]));
      expect(await t.store.readSnapshotChunk(1, 5, 1)).toEqual(chunk(2, 7));
      expect(await t.store.readSnapshotChunk(1, 4, 0)).toBeUndefined();
      expect(await t.store.readSnapshotChunk(2, 5, 0)).toBeUndefined();
    });

    it('drops the previous snapshot', async () => {
      await t.takeSnapshot(1, 5);
      await t.takeSnapshot(1, 7);
      expect(await t.store.readSnapshotChunk(1, 5, 0)).toBeUndefined();
      await t.restart();
      expect(await t.store.readSnapshotChunk(1, 5, 0)).toBeUndefined();
      expect((await t.store.load(1))?.snapshot?.index).toBe(7);
    });

    it('76: forgets staged chunks at a restart and can stage the same snapshot again', async () => {
      for (const number of [0, 1, 2]) {
        await t.write({ group: 1, entries: [], stage: staging(5, number, chunk(9)) });
      }
      await t.restart();
      await expectRefused(
        t,
        { group: 1, entries: [], snapshot: meta(5, [chunk(9), chunk(9), chunk(9)]) },
        /not 0 of 0/,
      );
      await t.takeSnapshot(1, 5);
      await t.write({ group: 1, entries: [entry(11)] });
      await t.restart();
      expect(await storedSnapshot(t.store, 1)).toEqual(snapshot(5, [chunk(1), chunk(2, 7)]));
    });

    it('begins again when chunk 0 is staged again, or for another index', async () => {
      await t.write({ group: 1, entries: [], stage: staging(5, 0, chunk(8)) });
      await t.write({ group: 1, entries: [], stage: staging(6, 0, chunk(9)) });
      await t.takeSnapshot(1, 6);
      expect((await storedSnapshot(t.store, 1))?.chunks).toEqual([chunk(1), chunk(2, 7)]);
    });

    it('accepts the last chunk and the snapshot in one write, and an empty snapshot', async () => {
      await t.write({
        group: 1,
        entries: [],
        stage: staging(5, 0, chunk(3)),
        snapshot: meta(5, [chunk(3)]),
      });
      expect((await storedSnapshot(t.store, 1))?.chunks).toEqual([chunk(3)]);
      await t.write({ group: 1, entries: [], snapshot: meta(6, []) });
      await t.restart();
      expect(await storedSnapshot(t.store, 1)).toEqual(snapshot(6, []));
    });

    it('refuses snapshots that are incomplete, old, misplaced, or of another entry', async () => {
      await t.takeSnapshot(1, 5);
      await expectRefused(
        t,
        { group: 1, entries: [], snapshot: meta(6, [chunk(1)]) },
        /1 chunks of 30 bytes/,
      );
      await expectRefused(t, publish(5), /newer than the current one/);
      await expectRefused(t, publish(11), /within the log/);
      await expectRefused(t, publish(6, 2), /must name the position in the log/);
      await expectRefused(t, staged(5, 0), /newer than the current one/);
      await expectRefused(t, staged(6, 1), /follow the 0 staged ones/);
    });
  });

  describe('compaction', () => {
    beforeEach(async () => {
      await t.write(append(1, entries(1, 20), 15));
      await t.takeSnapshot(1, 10);
    });

    it('moves the base and keeps the entries above it', async () => {
      await t.write({ group: 1, entries: [], compactTo: position(8) });
      const before = await t.store.load(1);
      expect(before?.base).toEqual(position(8));
      expect(before?.entries).toEqual(entries(9, 20));
      await t.restart();
      expect(await t.store.load(1)).toEqual(before);
    });

    it('goes on appending, replacing and compacting above the base', async () => {
      await t.write({ group: 1, entries: [], compactTo: position(10) });
      await t.write(append(1, entries(16, 30, 2), 15));
      await t.restart();
      await t.takeSnapshot(1, 14);
      await t.write({ group: 1, entries: [entry(31, 2)], compactTo: position(14) });
      await t.restart();
      const loaded = await t.store.load(1);
      expect(loaded?.base).toEqual(position(14));
      expect(loaded?.entries).toEqual([...entries(15, 15), ...entries(16, 31, 2)]);
    });

    it('applies the fields of one write in order: entries, compactTo, snapshot', async () => {
      await t.write({
        group: 1,
        entries: entries(21, 25),
        hardState: { term: 1, vote: 1, commit: 25 },
        compactTo: position(25),
        stage: staging(25, 0, chunk(5)),
        snapshot: meta(25, [chunk(5)]),
      });
      await t.restart();
      const loaded = await t.store.load(1);
      expect(loaded?.entries).toEqual([]);
      expect(loaded?.base).toEqual(position(25));
      await t.write(append(1, [entry(26)], 25));
      expect((await t.store.load(1))?.entries).toEqual([entry(26)]);
    });

    it('refuses to compact entries that no snapshot covers, to go back, or to name another entry', async () => {
      await expectRefused(
        t,
        { group: 1, entries: [], compactTo: position(11) },
        /must cover the log up to its base/,
      );
      await expectRefused(t, { group: 1, entries: [], compactTo: position(21) }, /must stay within the log/);
      await expectRefused(
        t,
        { group: 1, entries: [], compactTo: position(8, 2) },
        /must name the position in the log/,
      );
      await t.write({ group: 1, entries: [], compactTo: position(8) });
      await expectRefused(t, { group: 1, entries: [], compactTo: position(7) }, /must not go back/);
      await expectRefused(t, append(1, [entry(8)], 15), /must be above the base/);
    });
  });

  describe('an installed snapshot', () => {
    it('replaces log and snapshot', async () => {
      await t.write(append(1, entries(1, 20), 15));
      await t.takeSnapshot(1, 10);
      const installed = snapshot(5000, [chunk(7), chunk(8)], 3);
      await t.write({
        group: 1,
        entries: entries(5001, 5002, 3),
        hardState: { term: 3, vote: 0, commit: 5000 },
        ...installing(installed),
      });
      await t.restart();
      expect(await t.store.load(1)).toEqual({
        ...NEVER_PLACED,
        hardState: { term: 3, vote: 0, commit: 5000 },
        base: position(5000, 3),
        entries: entries(5001, 5002, 3),
        snapshot: installed.meta,
      });
      expect(await t.store.readSnapshotChunk(1, 10, 0)).toBeUndefined();
      expect(await t.store.readSnapshotChunk(1, 5000, 1)).toEqual(chunk(8));
    });

    it('is staged beside the snapshot in effect, which stays until the write that installs it', async () => {
      await t.write(append(1, entries(1, 20), 15));
      await t.takeSnapshot(1, 10);
      const chunks = [chunk(7), chunk(8), chunk(9)];
      for (const [i, data] of chunks.entries()) {
        await t.write({ ...append(1, [entry(21 + i)], 15), stage: staging(5000, i, data) });
        expect((await t.store.load(1))?.snapshot?.index).toBe(10);
        expect(await t.store.readSnapshotChunk(1, 10, 0)).toEqual(chunk(1));
      }
      const hardState = { term: 3, vote: 0, commit: 5000 };
      await t.write({ group: 1, entries: [], hardState, install: meta(5000, chunks, 3) });
      for (const restarts of [false, true]) {
        if (restarts) await t.restart();
        expect(await t.store.load(1)).toMatchObject({ hardState, base: position(5000, 3), entries: [] });
        expect(await storedSnapshot(t.store, 1)).toEqual(snapshot(5000, chunks, 3));
      }
      expect(await t.store.readSnapshotChunk(1, 10, 0)).toBeUndefined();
    });

    it('is forgotten by a restart while it is only staged', async () => {
      await t.write(append(1, entries(1, 20), 15));
      await t.write({ group: 1, entries: [], stage: staging(5000, 0, chunk(7)) });
      await t.restart();
      await expectRefused(
        t,
        { group: 1, entries: [], install: meta(5000, [chunk(7)]) },
        /1 chunks of 30 bytes, not 0 of 0/,
      );
      await t.write({ group: 1, entries: [], ...installing(snapshot(5000, [chunk(9)])) });
      await t.restart();
      expect(await storedSnapshot(t.store, 1)).toEqual(snapshot(5000, [chunk(9)]));
    });

    it('may be the first thing a group gets, at index 0 too', async () => {
      await t.write({
        group: 1,
        entries: [],
        install: { ...meta(0, []), term: 0, timeMillis: 9 },
      });
      await t.write(append(1, [entry(1)]));
      await t.restart();
      const loaded = await t.store.load(1);
      expect(loaded?.base).toEqual({ index: 0, term: 0, timeMillis: 9 });
      expect(loaded?.snapshot?.voters).toEqual([1, 2, 3]);
      expect(loaded?.entries).toEqual([entry(1)]);
    });

    it('107: removes the old suffix if it ends before the old log', async () => {
      await t.write(append(1, entries(1, 20), 5));
      await t.write({
        group: 1,
        entries: [],
        hardState: { term: 2, vote: 0, commit: 12 },
        ...installing(snapshot(12, [], 2)),
      });
      await t.restart();
      expect((await t.store.load(1))?.entries).toEqual([]);
      await t.write(append(1, [entry(13, 2)], 12));
      await t.restart();
      expect((await t.store.load(1))?.entries).toEqual([entry(13, 2)]);
    });

    it('drops chunks of another snapshot that were being staged', async () => {
      await t.write(append(1, entries(1, 20), 15));
      await t.write({ group: 1, entries: [], stage: staging(10, 0, chunk(1)) });
      await t.write({ group: 1, entries: [], ...installing(snapshot(20, [chunk(2)])) });
      await expectRefused(t, { group: 1, entries: [], stage: staging(21, 1, chunk(1)) }, /first/);
      await t.restart();
      expect(await storedSnapshot(t.store, 1)).toEqual(snapshot(20, [chunk(2)]));
    });

    it('is refused if it is old or its chunks do not fit', async () => {
      await t.write(append(1, entries(1, 20), 15));
      await expectRefused(
        t,
        { group: 1, entries: [], ...installing(snapshot(14, [])) },
        /must reach the stored commit 15/,
      );
      const short = { meta: meta(30, [chunk(1), chunk(2)]), chunks: [chunk(1)] };
      await expectRefused(t, { group: 1, entries: [], ...installing(short) }, /2 chunks of 60 bytes/);
      await t.takeSnapshot(1, 16);
      await expectRefused(
        t,
        { group: 1, entries: [], ...installing(snapshot(16, [])) },
        /must be newer than 16/,
      );
    });
  });
}
