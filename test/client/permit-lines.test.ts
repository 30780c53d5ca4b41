/**
 * Tests the queues of `waitForPermit`: no caller hangs, no request repeats under an id that may be forgotten, long
 * queues are cheap.
 */
import { describe, expect, it } from 'vitest';
import { PermitLines, type Question } from '../../src/client/permit-lines.ts';
import type { PermitAnswer } from '../../src/client/permit.ts';
import { DENIAL, GRANT } from './answering.ts';
import { A, denialOf, grantOf, Played, unavailableOf, watched } from './played.ts';

const ADA = { userId: 'ada' };
const HOUR_MILLIS = 3_600_000;

function idOf(played: Played, i: number): string | undefined {
  return played.sent[i]?.requests[0]?.requestId;
}

/** A queue whose first caller was denied and waits. */
async function heldBy(
  played: Played,
  { cost = 1, retryAfterMillis = 5_000, maxWaitMillis = 60_000, signal }: HeldInit,
): Promise<ReturnType<typeof watched>> {
  const options = signal === undefined ? { maxWaitMillis } : { maxWaitMillis, signal };
  const first = watched(played.client.waitForPermit({ ...ADA, cost }, options));
  await played.settle();
  played.last.answer(denialOf({ retryAfterMillis }));
  await played.settle();
  return first;
}

interface HeldInit {
  readonly cost?: number;
  readonly retryAfterMillis?: number;
  readonly maxWaitMillis?: number;
  readonly signal?: AbortSignal;
}

describe('a line of waiting callers', () => {
  it('continues after a denial that says that there is room now', async () => {
    const played = new Played();
    const permit = await heldBy(played, { retryAfterMillis: 0 });
    await played.pass(1_000);
    played.last.answer(grantOf());
    await played.settle();
    expect(permit.value).toMatchObject({ allowed: true });
  });

  it('does not hold back a smaller request after a larger one gave up', async () => {
    const played = new Played({ nodes: [A] });
    const large = watched(played.client.waitForPermit({ ...ADA, cost: 9 }, { maxWaitMillis: 1_000 }));
    await played.settle();
    const asked = played.last;
    const small = watched(played.client.waitForPermit(ADA, { maxWaitMillis: 1_000 }));
    await played.settle();
    asked.answer(denialOf({ retryAfterMillis: 5_000 }));
    played.last.answer(grantOf());
    await played.settle();
    expect([large.error?.code, small.value]).toMatchObject(['PERMIT_TIMEOUT', { allowed: true }]);
  });

  it('does not hold back a smaller request after a larger one was aborted, and lets none overtake before', async () => {
    const played = new Played();
    const abort = new AbortController();
    const large = await heldBy(played, { cost: 9, signal: abort.signal });
    const small = watched(played.client.waitForPermit(ADA));
    await played.pass(100);
    expect(played.sent).toHaveLength(1);
    abort.abort();
    await played.settle();
    played.last.answer(grantOf());
    await played.settle();
    expect([large.error?.code, small.value]).toMatchObject(['ABORTED', { allowed: true }]);
  });

  it('continues after a permanent error', async () => {
    const played = new Played();
    const first = await heldBy(played, { retryAfterMillis: 1_000 });
    const second = watched(played.client.waitForPermit(ADA));
    await played.pass(1_200);
    played.last.respond(401, { allowed: false, error: { type: 'x', message: 'm' } });
    await played.settle();
    expect(first.error).toMatchObject({ code: 'REFUSED' });
    played.last.answer(grantOf());
    await played.settle();
    expect(second.value).toMatchObject({ allowed: true });
  });

  it('reports at once that a cost never fits, and continues', async () => {
    const played = new Played();
    const first = watched(played.client.waitForPermit({ ...ADA, cost: 101 }));
    await played.settle();
    const message = "cost must be at most the limit of rule 'default', which is 100";
    const error = { type: 'invalid_request', field: 'cost', message };
    played.last.answer({ status: 400, allowed: false, error });
    await played.settle();
    expect(first.error).toMatchObject({ code: 'COST_ABOVE_LIMIT', field: 'cost', message, isDefinite: true });
    const second = watched(played.client.waitForPermit({ ...ADA, cost: 100 }));
    await played.settle();
    played.last.answer(grantOf());
    await played.settle();
    expect(second.value).toMatchObject({ allowed: true });
  });

  it('waits if the burst of a bucket has room for a cost above its rate, and not if the limit is 0', async () => {
    const played = new Played();
    const first = watched(played.client.waitForPermit({ ...ADA, cost: 4 }));
    await played.settle();
    played.last.answer(denialOf({ limit: 2, retryAfterMillis: 1_000 }));
    await played.pass(1_200);
    played.last.answer(grantOf());
    await played.settle();
    expect(first.value).toMatchObject({ allowed: true });
    const second = watched(played.client.waitForPermit({ userId: 'eve' }));
    await played.settle();
    played.last.answer(denialOf({ limit: 0, retryAfterMillis: undefined }));
    await played.settle();
    expect(second.error).toMatchObject({ code: 'COST_ABOVE_LIMIT' });
  });

  it('accepts no caller once the client is closed, also if a denial is remembered', async () => {
    const played = new Played();
    await heldBy(played, {});
    played.client.close();
    const late = watched(played.client.waitForPermit(ADA));
    await played.settle();
    expect(late.error).toMatchObject({ code: 'CLOSED', isDefinite: true });
  });

  it('keeps no entry for a caller with an invalid signal', async () => {
    const played = new Played({ waitersMax: 1 });
    const signal = new AbortController() as unknown as AbortSignal;
    const wrong = watched(played.client.waitForPermit(ADA, { signal }));
    await played.settle();
    expect(wrong.error).toMatchObject({ code: 'INVALID_OPTION', field: 'signal' });
    const permit = watched(played.client.waitForPermit(ADA));
    await played.settle();
    played.last.answer(grantOf());
    await played.settle();
    expect(permit.value).toMatchObject({ allowed: true });
  });

  it('reads the fields that an object inherits from its class', async () => {
    class Request {
      get userId(): string {
        return 'ada';
      }
    }
    const played = new Played();
    watched(played.client.waitForPermit(new Request()));
    await played.settle();
    expect(played.last.requests).toMatchObject([{ userId: 'ada' }]);
  });

  it('sends the original request even if the caller changes the object later', async () => {
    const played = new Played();
    const request = { descriptors: { user: 'ada' } };
    watched(played.client.waitForPermit(request));
    await played.settle();
    played.last.answer(denialOf({ retryAfterMillis: 1_000 }));
    request.descriptors.user = 'bob';
    await played.pass(1_200);
    expect(played.sent.map(({ requests }) => requests[0]?.descriptors)).toEqual([
      { user: 'ada' },
      { user: 'ada' },
    ]);
  });
});

