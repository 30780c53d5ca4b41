/** Tests a real cluster with a rules document: it finds the limits of a request and decides all of them together. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, putDocument, TestCluster, WAIT_MILLIS_MAX } from './harness.ts';

const BEFORE = { id: 'default', limit: 100, windowMillis: 60_000, clock: 'cluster' } as const;
const LIMIT = 30;
const NETWORK_LIMIT = 45;
const CLIENTS = 9;
/** Long, so that a slow machine leaves no reservation behind. */
const PATIENT = { requestDeadlineMillis: 10_000 };
const DOCUMENT = `
rules:
  - id: user
    key: user
    windows: [{ limit: ${LIMIT}, per: hour }, { limit: 1000, per: day }]
  - id: network
    key: ip/24/64
    windows: { limit: ${NETWORK_LIMIT}, per: hour }
  - id: dear
    match: { endpoint: /dear }
    key: user
    group: dear
    windows: { limit: 10, per: hour }
    cost: 4
`;

interface Body {
  readonly allowed: boolean;
  readonly rule?: string;
  readonly unlimited?: boolean;
  readonly limits?: readonly { readonly rule: string; readonly remaining: number }[];
  readonly error?: { readonly field?: string; readonly message?: string };
}

describe('a cluster with a document of rules', () => {
  let cluster: TestCluster;
  /** Version of the document. On a busy machine applying it may take several attempts. */
  let version = 0;

  beforeAll(async () => {
    cluster = await TestCluster.start({ rules: [BEFORE], partitions: 8, timing: PATIENT });
  });
  afterAll(async () => {
    await cluster.stop();
  });

  function url(id: number, path: string): string {
    return `http://127.0.0.1:${cluster.port(id)}${path}`;
  }

  async function put(document: string): Promise<Response> {
    return fetch(url(2, '/v1/rules'), {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ document }),
    });
  }

  /**
   * Repeats a request while no node can decide. A request that counts has an id, because an unanswered attempt may
   * have counted.
   */
  async function ask(i: number, body: unknown): Promise<{ readonly status: number; readonly body: Body }> {
    const id = cluster.ids[i % cluster.ids.length] ?? 1;
    let status = 503;
    let answered: Body = { allowed: false };
    await expect
      .poll(
        async () => {
          const response = await fetch(url(id, '/v1/allow'), {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(body),
          });
          answered = (await response.json()) as Body;
          return (status = response.status);
        },
        { timeout: WAIT_MILLIS_MAX, interval: 20 },
      )
      .not.toBe(503);
    return { status, body: answered };
  }

  async function remaining(key: string, rule: string): Promise<number> {
    return eventually(`the status of ${key}`, async () => {
      const response = await fetch(
        url(1, `/v1/keys/${encodeURIComponent(key)}?rule=${encodeURIComponent(rule)}`),
      );
      const { limits } = (await response.json()) as Body;
      return response.status === 503 ? undefined : (limits?.[0]?.remaining ?? -1);
    });
  }

  /** Sums the charges. The reservations of a denied request are given back after its answer. */
  async function charged(limit: number, rule: string, keys: readonly string[]): Promise<number> {
    const left = await Promise.all(keys.map((key) => remaining(key, rule)));
    return left.reduce((sum, one) => sum + limit - one, 0);
  }

  it('reports its definitions, and the limits that the limiter keeps for them', async () => {
    version = await putDocument(
      [2, 1, 3].map((id) => cluster.port(id)),
      DOCUMENT,
    );
    const reported: unknown = await (await fetch(url(3, '/v1/rules'))).json();
    expect(reported).toMatchObject({
      rules: [{ id: 'user/hour' }, { id: 'user/day' }, { id: 'network/hour' }, { id: 'dear/hour' }],
      definitions: [{ id: 'user' }, { id: 'network' }, { id: 'dear' }],
    });
  });

  it('grants under all limits or charges none of them, at every node and for every client', async () => {
    const answers: Awaited<ReturnType<typeof ask>>[] = [];
    const clients = Array.from({ length: CLIENTS }, async (_, client) => {
      for (let i = client; i < 2 * NETWORK_LIMIT; i += CLIENTS) {
        const descriptors = { user: i % 5 === 0 ? 'user1' : 'user0', ip: `10.1.0.${i % 7}` };
        answers.push(await ask(i, { descriptors, requestId: `r${i}` }));
      }
    });
    await Promise.all(clients);
    const granted = answers.filter(({ status }) => status === 200);
    // Reservations that are given back a moment later may deny others, so there may be fewer grants, but never more.
    expect(granted.length).toBeLessThanOrEqual(NETWORK_LIMIT);
    expect(granted.length).toBeGreaterThan(LIMIT - CLIENTS);
    expect(granted[0]?.body.limits?.map(({ rule }) => rule)).toEqual([
      'user/hour',
      'user/day',
      'network/hour',
    ]);
    const denied = answers.filter(({ status }) => status !== 200);
    expect(new Set(denied.map(({ status }) => status))).toEqual(new Set([429]));
    // After all refunds, each limit has charged exactly the grants.
    const timeout = WAIT_MILLIS_MAX;
    await expect
      .poll(async () => charged(NETWORK_LIMIT, 'network/hour', ['ip/24/64=10.1.0.0']), { timeout })
      .toBe(granted.length);
    await expect
      .poll(async () => charged(LIMIT, 'user', ['user=user0', 'user=user1']), { timeout })
      .toBe(granted.length);
    await expect.poll(released, { timeout }).toBeGreaterThan(0);
  });

  /** Reservations that were given back, by all nodes. */
  async function released(): Promise<number> {
    const metrics = await Promise.all(
      cluster.ids.map(async (id) => (await fetch(url(id, '/metrics'))).text()),
    );
    const counts = metrics.map((text) =>
      Number(/^quorate_reservations_released_total (\d+)$/m.exec(text)?.[1]),
    );
    return counts.reduce((a, b) => a + b, 0);
  }

  it('multiplies the cost of an endpoint, and denies by the rule that binds', async () => {
    const dear = { descriptors: { endpoint: '/dear' }, userId: 'eve' };
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push(await ask(i, { ...dear, requestId: `dear${i}` }));
    expect(statuses.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(statuses[2]?.body.rule).toBe('dear/hour');
    await expect
      .poll(async () => remaining('user=eve', 'user'), { timeout: WAIT_MILLIS_MAX })
      .toBe(LIMIT - 2);
  });

  it('grants requests that no rule limits', async () => {
    expect(await ask(1, { descriptors: { tenant: 'acme' } })).toEqual({
      status: 200,
      body: { allowed: true, unlimited: true, rulesVersion: version },
    });
  });

  it('refunds by descriptors the grants of the first limit, and reports the grants that the other limits keep', async () => {
    const descriptors = { ip: '10.8.0.1' };
    const asked = { descriptors, userId: 'amy', requestId: 'back' };
    const granted = await ask(0, asked);
    expect(granted).toMatchObject({ status: 200, body: { rulesVersion: version } });
    // The refund happens once, and a repeated request gets the same answer.
    const response = await eventually('a refund', async () => {
      const answered = await fetch(url(2, '/v1/refunds'), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(asked),
      });
      return answered.status === 503 ? undefined : answered;
    });
    const reported = (await response.json()) as { readonly kept: readonly { readonly rule: string }[] };
    expect([response.status, reported]).toMatchObject([200, { refunded: true, rulesVersion: version }]);
    // The keys whose grants were refunded have room again.
    const kept = reported.kept.map(({ rule }) => rule);
    expect(await remaining('user=amy', 'user')).toBe(LIMIT);
    const ofNetwork = await remaining('ip/24/64=10.8.0.0', 'network/hour');
    expect(ofNetwork).toBe(kept.includes('network/hour') ? NETWORK_LIMIT - 1 : NETWORK_LIMIT);
    expect(kept.filter((rule) => rule !== 'network/hour')).toEqual([]);
    expect(await ask(1, asked)).toMatchObject({ status: 422 });
  });

  it('answers a repeated id with the same answer and charges it once', async () => {
    const body = { descriptors: { user: 'zoe' }, requestId: 'same' };
    const first = await ask(0, body);
    expect(first.status).toBe(200);
    expect(await ask(1, body)).toEqual(first);
    expect(await remaining('user=zoe', 'user')).toBe(LIMIT - 1);
    expect(await ask(2, { ...body, descriptors: { user: 'zoe', ip: '10.9.0.1' } })).toMatchObject({
      status: 422,
    });
  });

  it('decides by new rules from the moment that their change is answered', async () => {
    const lowered = DOCUMENT.replace(`limit: ${LIMIT}`, 'limit: 2').replace('ip/24/64', 'ip');
    // 202: some partition still decides by the others.
    await expect.poll(async () => (await put(lowered)).status, { timeout: WAIT_MILLIS_MAX }).toBe(200);
    const descriptors = { user: 'kim', ip: '10.8.0.1' };
    const answers = await Promise.all(
      [0, 1, 2].map(async (i) => ask(i, { descriptors, requestId: `lowered${i}` })),
    );
    expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(2);
    expect(await remaining('ip=10.8.0.1', 'network/hour')).toBeLessThan(NETWORK_LIMIT);
  });

  it('refuses a wrong document, names the position of the mistake, and changes nothing', async () => {
    const response = await put('rules:\n  - { id: a, key: user, windows: { limit: -1, per: minute } }\n');
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as Body;
    expect(error?.field).toBe('document');
    expect(error?.message).toMatch(/^2:\d+: /);
    expect((await ask(0, { descriptors: { user: 'lea' } })).status).toBe(200);
  });
});
