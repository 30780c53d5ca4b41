import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import type { Order } from './injected/order.ts';
import { INSIDE } from './machine.ts';

/** Tells its clocks whenever it is asked. */
const PROGRAM = `process.on('message', (order) => {
  if (order.kind === 'tell') process.send([Date.now(), performance.now(), Number(process.hrtime.bigint()) / 1e6]);
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

  async function clocks(): Promise<{ aheadMillis: number; monotonicMillis: number; realMillis: number }> {
    child.send({ kind: 'tell' });
    const [[wall, monotonicMillis, realMillis]] = (await once(child, 'message')) as [
      [number, number, number],
    ];
    return { aheadMillis: wall - Date.now(), monotonicMillis, realMillis };
  }

  it('has the wall clock it was started with, and others later', async () => {
    start([{ kind: 'wallClock', offsetMillis: 3_600_000, rate: 1 }]);
    expect(Math.abs((await clocks()).aheadMillis - 3_600_000)).toBeLessThan(5_000);
    child.send({ kind: 'wallClock', offsetMillis: -60_000, rate: 1 });
    expect(Math.abs((await clocks()).aheadMillis + 60_000)).toBeLessThan(5_000);
    child.send({ kind: 'wallClock', offsetMillis: 0, rate: 1_000 });
    await delay(50);
    expect((await clocks()).aheadMillis).toBeGreaterThan(40_000);
  });

  it('changes the speed of the other clock, which never jumps', async () => {
    start([]);
    const first = await clocks();
    child.send({ kind: 'monotonicRate', ppm: 1_000_000 });
    const second = await clocks();
    await delay(100);
    const third = await clocks();
    child.send({ kind: 'monotonicRate', ppm: 0 });
    const fourth = await clocks();
    const elapsed = third.monotonicMillis - second.monotonicMillis;
    const realElapsed = third.realMillis - second.realMillis;
    expect(elapsed / realElapsed).toBeCloseTo(2, 1);
    expect(second.monotonicMillis).toBeGreaterThanOrEqual(first.monotonicMillis);
    expect(fourth.monotonicMillis).toBeGreaterThanOrEqual(third.monotonicMillis);
    const gained = fourth.monotonicMillis - third.monotonicMillis;
    expect(gained).toBeLessThan(1_000 + 2 * (fourth.realMillis - third.realMillis));
  });

  it('keeps the event loop busy for as long as it is told', async () => {
    start([]);
    await clocks();
    const startMillis = performance.now();
    child.send({ kind: 'stall', millis: 150 });
    await clocks();
    expect(performance.now() - startMillis).toBeGreaterThanOrEqual(145);
  });
});
