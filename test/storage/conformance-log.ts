/** Conformance tests for every LogStore: entries, hard state and writes. */
import { describe, expect, it } from 'vitest';
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

function state(term: number, vote: number, commit: number): GroupWrite {
  return { group: 1, hardState: { term, vote, commit }, entries: [] };
}

export function describeLog(t: StoreBench): void {
  describe('reading back', () => {
    it('finds nothing for a group that was never written', async () => {
      expect(await t.store.load(7)).toBeUndefined();
      expect(t.store.groups()).toEqual([]);
    });

    it('returns entries, hard state and base as written', async () => {
      await t.write(
        append(7, [{ ...entry(1), kind: 'noop', data: new Uint8Array() }, entry(2), entry(3, 2)], 2),
      );
      const expected = {
        ...NEVER_PLACED,
        hardState: { term: 2, vote: 1, commit: 2 },
        base: position(0, 0, 0),
        entries: [{ ...entry(1), kind: 'noop', data: new Uint8Array() }, entry(2), entry(3, 2)],
      };
      expect(await t.store.load(7)).toEqual(expected);
      await t.restart();
      expect(await t.store.load(7)).toEqual(expected);
    });

    it('keeps large and unusual values exactly', async () => {
      const term = Number.MAX_SAFE_INTEGER;
      const timeMillis = 1_800_000_000_123;
      const odd = { ...entry(1, term, timeMillis, 20_000), data: new Uint8Array(20_000).fill(255) };
      const hardState = { term, vote: Number.MAX_SAFE_INTEGER, commit: 1 };
      await t.write({ group: 0xffff_ffff, hardState, entries: [odd] });
      await t.restart();
      const loaded = await t.store.load(0xffff_ffff);
      expect(loaded?.hardState).toEqual(hardState);
      expect(loaded?.entries).toEqual([odd]);
    });

    it('lists all groups in order', async () => {
      await t.write(append(300, [entry(1)]), append(2, [entry(1)]), { group: 0, entries: [] });
      expect(t.store.groups()).toEqual([0, 2, 300]);
      await t.restart();
      expect(t.store.groups()).toEqual([0, 2, 300]);
    });

    it('is not affected if the caller reuses the memory that it wrote', async () => {
      const reused = entry(1);
      const staged = chunk(1);
      await t.write({ ...append(1, [reused]), stage: staging(1, 0, staged) });
      reused.data.fill(99);
      staged.fill(99);
      await t.write({ group: 1, entries: [], snapshot: meta(1, [chunk(1)]) });
      const loaded = await t.store.load(1);
      expect(loaded?.entries).toEqual([entry(1)]);
      expect((await storedSnapshot(t.store, 1))?.chunks).toEqual([chunk(1)]);
    });

    it('gives entries their own memory', async () => {
      await t.write(append(1, [entry(1, 1, 10, 5)]));
      await t.restart();
      const loaded = await t.store.load(1);
      expect(loaded?.entries[0]?.data.buffer.byteLength).toBe(5);
    });
  });

  describe('appending', () => {
    it('appends across writes and restarts', async () => {
      await t.write(append(1, entries(1, 3)));
      await t.write(append(1, entries(4, 4)));
      await t.restart();
      await t.write(append(1, entries(5, 200)));
      await t.restart();
      expect((await t.store.load(1))?.entries).toEqual(entries(1, 200));
    });

    it('replaces the suffix from the first entry on', async () => {
      await t.write(append(1, entries(1, 10)));
      await t.write(append(1, [entry(6, 2)]));
      const expected = [...entries(1, 5), entry(6, 2)];
      expect((await t.store.load(1))?.entries).toEqual(expected);
      await t.restart();
      expect((await t.store.load(1))?.entries).toEqual(expected);
    });

    it('107: never brings a replaced suffix back while the log grows over it', async () => {
      await t.write(append(1, entries(1, 10)));
      await t.write(append(1, [entry(4, 2)]));
      await t.restart();
      await t.write(append(1, entries(5, 6, 2)));
      await t.restart();
      expect((await t.store.load(1))?.entries).toEqual([...entries(1, 3), ...entries(4, 6, 2)]);
      await t.write(append(1, entries(7, 12, 3)));
      await t.restart();
      expect((await t.store.load(1))?.entries.map((one) => one.term)).toEqual([
        1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3,
      ]);
    });

    it('replaces the whole log', async () => {
      await t.write(append(1, entries(1, 4)));
      await t.write(append(1, [entry(1, 2)]));
      await t.restart();
      expect((await t.store.load(1))?.entries).toEqual([entry(1, 2)]);
    });

    it('107: refuses gaps, replaced commits, and terms or times that go back', async () => {
      await t.write(append(1, entries(1, 5, 2), 3));
      await expectRefused(t, append(1, [entry(7, 2)], 3), /must leave no gap/);
      await expectRefused(t, append(1, [entry(6, 2), entry(8, 2)], 3), /must follow/);
      await expectRefused(t, append(1, [entry(3, 2)], 3), /stored commit 3/);
      await expectRefused(t, { group: 1, entries: [entry(6, 1)] }, /must not be below the previous one/);
      await expectRefused(t, { group: 1, entries: [entry(6, 2, 49)] }, /must not be below the previous one/);
      await expectRefused(t, { group: 1, entries: [entry(6, 3)] }, /must reach that of the last entry/);
      await expectRefused(t, { group: 1, entries: [entry(6, 2, 60.5)] }, /safe integer/);
    });
  });

  describe('hard state', () => {
    it('does not change when a write omits it', async () => {
      await t.write(append(1, entries(1, 2), 1));
      await t.write({ group: 1, entries: [entry(3)] });
      await t.restart();
      expect((await t.store.load(1))?.hardState).toEqual({ term: 1, vote: 1, commit: 1 });
    });

    it('records a vote without a log', async () => {
      await t.write({ group: 1, hardState: { term: 4, vote: 2, commit: 0 }, entries: [] });
      await t.restart();
      expect((await t.store.load(1))?.hardState).toEqual({ term: 4, vote: 2, commit: 0 });
    });

    it('refuses to go back on a term, a vote or a commit', async () => {
      await t.write({ group: 1, hardState: { term: 4, vote: 2, commit: 2 }, entries: entries(1, 3) });
      await t.restart();
      await expectRefused(t, state(3, 2, 2), /term 3 must not go back from 4/);
      await expectRefused(t, state(4, 3, 2), /vote of term 4 must stay 2/);
      await expectRefused(t, state(4, 0, 2), /vote of term 4 must stay 2/);
      await expectRefused(t, state(4, 2, 1), /commit 1 must not go back/);
      await expectRefused(t, state(4, 2, 4), /commit 4 must be within the log/);
      await t.write({ group: 1, hardState: { term: 5, vote: 0, commit: 2 }, entries: [] });
      await t.write({ group: 1, hardState: { term: 5, vote: 3, commit: 3 }, entries: [] });
      expect((await t.store.load(1))?.hardState).toEqual({ term: 5, vote: 3, commit: 3 });
    });
  });

  describe('writes', () => {
    it('are atomic across groups: if one part is invalid, nothing is written', async () => {
      await t.write(append(1, entries(1, 2)), append(2, entries(1, 2)));
      const writes = [append(1, [entry(3)]), append(2, [entry(9)])];
      expect(() => t.store.write(writes, () => {})).toThrow(/must leave no gap/);
      expect((await t.store.load(1))?.entries).toEqual(entries(1, 2));
      await t.write(append(1, [entry(3)]));
      await t.restart();
      expect((await t.store.load(1))?.entries).toEqual(entries(1, 3));
    });

    it('name each group once', () => {
      expect(() => t.store.write([append(1, [entry(1)]), append(1, [entry(2)])], () => {})).toThrow(
        /must appear only once/,
      );
    });

    it('are never answered before t.write() returns', async () => {
      let answered = false;
      await new Promise<void>((resolve) => {
        t.store.write([append(1, [entry(1)])], () => {
          answered = true;
          resolve();
        });
        expect(answered).toBe(false);
      });
    });

    it('120: are one in flight at a time, and the next may start from within `done`', async () => {
      const first = written(t.store, [append(1, [entry(1)])]);
      expect(() => t.store.write([append(2, [entry(1)])], () => {})).toThrow(
        /only one write may be in flight/,
      );
      await first;
      await new Promise<void>((resolve) => {
        t.store.write([append(1, [entry(2)])], () => t.store.write([append(1, [entry(3)])], () => resolve()));
      });
      expect((await t.store.load(1))?.entries).toEqual(entries(1, 3));
    });

    it('are not visible while in flight', async () => {
      await t.write(append(1, entries(1, 10), 10));
      await t.takeSnapshot(1, 5);
      const second = written(t.store, [
        { group: 1, entries: [], ...installing(snapshot(20, [chunk(4)])) },
        { group: 9, entries: [] },
      ]);
      expect(t.store.groups()).toEqual([1]);
      expect(await t.store.readSnapshotChunk(1, 20, 0)).toBeUndefined();
      await second;
      expect(t.store.groups()).toEqual([1, 9]);
      expect(await t.store.readSnapshotChunk(1, 20, 0)).toEqual(chunk(4));
    });

    it('in flight are awaited by close(), and none is accepted after it', async () => {
      let answered = false;
      t.store.write([append(1, entries(1, 2))], () => {
        answered = true;
      });
      await t.store.close();
      expect(answered).toBe(true);
      expect(() => t.store.write([], () => {})).toThrow(/close|closing/);
      await t.restart();
      expect((await t.store.load(1))?.entries).toEqual(entries(1, 2));
    });
  });

  describe('after the first failed write', () => {
    it('111: refuses every later one and keeps the earlier data', async () => {
      await t.write(append(1, entries(1, 2)));
      t.failNextWrite();
      await expect(t.write(append(1, [entry(3)]))).rejects.toMatchObject({ code: 'STORE_FAILED' });
      await expect(t.write(append(2, [entry(1)]))).rejects.toMatchObject({ code: 'STORE_FAILED' });
      await expect(t.write()).rejects.toMatchObject({ code: 'STORE_FAILED' });
      await t.restart();
      expect((await t.store.load(1))?.entries).toEqual(entries(1, 2));
      expect(t.store.groups()).toEqual([1]);
    });
  });
}
