/** Tests the middleware independent of a framework: headers, denials, fail modes, and requests that pass. */
import { describe, expect, it } from 'vitest';
import {
  CostAboveLimitError,
  IndefiniteError,
  InvalidRequestError,
  RefusedError,
  UnavailableError,
} from '../../src/client/errors.ts';
import type { RequestFacts } from '../../src/client/middleware/facts.ts';
import type { Identifier } from '../../src/client/middleware/index.ts';
import { limitOf, type RateLimitOptions } from '../../src/client/middleware/limit.ts';
import type { PermitAnswer } from '../../src/client/permit.ts';
import { Answering, DECIDED, DENIAL, GRANT } from './answering.ts';

const FACTS: RequestFacts = { method: 'GET', path: '/', peerAddress: '1.2.3.4', header: () => undefined };
const WALL_MILLIS = 1_700_000_000_123;

const nobody: Identifier<object> = () => undefined;

async function later<T>(value: T): Promise<T> {
  return Promise.resolve(value);
}

interface Asking {
  readonly user?: string;
}

async function verdictOf(
  answer: PermitAnswer | Error,
  options: Partial<RateLimitOptions<Asking>> = {},
): Promise<Awaited<ReturnType<ReturnType<typeof limitOf<Asking>>>>> {
  const client = new Answering();
  client.answer = answer;
  const identify = options.descriptors === undefined ? { identify: ({ user }: Asking) => user } : {};
  return limitOf<Asking>({ client, ...identify, ...options }, () => WALL_MILLIS)({ user: 'ada' }, FACTS);
}

describe('headers', () => {
  it('of a grant show limit and remainder, in each form', async () => {
    const x = {
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '42',
      'x-ratelimit-reset': '1700000060',
      'x-ratelimit-policy': '100;w=60',
      'x-ratelimit-rule': 'default',
    };
    const draft = { ratelimit: '"default";r=42;t=60', 'ratelimit-policy': '"default";q=100;w=60' };
    expect((await verdictOf(GRANT)).headers).toEqual({ ...x, ...draft });
    expect((await verdictOf(GRANT, { headers: ['x'] })).headers).toEqual(x);
    expect((await verdictOf(GRANT, { headers: ['draft'] })).headers).toEqual(draft);
    expect((await verdictOf(GRANT, { headers: ['draft6'] })).headers).toEqual({
      'ratelimit-limit': '100',
      'ratelimit-remaining': '42',
      'ratelimit-reset': '60',
      'ratelimit-policy': '100;w=60',
    });
    expect((await verdictOf(GRANT, { headers: [] })).headers).toEqual({});
  });

  it('of a denial say when to retry, in each form', async () => {
    for (const headers of [['x'], ['draft6'], ['draft'], []] as const)
      expect((await verdictOf(DENIAL, { headers })).headers).toMatchObject({ 'retry-after': '13' });
    const { headers } = await verdictOf(DENIAL, { headers: ['draft6', 'draft'] });
    expect(headers).toMatchObject({ ratelimit: '"default";r=0;t=13', 'ratelimit-reset': '13' });
  });

  it('omit the window if an older node does not report it', async () => {
    const { windowMillis, ...answer } = GRANT;
    expect(windowMillis).toBe(60_000);
    expect((await verdictOf(answer)).headers).toMatchObject({
      'x-ratelimit-policy': '100',
      'ratelimit-policy': '"default";q=100',
    });
  });
});

