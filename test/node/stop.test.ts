/** Tests the steps and the time limits of a stop. */
import { setImmediate as endOfTurn } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { NodeCore } from '../../src/node/node-core.ts';
import { stopLimits, takeLeave } from '../../src/node/stop.ts';
import { Listener } from '../http/fixtures.ts';
import { RawClient } from '../http/raw-client.ts';
import { KEPT_MILLIS_MAX } from '../jepsen/http-attempt.ts';
import { until } from '../transport/wait.ts';

let listener = new Listener();
afterEach(async () => {
  await listener.app.close();
  listener = new Listener();
});

describe('a node that stops while no partition can decide', () => {
  it('still answers open requests when its time is up, before their deadline', async () => {
    const port = await listener.listen();
    listener.answer = undefined;
    const answer = fetch(`http://127.0.0.1:${port}/v1/allow`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"userId":"ada"}',
    });
    await until('it is open', () => listener.open.length === 1);
    const core = {
      hasLeft: true,
      isIdle: false,
      leave() {},
      router: {
        close: () => listener.open[0]?.({ kind: 'unavailable', reason: 'no_leader', proposed: false }, 0),
      },
    } as unknown as NodeCore;
    await takeLeave(core, [listener.listener], { lingerMillisMin: 0, lingerMillisMax: 0, openMillisMax: 50 });
    const response = await answer;
    expect([response.status, await response.json()]).toMatchObject([503, { allowed: false }]);
  });

  it.each([100, 1_000, 60_000])(
    'has a bounded time for open requests, with a deadline of %s ms',
    (deadlineMillis) => {
      const { lingerMillisMax, openMillisMax } = stopLimits(deadlineMillis);
      // The hand-over before takes 2 s at most, and the process has 10 s in all.
      expect(lingerMillisMax + openMillisMax).toBeLessThan(7_000);
      expect(openMillisMax).toBeGreaterThan(Math.min(deadlineMillis, 5_000));
    },
  );

  it("does not break idle connections before a client's pool would drop them", () => {
    expect(stopLimits(100).lingerMillisMax).toBeGreaterThanOrEqual(2 * KEPT_MILLIS_MAX);
  });
});

describe('a node whose event loop is blocked while it stops', () => {
  it('answers requests that arrived meanwhile on idle connections', async () => {
    const client = new RawClient(await listener.listen());
    client.ask('ada');
    await until('it is answered', () => client.statuses().length === 1);
    listener.readiness = { status: 'stopping' };
    const core = { hasLeft: true, isIdle: true, leave() {}, router: { close() {} } } as unknown as NodeCore;
    // After this turn the loop runs timers first, and then reads.
    await endOfTurn();
    const left = takeLeave(core, [listener.listener], {
      lingerMillisMin: 20,
      lingerMillisMax: 20,
      openMillisMax: 5_000,
    });
    client.ask('bob');
    // The system has the request, and the loop goes on when the listener has nothing left to wait for.
    const blockedAt = performance.now();
    while (performance.now() - blockedAt < 100);
    await left;
    await until('the connection is closed', () => client.isClosed);
    expect(client.statuses()).toEqual(['200', '200']);
  });
});