describe('a request that may have been counted', () => {
  const SOON = { deadlineMillis: 500, attemptMillis: 500 };

  it('is not repeated once its id may be forgotten, even if the line waited long', async () => {
    const played = new Played({ ...SOON, nodes: [A] });
    const [first, second] = [1, 2].map(() =>
      watched(played.client.waitForPermit(ADA, { maxWaitMillis: HOUR_MILLIS })),
    );
    await played.settle();
    const [, id] = played.last.requests.map(({ requestId }) => requestId);
    played.last.respond(200, { answers: [denialOf({ retryAfterMillis: 90_000 }), null] });
    await played.pass(2_000);
    expect(first).toEqual({});
    expect(second?.error).toMatchObject({ code: 'INDEFINITE', isDefinite: false });
    await played.pass(100_000);
    const late = played.sent.filter(({ atMillis }) => atMillis > 61_000);
    expect(late.length).toBeGreaterThan(0);
    expect(late.flatMap(({ requests }) => requests.map(({ requestId }) => requestId))).not.toContain(id);
  });

  it.each([120_000, 10_000])('is repeated for at most half of a horizon of %i ms', async (horizon) => {
    const played = new Played({ ...SOON, requestIdHorizonMillis: horizon });
    const permit = watched(played.client.waitForPermit(ADA, { maxWaitMillis: HOUR_MILLIS }));
    await played.pass(horizon);
    const times = played.sent.map(({ atMillis }) => atMillis - 1_000);
    expect(Math.max(...times)).toBeLessThanOrEqual(horizon / 2);
    expect(Math.max(...times)).toBeGreaterThan(horizon / 2 - 3_000);
    expect(permit.error).toMatchObject({ code: 'INDEFINITE', isDefinite: false });
  });

  it('stays in doubt, even after a certain last answer', async () => {
    const played = new Played(SOON);
    const permit = watched(played.client.waitForPermit(ADA));
    await played.pass(600);
    played.last.respond(401, { allowed: false, error: { type: 'x', message: 'm' } });
    await played.settle();
    expect(permit.error).toMatchObject({ code: 'INDEFINITE', isDefinite: false });
  });

  it('stays in doubt after a denial: the lost attempt may arrive late', async () => {
    const played = new Played();
    const permit = watched(played.client.waitForPermit(ADA, { maxWaitMillis: 1_000 }));
    await played.settle();
    played.last.fail(true);
    await played.pass(100);
    played.last.answer(denialOf({ retryAfterMillis: 5_000 }));
    await played.settle();
    expect(permit.error).toMatchObject({ code: 'PERMIT_TIMEOUT', isDefinite: false });
  });

  it('is repeated at the cluster, although a denial of another caller is remembered', async () => {
    const played = new Played({ ...SOON, nodes: [A] });
    const permit = watched(played.client.waitForPermit(ADA));
    await played.settle();
    played.last.answer(null);
    watched(played.client.allow(ADA));
    await played.settle();
    played.last.answer(denialOf({ retryAfterMillis: 1_000 }));
    await played.pass(400);
    expect(played.last.requests).toMatchObject([{ requestId: idOf(played, 0) }]);
    played.last.answer(grantOf());
    await played.settle();
    expect(permit.value).toMatchObject({ allowed: true });
  });

  it('is not repeated without an id, also with a fail mode', async () => {
    const failMode = { mode: 'local', limit: 1, windowMillis: 60_000 } as const;
    const played = new Played({ ...SOON, requestIds: false, failMode });
    const permits = [1, 2].map(() => watched(played.client.waitForPermit(ADA)));
    await played.pass(10_000);
    expect(permits.map(({ value, error }) => value?.kind ?? error?.code)).toEqual(['degraded', 'INDEFINITE']);
    expect(played.sent.flatMap(({ requests }) => requests)).toHaveLength(2);
  });

  it('is repeated under its id after a denial by the fail mode', async () => {
    const failMode = { mode: 'local', limit: 1, windowMillis: 5_000 } as const;
    const played = new Played({ ...SOON, failMode });
    const permits = [1, 2].map(() => watched(played.client.waitForPermit({ ...ADA, requestId: undefined })));
    await played.pass(700);
    expect(permits[0]?.value?.kind).toBe('degraded');
    await played.pass(7_000);
    expect(new Set(played.sent.flatMap(({ requests }) => requests.map((each) => each.requestId))).size).toBe(
      2,
    );
  });
});

