/** All conformance tests for a LogStore. The store on LevelDB and the store in memory must both pass. */
import { afterEach, beforeEach } from 'vitest';
import { describeLog } from './conformance-log.ts';
import { describeRemoval } from './conformance-removal.ts';
import { describeSnapshots } from './conformance-snapshots.ts';
import { HarnessBench, type StoreHarness, type TestedStore } from './store-bench.ts';

/** Declares the tests; call it inside a describe() that names the store. */
export function testLogStore<S extends TestedStore>(makeHarness: () => Promise<StoreHarness<S>>): void {
  const bench = new HarnessBench(makeHarness);
  beforeEach(() => bench.setUp());
  afterEach(() => bench.tearDown());
  describeLog(bench);
  describeSnapshots(bench);
  describeRemoval(bench);
}
