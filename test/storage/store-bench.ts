/** A store under test with the helpers of the conformance tests. */
import { expect } from 'vitest';
import type { GroupWrite, LogStore } from '../../raft/driver/store.ts';
import type { GroupId } from '../../raft/types.ts';
import { chunk, meta, staging, written } from './fixtures.ts';

export interface TestedStore extends LogStore {
  groups(): GroupId[];
}

/** How to make, restart and break one kind of store. */
export interface StoreHarness<S extends TestedStore = TestedStore> {
  open(): Promise<S>;
  /** Closes the store and opens its files again. */
  restart(store: S): Promise<S>;
  /** Makes the next write of the open store fail. */
  failNextWrite(store: S): void;
  dispose(): Promise<void>;
}

export interface StoreBench {
  readonly store: TestedStore;
  write(...writes: GroupWrite[]): Promise<void>;
  restart(): Promise<void>;
  failNextWrite(): void;
  /** Takes a snapshot at `index`, of two chunks, the way a driver does. */
  takeSnapshot(group: GroupId, index: number, term?: number): Promise<void>;
}

export class HarnessBench<S extends TestedStore> implements StoreBench {
  private readonly makeHarness: () => Promise<StoreHarness<S>>;
  private current: { readonly harness: StoreHarness<S>; store: S } | undefined = undefined;

  constructor(makeHarness: () => Promise<StoreHarness<S>>) {
    this.makeHarness = makeHarness;
  }

  async setUp(): Promise<void> {
    const harness = await this.makeHarness();
    this.current = { harness, store: await harness.open() };
  }

  async tearDown(): Promise<void> {
    await this.store.close();
    await this.running.harness.dispose();
  }

  private get running(): { readonly harness: StoreHarness<S>; store: S } {
    if (this.current === undefined) throw new Error('the store is used before its test begins');
    return this.current;
  }

  get store(): S {
    return this.running.store;
  }

  write(...writes: GroupWrite[]): Promise<void> {
    return written(this.store, writes);
  }

  async restart(): Promise<void> {
    this.running.store = await this.running.harness.restart(this.store);
  }

  failNextWrite(): void {
    this.running.harness.failNextWrite(this.store);
  }

  async takeSnapshot(group: GroupId, index: number, term?: number): Promise<void> {
    const chunks = [chunk(1), chunk(2, 7)];
    for (const [number, data] of chunks.entries()) {
      await this.write({ group, entries: [], stage: staging(index, number, data) });
    }
    await this.write({ group, entries: [], snapshot: meta(index, chunks, term) });
  }
}

/** Expects the store to refuse a write, and to be unchanged by it. */
export async function expectRefused(t: StoreBench, refused: GroupWrite, message: RegExp): Promise<void> {
  const before = await t.store.load(refused.group);
  expect(() => t.store.write([refused], () => {})).toThrow(message);
  expect(await t.store.load(refused.group)).toEqual(before);
}