const TRIES = 5;

/** Processor time in milliseconds until all callers of a queue were granted, one at a time. */
async function turnsOf(waiters: number): Promise<number> {
  const timers: (() => void)[] = [];
  let nowMillis = 0;
  const environment = {
    nowMillis: () => nowMillis,
    random: () => 0,
    after: (_: number, run: () => void) => {
      timers.push(run);
      return () => void timers.splice(timers.indexOf(run), 1);
    },
  };
  const lines = new PermitLines(environment, {
    waitersMax: waiters,
    deadlineMillis: 1_000,
    requestIdHorizonMillis: 120_000,
  });
  let isFree = false;
  const denial = { ...DENIAL, retryAfterMillis: 10 } as PermitAnswer;
  const ask = async ({ isRepeat }: Question): Promise<PermitAnswer> => {
    const isGranted = isFree && !isRepeat;
    isFree = false;
    return isGranted ? { ...GRANT, remaining: 0 } : denial;
  };
  const init = { subject: 'ada', cost: 1, ask, maxWaitMillis: HOUR_MILLIS, signal: undefined };
  const before = process.cpuUsage();
  const permits = Array.from({ length: waiters }, async () => lines.wait({ ...init, isRepeatable: true }));
  let isDone = false;
  const all = Promise.all(permits).then(() => (isDone = true));
  while (!isDone) {
    await new Promise((resolve) => setImmediate(resolve));
    isFree = true;
    nowMillis += 10;
    for (const run of timers.splice(0)) run();
  }
  await all;
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

describe('a long line', () => {
  it('costs each caller about as much as a short one', async () => {
    await turnsOf(1_000);
    // Processor time, because other work on the machine would distort the clock. The least of several runs excludes
    // garbage that is collected now and then.
    let least = { short: Infinity, long: Infinity };
    for (let tries = 0; tries < TRIES && least.long >= least.short * 40; tries += 1) {
      least = {
        short: Math.min(least.short, await turnsOf(1_000)),
        long: Math.min(least.long, await turnsOf(10_000)),
      };
    }
    // The queue is ten times as long. If each step cost as much as the queue is long, the ratio would be a hundred.
    expect(least.long).toBeLessThan(least.short * 40);
  });
});

describe('a grant', () => {
  it('that arrives after a long pause of the process is not used', async () => {
    const played = new Played();
    const asked = watched(played.client.allow(ADA));
    await played.settle();
    played.nowMillis += 600_000;
    played.last.answer(grantOf());
    await played.settle();
    expect(asked.error).toMatchObject({ code: 'INDEFINITE', isDefinite: false });
  });

  it('is not requested after its deadline if the request waited in a queue', async () => {
    const played = new Played({ nodes: [A], batchesPerNodeMax: 1 });
    watched(played.client.allow(ADA));
    await played.settle();
    const waiting = watched(played.client.allow({ userId: 'bob' }));
    await played.settle();
    played.nowMillis += 600_000;
    played.last.answer(unavailableOf('no_leader', false));
    await played.settle();
    expect(played.sent).toHaveLength(1);
    expect(waiting.error).toMatchObject({ code: 'UNAVAILABLE', isDefinite: true });
  });
});
