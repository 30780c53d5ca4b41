import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../cluster/harness.ts';
import type { Order } from './injected/order.ts';
import { INSIDE } from './machine.ts';

/** Prints its clocks on request. */
const PROGRAM = `const real = () => Number(process.hrtime.bigint()) / 1e6;
process.on('message', (order) => {
  if (order.kind === 'report') process.send([Date.now(), real(), performance.now(), real()]);
})`;

describe('the module inside a node', () => {
  let child: ChildProcess;
  afterEach(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  });

  function start(orders: readonly Order[]): void {
    child = spawn(process.execPath, ['--import', pathToFileURL(INSIDE).href, '-e', PROGRAM], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: { ...process.env, QUORATE_TEST_ORDERS: JSON.stringify(orders) },
    });
  }

  /**
   * The child's values were read between two reads of the real clocks, by the child and by the parent. Either process
   * may be paused at any moment.
   */
  async function clocks(): Promise<{
    /** Bounds of how far the wall clock is ahead. */
    leastAheadMillis: number;
    mostAheadMillis: number;
    monotonic: number;
    before: number;
    after: number;
  }> {
    const askedMillis = Date.now();
    child.send({ kind: 'report' });
    const [[wall, before, monotonic, after]] = (await once(child, 'message')) as [
      [number, number, number, number],
    ];
    const leastAheadMillis = wall - Date.now();
    return { leastAheadMillis, mostAheadMillis: wall - askedMillis, monotonic, before, after };
  }

  async function expectAhead(millis: number): Promise<void> {
    const { leastAheadMillis, mostAheadMillis } = await clocks();
    expect(leastAheadMillis).toBeLessThan(millis + 5_000);
    expect(mostAheadMillis).toBeGreaterThan(millis - 5_000);
  }

  it('has the wall clock of its start, and others on order', async () => {
    start([{ kind: 'wallClock', offsetMillis: 3_600_000, rate: 1 }]);
    await expectAhead(3_600_000);
    child.send({ kind: 'wallClock', offsetMillis: -60_000, rate: 1 });
    await expectAhead(-60_000);
    child.send({ kind: 'wallClock', offsetMillis: 0, rate: 1_000 });
    await eventually('the wall clock is far ahead', async () =>
      (await clocks()).leastAheadMillis > 40_000 ? true : undefined,
    );
  });

  it('changes the speed of the monotonic clock, which never jumps', async () => {
    start([]);
    const first = await clocks();
    child.send({ kind: 'monotonicRate', ppm: 1_000_000 });
    const second = await clocks();
    await delay(100);
    const third = await clocks();
    child.send({ kind: 'monotonicRate', ppm: 0 });
    const fourth = await clocks();
    const elapsed = third.monotonic - second.monotonic;
    expect(elapsed / (third.before - second.after)).toBeGreaterThan(1.95);
    expect(elapsed / (third.after - second.before)).toBeLessThan(2.05);
    expect(second.monotonic).toBeGreaterThanOrEqual(first.monotonic);
    expect(fourth.monotonic).toBeGreaterThanOrEqual(third.monotonic);
    const gained = fourth.monotonic - third.monotonic;
    expect(gained).toBeLessThan(1_000 + 2 * (fourth.after - third.before));
  });

  it('keeps the event loop busy for the ordered time', async () => {
    start([]);
    await clocks();
    const startMillis = performance.now();
    child.send({ kind: 'stall', millis: 150 });
    await clocks();
    expect(performance.now() - startMillis).toBeGreaterThanOrEqual(145);
  });
});
