/** Tests `waitForPermit`: which callers wait, how long, in which order, and with which request id. */
import { describe, expect, it } from 'vitest';
import { A, denialOf, grantOf, Played, unavailableOf, watched } from './played.ts';

const ADA = { userId: 'ada' };

function ids(played: Played): (string | undefined)[] {
  return played.sent.flatMap(({ requests }) => requests.map(({ requestId }) => requestId));
}

describe('waitForPermit', () => {
  it('returns a grant, and after a denial asks again when there is room, under a new id', async () => {
    const played = new Played();
    const permit = watched(played.client.waitForPermit(ADA));
    await played.settle();
    played.last.answer(denialOf({ retryAfterMillis: 5_000 }));
    await played.pass(4_999);
    expect(played.sent).toHaveLength(1);
    await played.pass(200);
    expect(ids(played)).toHaveLength(2);
    expect(new Set(ids(played)).size).toBe(2);
    played.last.answer(grantOf());
    await played.settle();
    expect(permit.value).toMatchObject({ kind: 'granted', allowed: true });
  });

  it('sends requests for the same user one by one, in order, and those of other users at once', async () => {
    const played = new Played({ nodes: [A] });
    const first = watched(played.client.waitForPermit(ADA));
    await played.settle();
    played.last.answer(denialOf({ retryAfterMillis: 1_000 }));
    await played.settle();
    const done: number[] = [];
    const others = [1, 2].map(async (i) => played.client.waitForPermit(ADA).then(() => done.push(i)));
    const bob = watched(played.client.waitForPermit({ userId: 'bob' }));
    await played.settle();
    expect(played.last.requests.map(({ userId }) => userId)).toEqual(['bob']);
    played.last.answer(grantOf());
    await played.pass(1_200);
    expect(bob.value?.allowed).toBe(true);
    // One of the three. The client sends no request for a caller that has given up.
    expect(played.last.requests).toHaveLength(1);
    played.last.answer(grantOf({ remaining: 1 }));
    await played.settle();
    expect(first.value?.allowed).toBe(true);
    played.last.answer(grantOf({ remaining: 0 }));
    await played.settle();
    expect(done).toEqual([1]);
    played.last.answer(denialOf({ retryAfterMillis: 1_000 }));
    await played.pass(1_200);
    played.last.answer(grantOf());
    await Promise.all(others);
    expect(done).toEqual([1, 2]);
  });

  it('gives up at once when the next permit comes too late', async () => {
    const played = new Played();
    const permit = watched(played.client.waitForPermit(ADA, { maxWaitMillis: 1_000 }));
    await played.settle();
    played.last.answer(denialOf({ retryAfterMillis: 5_000 }));
    await played.settle();
    expect(permit.error).toMatchObject({ code: 'PERMIT_TIMEOUT', isDefinite: true });
  });

  it('repeats a request that may have been counted under its id', async () => {
    const played = new Played({ deadlineMillis: 500, attemptMillis: 500 });
    const permit = watched(played.client.waitForPermit(ADA));
    await played.pass(1_000);
    expect(played.sent.length).toBeGreaterThan(1);
    expect(new Set(ids(played)).size).toBe(1);
    for (const sent of played.sent) if (sent.isOpen) sent.answer(grantOf());
    await played.settle();
    expect(permit.value?.allowed).toBe(true);
  });

  it('uses a new id once a request that may have been counted was denied', async () => {
    const played = new Played({ deadlineMillis: 500, attemptMillis: 500 });
    watched(played.client.waitForPermit(ADA));
    await played.pass(1_000);
    const before = new Set(ids(played));
    played.last.answer(denialOf({ retryAfterMillis: 1_000 }));
    await played.pass(1_200);
    expect(before.size).toBe(1);
    expect(played.last.requests.map(({ requestId = '' }) => before.has(requestId))).toEqual([false]);
  });

  it('does not repeat a request that may have been counted and has no id', async () => {
    const played = new Played({ requestIds: false, attemptMillis: 500 });
    const permit = watched(played.client.waitForPermit(ADA));
    await played.pass(10_000);
    expect(played.sent).toHaveLength(1);
    expect(permit.error).toMatchObject({ code: 'INDEFINITE' });
  });

  it('keeps asking while no node can decide, until its own time is over', async () => {
    const played = new Played({ deadlineMillis: 500 });
    const permit = watched(played.client.waitForPermit(ADA, { maxWaitMillis: 3_000 }));
    for (let i = 0; i < 300; i += 1) {
      await played.pass(20);
      for (const sent of played.sent) if (sent.isOpen) sent.answer(unavailableOf('no_leader', false));
    }
    expect(permit.error).toMatchObject({ code: 'UNAVAILABLE' });
    const lastMillis = played.sent.at(-1)?.atMillis ?? 0;
    expect(lastMillis).toBeGreaterThan(2_500);
    expect(lastMillis).toBeLessThan(4_600);
  });

  it('ends when it is aborted, and the next caller continues', async () => {
    const played = new Played();
    const abort = new AbortController();
    const permit = watched(played.client.waitForPermit(ADA, { signal: abort.signal }));
    const other = watched(played.client.waitForPermit(ADA));
    await played.settle();
    played.last.answer(denialOf({ retryAfterMillis: 1_000 }));
    await played.settle();
    abort.abort();
    await played.pass(1_200);
    expect(permit.error).toMatchObject({ code: 'ABORTED', isDefinite: true });
    played.last.answer(grantOf());
    await played.settle();
    expect(other.value?.allowed).toBe(true);
    const late = watched(played.client.waitForPermit(ADA, { signal: abort.signal }));
    await played.settle();
    expect(late.error).toMatchObject({ code: 'ABORTED' });
  });

  it('ends for a blocked user, and when the client is closed', async () => {
    const played = new Played();
    const blocked = watched(played.client.waitForPermit(ADA));
    await played.settle();
    played.last.answer(grantOf({ status: 403, allowed: false, blocked: true }));
    const waiting = watched(played.client.waitForPermit({ userId: 'bob' }));
    await played.settle();
    played.last.answer(denialOf());
    await played.settle();
    played.client.close();
    await played.settle();
    expect([blocked.error?.code, waiting.error?.code]).toEqual(['BLOCKED', 'CLOSED']);
  });

  it('ends for a user with a temporary block, and says how long it lasts', async () => {
    const played = new Played();
    const blocked = watched(played.client.waitForPermit(ADA));
    await played.settle();
    played.last.answer(grantOf({ status: 403, allowed: false, blocked: true, retryAfterMillis: 700 }));
    await played.settle();
    expect(blocked.error).toMatchObject({ code: 'BLOCKED', retryAfterMillis: 700 });
  });

  it('ends for a request that no rule limits, if the rules deny it', async () => {
    const played = new Played();
    const unmatched = watched(played.client.waitForPermit(ADA));
    await played.settle();
    played.last.answer({ status: 403, allowed: false, reason: 'unmatched', rulesVersion: 7 });
    await played.settle();
    expect(unmatched.error).toMatchObject({ name: 'UnmatchedError', code: 'UNMATCHED', isDefinite: true });
  });

  it('accepts a bounded number of callers, and only a valid waiting time', async () => {
    const played = new Played({ waitersMax: 1 });
    const permits = [1, 2].map(() => watched(played.client.waitForPermit(ADA)));
    const wrong = watched(played.client.waitForPermit(ADA, { maxWaitMillis: -1 }));
    await played.settle();
    expect(permits.map(({ error }) => error?.code)).toEqual([undefined, 'OVERLOADED']);
    expect(wrong.error).toMatchObject({ code: 'INVALID_OPTION', field: 'maxWaitMillis' });
    played.last.answer(grantOf());
    await played.settle();
    const next = watched(played.client.waitForPermit(ADA));
    await played.settle();
    played.last.answer(grantOf());
    await played.settle();
    expect(next.value?.allowed).toBe(true);
  });
});
