/** Tests the answers that a client gives without a node: remembered denials, and fail modes if no node can decide. */
import { describe, expect, it } from 'vitest';
import { denialOf, grantOf, Played, unavailableOf, watched } from './played.ts';

const ADA = { userId: 'ada' };

async function denied(
  played: Played,
  changes = {},
  request: { userId: string; cost?: number } = ADA,
): Promise<void> {
  watched(played.client.allow(request));
  await played.settle();
  played.last.answer(denialOf(changes));
  await played.settle();
}

async function isAsked(played: Played, request: Parameters<Played['client']['allow']>[0]): Promise<boolean> {
  const before = played.sent.length;
  const asked = watched(played.client.allow(request));
  await played.settle();
  if (played.sent.length === before) {
    if (asked.value?.kind !== 'denied' || !asked.value.isCached)
      throw new Error('neither asked nor remembered');
    return false;
  }
  played.last.answer(denialOf({ retryAfterMillis: 1 }));
  await played.settle();
  return true;
}

describe('a denial', () => {
  it('is remembered until there is room again, counted from the time of the request', async () => {
    const played = new Played();
    const asked = watched(played.client.allow(ADA));
    await played.pass(300);
    played.last.answer(denialOf({ retryAfterMillis: 5_000, resetMillis: 9_000 }));
    await played.settle();
    expect(asked.value).toMatchObject({ isCached: false, retryAfterMillis: 5_000 });
    const again = watched(played.client.allow(ADA));
    await played.settle();
    expect(again.value).toMatchObject({ isCached: true, retryAfterMillis: 4_700, resetMillis: 8_700 });
    await played.pass(4_699);
    expect(await isAsked(played, ADA)).toBe(false);
    await played.pass(1);
    expect(await isAsked(played, ADA)).toBe(true);
  });

  it('is remembered for this user, rule, and cost or more, and for no other', async () => {
    const played = new Played();
    await denied(played, {}, { ...ADA, cost: 3 });
    expect(await isAsked(played, { ...ADA, cost: 3 })).toBe(false);
    expect(await isAsked(played, { ...ADA, cost: 4 })).toBe(false);
    expect(await isAsked(played, { userId: 'bob', cost: 3 })).toBe(true);
    expect(await isAsked(played, { ...ADA, cost: 3, rule: 'other' })).toBe(true);
    expect(await isAsked(played, { ...ADA, cost: 2 })).toBe(true);
  });

  it('does not answer a request that has its own id or time', async () => {
    const played = new Played();
    await denied(played);
    expect(await isAsked(played, { ...ADA, requestId: 'mine' })).toBe(true);
    expect(await isAsked(played, { ...ADA, timestampMillis: 5 })).toBe(true);
    expect(await isAsked(played, ADA)).toBe(false);
  });

  it('is forgotten when the rules change, and a denial by older rules is not remembered', async () => {
    const played = new Played();
    await denied(played);
    watched(played.client.allow({ userId: 'bob' }));
    await played.settle();
    played.last.answer(grantOf({ rulesVersion: 2 }));
    await played.settle();
    expect(await isAsked(played, ADA)).toBe(true);
    await denied(played, { rulesVersion: 1 });
    expect(await isAsked(played, ADA)).toBe(true);
  });

  it('is not remembered for longer than the option allows, and only up to the number that it allows', async () => {
    const played = new Played({ deniedMillisMax: 1_000, deniedMax: 2 });
    await denied(played);
    await played.pass(1_000);
    expect(await isAsked(played, ADA)).toBe(true);
    for (const userId of ['a', 'b', 'c']) await denied(played, {}, { userId });
    expect(await isAsked(played, { userId: 'a' })).toBe(true);
    const none = new Played({ deniedMax: 0 });
    await denied(none);
    expect(await isAsked(none, ADA)).toBe(true);
  });

  it('of descriptors is remembered for a second at most, and never for longer than it says', async () => {
    const described = { descriptors: { user: 'ada', endpoint: '/' } };
    for (const [retryAfterMillis, heldMillis] of [
      [5_000, 1_000],
      [300, 300],
    ] as const) {
      const played = new Played();
      watched(played.client.allow(described));
      await played.settle();
      played.last.answer(denialOf({ retryAfterMillis }));
      await played.pass(heldMillis - 1);
      expect(await isAsked(played, described)).toBe(false);
      await played.pass(1);
      expect(await isAsked(played, described)).toBe(true);
    }
  });

  it('is forgotten at the first answer with a newer version of the rules', async () => {
    const described = { descriptors: { ip: '10.0.0.1' } };
    const played = new Played();
    watched(played.client.allow(described));
    await played.settle();
    played.last.answer(denialOf());
    await denied(played);
    watched(played.client.allow({ ...ADA, requestId: 'mine' }));
    await played.settle();
    played.last.answer(grantOf({ rulesVersion: 2 }));
    await played.settle();
    expect(await isAsked(played, described)).toBe(true);
    expect(await isAsked(played, ADA)).toBe(true);
  });

  it('by a fail mode of the rules, or a block, is not remembered', async () => {
    const played = new Played();
    await denied(played, { degraded: true, rules: ['r'] });
    expect(await isAsked(played, ADA)).toBe(true);
    await played.pass(10);
    await denied(played, { status: 403, blocked: true });
    expect(await isAsked(played, ADA)).toBe(true);
  });
});