describe('an answer', () => {
  it('to a denial is 429 with the body of the cluster, or the body from the options', async () => {
    const usual = await verdictOf(DENIAL);
    expect(usual).toMatchObject({ passes: false, status: 429 });
    expect(JSON.parse('body' in usual ? usual.body : '')).toEqual({
      error: {
        type: 'rate_limit_error',
        message: 'Rate limit exceeded. Please retry after 13 seconds.',
        retry_after: 13,
        limit: 100,
        window: '60s',
      },
    });
    const text = await verdictOf(DENIAL, { body: () => 'Too many.' });
    expect(text).toMatchObject({
      body: 'Too many.',
      headers: { 'content-type': 'text/plain; charset=utf-8' },
    });
    expect(await verdictOf(DENIAL, { body: (_, { user }) => ({ user }) })).toMatchObject({
      body: '{"user":"ada"}',
    });
  });

  it('to a denial after a restore says so, and when it ends', async () => {
    const verdict = await verdictOf({ ...DENIAL, reason: 'restored', restoredMillis: 12_345 });
    expect(verdict).toMatchObject({
      status: 429,
      headers: { 'retry-after': '13', 'quorate-restored': '13' },
    });
    expect('body' in verdict && verdict.body).toMatch(
      /"The cluster was restored, .* retry after 13 seconds\."/,
    );
    expect((await verdictOf(DENIAL)).headers).not.toHaveProperty('quorate-restored');
  });

  it('to a block is 403 without a time to retry', async () => {
    const verdict = await verdictOf({ kind: 'blocked', allowed: false, decided: DECIDED });
    expect(verdict).toMatchObject({ passes: false, status: 403 });
    expect(verdict.headers).not.toHaveProperty('retry-after');
  });

  it('to a block with an end is 403 with the time to retry', async () => {
    const blocked = { kind: 'blocked', allowed: false, retryAfterMillis: 1_500, decided: DECIDED } as const;
    const verdict = await verdictOf(blocked);
    expect(verdict).toMatchObject({ passes: false, status: 403, headers: { 'retry-after': '2' } });
    expect(verdict).toMatchObject({ body: expect.stringContaining('Please retry after 2 seconds.') });
  });

  it('to a request that no rule limits is 403, says why, and has no time to retry', async () => {
    const verdict = await verdictOf({ kind: 'unmatched', allowed: false, rulesVersion: 7 });
    expect(verdict).toMatchObject({ passes: false, status: 403 });
    expect('body' in verdict && JSON.parse(verdict.body)).toMatchObject({ error: { type: 'unmatched' } });
    expect(verdict.headers).not.toHaveProperty('retry-after');
  });

  it.each([
    new UnavailableError('no_leader'),
    new IndefiniteError('no_answer'),
    new RefusedError(401, 'token'),
  ])('if no node decided (%s) is 503, and never lets the request pass', async (error) => {
    const seen: unknown[] = [];
    const verdict = await verdictOf(error, { onError: (each) => seen.push(each) });
    expect(verdict).toMatchObject({ passes: false, status: 503, headers: { 'retry-after': '1' } });
    expect(seen).toEqual([error]);
  });

  it('to a client that cannot be identified is 400, and nothing is asked', async () => {
    const client = new Answering();
    expect(await limitOf({ client, identify: nobody })({}, FACTS)).toMatchObject({
      passes: false,
      status: 400,
    });
    expect(await limitOf({ client, descriptors: { user: nobody } })({}, FACTS)).toMatchObject({
      status: 400,
    });
    expect(client.asked).toEqual([]);
  });

  it.each([[undefined], [null], ['']])(
    'to a client for which a custom identifier returns %j is 400',
    async (nothing) => {
      const client = new Answering();
      expect(await limitOf({ client, identify: () => nothing })({}, FACTS)).toMatchObject({ status: 400 });
      expect(client.asked).toEqual([]);
    },
  );

  it('to a mistake of the service is an error for its framework', async () => {
    for (const error of [
      new InvalidRequestError('cost', 'cost must be an integer from 1 to 100'),
      new CostAboveLimitError('cost must be at most the limit'),
    ])
      await expect(verdictOf(error)).rejects.toBe(error);
    await expect(
      verdictOf(GRANT, {
        cost: () => {
          throw new TypeError('mine');
        },
      }),
    ).rejects.toThrow('mine');
  });

  it('by a fail mode has no headers for a grant, and a time to retry for a denial', async () => {
    const degraded = { kind: 'degraded', by: 'client' } as const;
    expect(await verdictOf({ ...degraded, allowed: true })).toEqual({
      passes: true,
      headers: {},
      waitMillis: 0,
    });
    const denied = await verdictOf({ ...degraded, allowed: false, retryAfterMillis: 1_500 });
    expect(denied).toMatchObject({ status: 429, headers: { 'retry-after': '2' } });
  });

  it('to a denial under a limit of 0 has no time to retry: waiting never helps', async () => {
    const never = { ...DENIAL, limit: 0, resetMillis: 0, retryAfterMillis: undefined };
    const denied = await verdictOf(never as unknown as PermitAnswer, { headers: ['x', 'draft'] });
    expect(denied).toMatchObject({ passes: false, status: 429 });
    expect(Object.keys(denied.headers).filter((name) => /retry|reset/.test(name))).toEqual([]);
    expect('body' in denied && JSON.parse(denied.body)).toEqual({
      error: {
        type: 'rate_limit_error',
        message: 'Rate limit exceeded. The limit is 0. Waiting does not help.',
        limit: 0,
        window: '60s',
      },
    });
  });

  it('waits for asynchronous options: user, rule, cost and descriptors', async () => {
    const client = new Answering();
    const terms = { client, rule: () => later('r'), cost: () => later(3) };
    await limitOf({ ...terms, identify: () => later('ada') })({}, FACTS);
    await limitOf({ ...terms, descriptors: { plan: () => later('gold'), none: () => later(null) } })(
      {},
      FACTS,
    );
    expect(client.asked).toMatchObject([
      { userId: 'ada', rule: 'r', cost: 3 },
      { descriptors: { plan: 'gold' }, rule: 'r', cost: 3 },
    ]);
  });

  it('to a grant with a delay waits', async () => {
    expect(await verdictOf({ ...GRANT, waitMillis: 70 })).toMatchObject({ passes: true, waitMillis: 70 });
    // The longest delay of a timer; a longer one would fire at once.
    expect(await verdictOf({ ...GRANT, waitMillis: 1e12 })).toMatchObject({ waitMillis: 2_147_483_647 });
  });
});

