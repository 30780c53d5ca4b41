/** Tests the measurement of how busy the process is: within its bounds, and higher after work. */
import { cpus } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { busyFraction, idleProcessors } from '../../src/node/busy-fraction.ts';

function work(millis: number): void {
  for (const until = performance.now() + millis; performance.now() < until;);
}

it('the main thread is busier while it works than while it waits', async () => {
  const busy = busyFraction();
  await delay(200);
  const waiting = busy();
  work(200);
  const working = busy();
  expect(waiting).toBeGreaterThanOrEqual(0);
  expect(working).toBeGreaterThan(waiting);
  expect(working).toBeLessThanOrEqual(1);
});

it('the number of idle processors is at most that of all processors', async () => {
  const idle = idleProcessors();
  await delay(100);
  const fraction = idle();
  expect(fraction).toBeGreaterThanOrEqual(0);
  expect(fraction).toBeLessThanOrEqual(cpus().length);
});