const SOON = { deadlineMillis: 1_000 };
const LOCAL = { mode: 'local', limit: 2, windowMillis: 10_000 } as const;

/** No node can decide before the deadline, which is short. */
async function undecided(
  played: Played,
  request: Parameters<Played['client']['allow']>[0] = ADA,
): Promise<unknown> {
  const asked = watched(played.client.allow(request));
  await played.settle();
  // The overloaded node asks for a longer wait than the deadline allows.
  played.last.answer(unavailableOf('overloaded', false));
  await played.settle();
  return asked.value ?? asked.error?.code;
}

describe('if no node can decide', () => {
  it('a request is an error by default', async () => {
    expect(await undecided(new Played(SOON))).toBe('UNAVAILABLE');
  });

  it('and the fail mode is open, a request is granted and marked as degraded', async () => {
    const played = new Played({ ...SOON, failMode: 'open' });
    expect(await undecided(played)).toEqual({ kind: 'degraded', allowed: true, by: 'client' });
    expect(played.events.at(-1)).toEqual({
      type: 'failMode',
      mode: 'open',
      allowed: true,
      code: 'UNAVAILABLE',
    });
  });

  it('and the fail mode is local, each key gets the local limit and no more', async () => {
    const played = new Played({ ...SOON, failMode: LOCAL });
    expect(await undecided(played)).toMatchObject({ allowed: true, by: 'client' });
    expect(await undecided(played)).toMatchObject({ allowed: true });
    expect(await undecided(played)).toMatchObject({
      kind: 'degraded',
      allowed: false,
      retryAfterMillis: 10_000,
    });
    expect(await undecided(played, { userId: 'bob' })).toMatchObject({ allowed: true });
    expect(await undecided(played, { ...ADA, cost: 3 })).toMatchObject({ allowed: false });
  });

  it('a request may have its own fail mode', async () => {
    const played = new Played({ ...SOON, failMode: 'open' });
    expect(await undecided(played, { ...ADA, failMode: 'closed' })).toBe('UNAVAILABLE');
    const bad = watched(played.client.allow({ ...ADA, failMode: 'no' as 'open' }));
    await played.settle();
    expect(bad.error).toMatchObject({ code: 'INVALID_OPTION' });
  });

  it('an invalid request stays an error, and so does a refused token', async () => {
    const played = new Played({ failMode: 'open' });
    const refused = watched(played.client.allow(ADA));
    await played.settle();
    played.last.respond(401, { allowed: false, error: { type: 'unauthenticated', message: 'm' } });
    const invalid = watched(played.client.allow({ userId: '' }));
    await played.settle();
    expect([refused.error?.code, invalid.error?.code]).toEqual(['REFUSED', 'INVALID_REQUEST']);
  });
});
