/**
 * Tests the features of rules documents at a real node: tiers, endpoints, customers, priorities, shadow rules, keys of
 * several parts.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TIERS } from '../rules/read.ts';
import { eventually, WAIT_MILLIS_MAX } from './harness.ts';
import { InProcessCluster } from './in-process.ts';

const BEFORE = { id: 'default', limit: 5, windowMillis: 600_000, clock: 'cluster' } as const;
/** Long, so that a slow machine leaves no reservation behind. */
const PATIENT = { requestDeadlineMillis: 10_000 };
const timeout = WAIT_MILLIS_MAX;

interface Body {
  readonly allowed: boolean;
  readonly rule?: string;
  readonly limits?: readonly { readonly rule: string; readonly remaining: number }[];
}

let cluster: InProcessCluster;
let url: string;

beforeAll(async () => {
  cluster = await InProcessCluster.create({ rules: [BEFORE], partitions: 4, nodes: 1, timing: PATIENT });
  await cluster.startAll();
  url = `http://127.0.0.1:${cluster.config.nodes[0]?.http.port}`;
});
afterAll(() => cluster.stop());

async function apply(document: string): Promise<void> {
  await eventually('every partition decides by the document', async () => {
    const headers = { 'content-type': 'text/yaml' };
    const { status } = await fetch(`${url}/v1/rules`, { method: 'PUT', headers, body: document });
    return status === 200 ? true : undefined;
  });
}

let requests = 0;

/** Each request has its own id, so it can be repeated if a busy machine could not decide it in time. */
async function ask(descriptors: Readonly<Record<string, string>>, cost = 1): Promise<Body> {
  requests += 1;
  const request = { descriptors, cost, requestId: `r${requests}` };
  const headers = { 'content-type': 'application/json' };
  let body: Body = { allowed: false };
  const status = async (): Promise<number> => {
    const response = await fetch(`${url}/v1/allow`, {
      method: 'POST',
      headers,
      body: JSON.stringify(request),
    });
    body = (await response.json()) as Body;
    return response.status;
  };
  await expect.poll(status, { timeout }).not.toBe(503);
  return body;
}

async function remaining(key: string, rule: string): Promise<number> {
  return eventually(`the status of ${key}`, async () => {
    const response = await fetch(
      `${url}/v1/keys/${encodeURIComponent(key)}?rule=${encodeURIComponent(rule)}`,
    );
    const { limits } = (await response.json()) as Body;
    return response.status === 503 ? undefined : (limits?.[0]?.remaining ?? -1);
  });
}

describe('002-12: limits by default, tier, endpoint and customer', () => {
  beforeAll(async () => apply(TIERS));

  it('are those of the tier, in all its windows', async () => {
    const free = { customer: 'ada', tier: 'free' };
    expect(await ask(free, 100)).toMatchObject({
      allowed: true,
      limits: [
        { rule: 'tier/free/minute', remaining: 0 },
        { rule: 'tier/free/day', remaining: 9_900 },
      ],
    });
    expect(await ask(free)).toMatchObject({ allowed: false, rule: 'tier/free/minute' });
    expect(await ask({ customer: 'eve', tier: 'pro' }, 1_000)).toMatchObject({ allowed: true });
    const enterprise = { customer: 'joe', tier: 'enterprise' };
    expect(await ask(enterprise, 10_000)).toMatchObject({ allowed: true, rule: 'tier/enterprise/minute' });
    expect(await ask(enterprise)).toMatchObject({ allowed: false, rule: 'tier/enterprise/minute' });
  });

  it('include those of the endpoint, and the strictest decides (002-03, 002-16)', async () => {
    const reports = { customer: 'kim', tier: 'free', endpoint: '/api/v1/reports' };
    expect(await ask(reports, 10)).toMatchObject({ allowed: true, rule: 'endpoint//api/v1/reports/minute' });
    expect(await ask(reports)).toMatchObject({ allowed: false, rule: 'endpoint//api/v1/reports/minute' });
    // The denied request was charged to none of the limits.
    expect(await ask({ customer: 'kim', tier: 'free' })).toMatchObject({
      allowed: true,
      limits: [{ remaining: 89 }, { remaining: 9_989 }],
    });
  });

  it('are those of the customer instead of its tier, with its burst, and otherwise the default', async () => {
    const customer = { customer: 'cust_enterprise_123', tier: 'enterprise' };
    expect(await ask(customer, 1_000)).toMatchObject({
      allowed: true,
      rule: 'customer/cust_enterprise_123/second',
    });
    expect(await ask({ customer: 'nobody', tier: 'gold' }, 200)).toMatchObject({
      allowed: true,
      rule: 'default/second',
    });
  });
});

