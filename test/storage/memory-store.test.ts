/** The store in memory: crashes and failures on demand, in an order that the test decides. */
import { describe, expect, it } from 'vitest';
import { MemoryStore } from '../../storage/memory-store.ts';
import { append, chunk, entries, entry, staging } from './fixtures.ts';

class Disk {
  private readonly pending: (() => void)[] = [];
  readonly schedule = (fn: () => void): void => {
    this.pending.push(fn);
  };

  sync(): void {
    for (const fn of this.pending.splice(0)) fn();
  }
}

function started(disk: Disk, from?: MemoryStore): MemoryStore {
  return new MemoryStore({ schedule: disk.schedule, ...(from === undefined ? {} : { disk: from.disk() }) });
}

describe('a crash', () => {
  it.each([
    ['lost', []],
    ['kept', entries(1, 2)],
  ] as const)('during a write: the write is %s and never answered', async (fate, expected) => {
    const disk = new Disk();
    const store = started(disk);
    let answered = false;
    store.write([append(1, entries(1, 2))], () => {
      answered = true;
    });
    const after = new MemoryStore({ schedule: disk.schedule, disk: store.crash(fate) });
    disk.sync();
    expect(answered).toBe(false);
    expect((await after.load(1))?.entries ?? []).toEqual(expected);
    expect(() => store.write([], () => {})).toThrow(/crashed/);
  });

  it('keeps synced writes, and drops staged chunks', async () => {
    const disk = new Disk();
    const store = started(disk);
    store.write([append(1, entries(1, 2))], () => {});
    disk.sync();
    store.write([{ group: 1, entries: [], stage: staging(2, 0, chunk(1)) }], () => {});
    disk.sync();
    const after = new MemoryStore({ schedule: disk.schedule, disk: store.crash() });
    const next = { group: 1, entries: [], stage: staging(2, 1, chunk(1)) };
    expect((await after.load(1))?.entries).toEqual(entries(1, 2));
    expect(() => after.write([next], () => {})).toThrow(/follow the 0 staged ones/);
  });
});

describe('disk()', () => {
  it('is a copy: neither store sees the writes of the other', async () => {
    const disk = new Disk();
    const store = started(disk);
    store.write([append(1, entries(1, 2))], () => {});
    disk.sync();
    const twin = started(disk, store);
    store.write([append(1, [entry(3)])], () => {});
    twin.write([append(1, [entry(2, 2)])], () => {});
    disk.sync();
    expect((await store.load(1))?.entries).toEqual(entries(1, 3));
    expect((await twin.load(1))?.entries).toEqual([entry(1), entry(2, 2)]);
  });
});

describe('failNextWrite()', () => {
  it.each([
    ['lost', 0],
    ['kept', 2],
  ] as const)('fails all later writes too; the failed write is %s', async (fate, found) => {
    const disk = new Disk();
    const store = started(disk);
    store.failNextWrite(new Error('EIO'), fate);
    const errors: (Error | undefined)[] = [];
    for (let i = 0; i < 2; i += 1) {
      store.write([append(1, entries(1, 2))], (error) => errors.push(error));
      disk.sync();
    }
    expect(errors).toHaveLength(2);
    expect(errors[0]).toMatchObject({ code: 'STORE_FAILED' });
    expect(errors[1]).toBe(errors[0]);
    expect((await started(disk, store).load(1))?.entries ?? []).toHaveLength(found);
  });
});