describe('the request of the middleware', () => {
  it('has cost, rule and fail mode of the route', async () => {
    const client = new Answering();
    const options = {
      client,
      identify: () => 'ada',
      cost: () => 5,
      rule: () => 'reports',
      failMode: 'open',
    } as const;
    await limitOf(options)({}, FACTS);
    await limitOf({
      client,
      descriptors: { ip: () => '1.2.3.4', user: () => undefined, team: () => null, query: () => '' },
    })({}, FACTS);
    await limitOf({ client, descriptors: { ip: () => '1.2.3.4' }, rule: 'by-ip' })({}, FACTS);
    expect(client.asked).toEqual([
      { userId: 'ada', cost: 5, rule: 'reports', failMode: 'open' },
      { descriptors: { ip: '1.2.3.4', query: '' } },
      { descriptors: { ip: '1.2.3.4' }, rule: 'by-ip' },
    ]);
  });

  it('is not sent for a skipped request', async () => {
    const client = new Answering();
    client.answer = DENIAL;
    const verdict = await limitOf({ client, identify: () => 'ada', skip: async () => true })({}, FACTS);
    expect([verdict.passes, client.asked]).toEqual([true, []]);
  });

  it('in shadow is counted and reported, and every request passes without headers', async () => {
    const denied: PermitAnswer[] = [];
    const shadow = { shadow: true, onDenied: (answer: PermitAnswer) => denied.push(answer) };
    const passes = { passes: true, headers: {}, waitMillis: 0 };
    expect(await verdictOf(DENIAL, shadow)).toEqual(passes);
    expect(await verdictOf(new UnavailableError('no_leader'), shadow)).toEqual(passes);
    expect(await verdictOf(new InvalidRequestError('rule', 'm'), shadow)).toEqual(passes);
    expect(denied).toEqual([DENIAL]);
  });

  it.each<[object, string]>([
    [{ identify: () => 'ada' }, 'client'],
    [{ client: new Answering() }, 'identify'],
    [{ client: new Answering(), identify: () => 'a', descriptors: {} }, 'identify'],
    [{ client: new Answering(), identify: () => 'a', headers: ['y'] }, 'headers'],
  ])('options %# are refused with the name of the option', (options, field) => {
    expect(() => limitOf(options as never)).toThrow(expect.objectContaining({ field }));
  });
});