/** @param isMaintained whether a maintenance rule with the highest priority denies everybody */
function ofOneGroup(isMaintained: boolean): string {
  return `
rules:
  - { id: usual, key: user, windows: { limit: 5, per: hour } }
  - { id: preferred, key: user, priority: 3, windows: { limit: 2, per: hour } }
  - { id: maintenance, key: user, priority: 9, windows: { limit: 0, per: hour }, enabled: ${isMaintained} }
  - { id: trial, key: user, group: trial, windows: { limit: 1, per: hour }, shadow: true }
`;
}

describe('rules of one group', () => {
  it('apply by priority, if they are enabled; one in shadow counts and denies nothing (002-13, 004-14)', async () => {
    await apply(ofOneGroup(false));
    const answers: Body[] = [];
    for (let i = 0; i < 3; i += 1) answers.push(await ask({ user: 'ada' }));
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, false]);
    expect(new Set(answers.map(({ rule }) => rule))).toEqual(new Set(['preferred/hour']));
    await expect.poll(async () => remaining('user=ada', 'trial/hour'), { timeout }).toBe(0);
    await apply(ofOneGroup(true));
    expect(await ask({ user: 'eve' })).toMatchObject({ allowed: false, rule: 'maintenance/hour' });
  });
});

describe('keys that rules make', () => {
  it('combine several attributes, and each key has its own status (001-12, 003-01)', async () => {
    await apply('rules: [{ id: pair, key: [user, region], windows: { limit: 2, per: hour } }]');
    expect(await ask({ user: 'ada', region: 'eu' }, 2)).toMatchObject({ allowed: true });
    expect(await ask({ user: 'ada', region: 'eu' })).toMatchObject({ allowed: false, rule: 'pair/hour' });
    expect(await ask({ user: 'ada', region: 'us' })).toMatchObject({ allowed: true });
    expect(await ask({ user: 'eve', region: 'eu' })).toMatchObject({ allowed: true });
    expect(await remaining('region=us,user=ada', 'pair/hour')).toBe(1);
  });

  it('limit by address a client that switches the API keys of an account (002-19, 002-25)', async () => {
    await apply(`
rules:
  - { id: key, key: apiKey, windows: { limit: 2, per: hour } }
  - { id: network, key: ip/24/64, windows: { limit: 3, per: hour } }
`);
    const answers: Body[] = [];
    for (let i = 0; i < 5; i += 1) answers.push(await ask({ apiKey: `key-${i}`, ip: `10.0.0.${i}` }));
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, true, false, false]);
    expect(answers.at(-1)?.rule).toBe('network/hour');
    expect(await ask({ apiKey: 'key-5', ip: '10.0.1.0' })).toMatchObject({ allowed: true });
  });
});

async function change(method: string, id: string, body?: object): Promise<number> {
  const headers = { 'content-type': 'application/json' };
  const init = body === undefined ? { method } : { method, headers, body: JSON.stringify(body) };
  return (await fetch(`${url}/v1/rules/${encodeURIComponent(id)}`, init)).status;
}

/**
 * Repeats a change. It is made even if the answer says that it is not in force everywhere yet, so the repetition
 * changes nothing.
 */
async function takenOut(id: string): Promise<void> {
  let attempts = 0;
  await eventually('the rule is removed', async () => {
    attempts += 1;
    const status = await change('DELETE', id);
    return status === 200 || (status === 404 && attempts > 1) ? true : undefined;
  });
}

describe('one rule of a document', () => {
  const rule = { key: 'user', windows: { limit: 5, per: 'day' } };

  it('is added, reported, changed without losing its grants, and removed; the others stay (001-10)', async () => {
    await apply(JSON.stringify({ rules: [{ id: 'others', key: 'ip', windows: { limit: 3, per: 'day' } }] }));
    expect(await ask({ user: 'eve' })).toMatchObject({ allowed: true });
    await expect
      .poll(async () => change('PUT', 'of/eve', { ...rule, match: { user: 'eve' } }), { timeout })
      .toBe(200);
    expect(await ask({ user: 'eve' }, 3)).toMatchObject({ allowed: true, rule: 'of/eve/day' });
    const reported = await fetch(`${url}/v1/rules/of%2Feve`);
    const body = (await reported.json()) as { windows: { limit: number }[] };
    expect(body).toMatchObject({ id: 'of/eve', match: { user: 'eve' }, key: ['user'] });
    const lower = { ...body, windows: [{ limit: 4, per: 'day' }] };
    await expect.poll(async () => change('PUT', 'of/eve', lower), { timeout }).toBe(200);
    expect(await ask({ user: 'eve' }, 2)).toMatchObject({ allowed: false });
    expect(await ask({ user: 'eve' }, 1)).toMatchObject({ allowed: true });
    await takenOut('of/eve');
    expect(await ask({ user: 'eve' }, 100)).toMatchObject({ allowed: true });
    expect(await change('DELETE', 'of/eve')).toBe(404);
    expect(await ask({ ip: '10.0.0.1' }, 4)).toMatchObject({ allowed: false });
  });
});
