/**
 * Tests customer records in a real cluster: every node applies a change once it is answered, and records survive the
 * loss of nodes.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, putDocument, documentAtAll } from './harness.ts';
import { InProcessCluster } from './in-process.ts';

const BEFORE = { id: 'default', limit: 100, windowMillis: 60_000, clock: 'cluster' } as const;
const NODES = [1, 2, 3];
/**
 * The network is counted in another partition than most customers; endpoints are in no partition of a customer's own.
 */
const DOCUMENT = `
rules:
  - { id: free, match: { tier: free }, key: customer, group: tier, windows: { limit: 5, per: day } }
  - { id: pro, match: { tier: pro }, key: customer, group: tier, windows: { limit: 50, per: day } }
  - { id: other, key: customer, group: tier, windows: { limit: 100, per: day } }
  - { id: net, key: ip, windows: { limit: 100000, per: day } }
`;

interface Answered {
  readonly status: number;
  readonly etag: string | null;
  readonly body: {
    readonly allowed?: boolean;
    readonly blocked?: boolean;
    readonly blockedUntilMillis?: number;
    readonly retryAfterMillis?: number;
    readonly version?: number;
    readonly tier?: string;
    readonly rule?: string;
    readonly proposed?: boolean;
    readonly limits?: readonly { readonly rule: string; readonly limit: number }[];
    readonly error?: { readonly type: string; readonly field?: string };
  };
}

let cluster: InProcessCluster;
let version = 0;

const ports = (): number[] => cluster.config.nodes.map(({ http }) => http.port);

async function call(
  node: number,
  method: string,
  path: string,
  body?: unknown,
  ifMatch?: string,
): Promise<Answered> {
  const port = cluster.config.nodes.find(({ id }) => id === node)?.http.port;
  const headers = {
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(ifMatch !== undefined && { 'if-match': ifMatch }),
  };
  const payload = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers, ...payload });
  const answered = (await response.json()) as Answered['body'];
  return { status: response.status, etag: response.headers.get('etag'), body: answered };
}

/** Repeats a request until it is decided. Its changes are safe to repeat. */
async function say(
  node: number,
  method: string,
  path: string,
  body?: unknown,
  ifMatch?: string,
): Promise<Answered> {
  return eventually(`${method} ${path} is answered`, async () => {
    const answered = await call(node, method, path, body, ifMatch);
    return answered.status === 503 ? undefined : answered;
  });
}

let requests = 0;

/** Sends a request with its own id, so that it can be repeated. */
async function allow(node: number, descriptors: Readonly<Record<string, string>>): Promise<Answered> {
  requests += 1;
  const requestId = `r${requests}`;
  return say(node, 'POST', '/v1/allow', { descriptors, requestId });
}

/** How many of `count` requests are granted, asked at all nodes at once. */
async function grantsOf(customer: string, count: number): Promise<number> {
  const answers = await Promise.all(
    Array.from({ length: count }, async (_, i) =>
      allow(cluster.running[i % cluster.running.length] ?? 1, { customer, ip: '10.0.0.1' }),
    ),
  );
  return answers.filter(({ body }) => body.allowed).length;
}

beforeAll(async () => {
  cluster = await InProcessCluster.create({
    rules: [BEFORE],
    partitions: 4,
    nodes: NODES.length,
    timing: { requestDeadlineMillis: 10_000 },
  });
  await cluster.startAll();
  version = await putDocument(ports(), DOCUMENT);
});
afterAll(() => cluster.stop());

describe('a tier', () => {
  it('decides at every node once its change is answered, and overrides a tier in the request', async () => {
    for (const node of NODES)
      expect((await allow(node, { customer: 'ada', tier: 'pro' })).body.rule).toBe('pro/day');
    expect((await say(1, 'PUT', '/v1/customers/ada', { tier: 'free' })).status).toBe(200);
    for (const node of NODES)
      expect((await allow(node, { customer: 'ada', tier: 'pro' })).body).toMatchObject({
        allowed: true,
        rule: 'free/day',
      });
    expect(await grantsOf('ada', 9)).toBe(2);
    expect(await say(3, 'GET', '/v1/customers/ada')).toMatchObject({ status: 200, body: { tier: 'free' } });
  });

  it('is changed only if the request names its current version', async () => {
    const { etag, changed } = await eventually(
      'a change for a version whose request got an answer',
      async () => {
        const first = await say(1, 'PUT', '/v1/customers/joe', { tier: 'pro' });
        const second = await call(2, 'PUT', '/v1/customers/joe', { tier: 'free' }, first.etag ?? '');
        // The change may have been made nevertheless. Then the version has changed, and the next attempt reads it
        // again.
        return second.status === 503 ? undefined : { etag: first.etag ?? '', changed: second };
      },
    );
    expect(changed.status).toBe(200);
    expect(await say(3, 'PUT', '/v1/customers/joe', { tier: 'gold' }, etag)).toMatchObject({
      status: 412,
      body: { tier: 'free', error: { type: 'version_mismatch' } },
    });
    expect((await say(2, 'DELETE', '/v1/customers/joe')).status).toBe(200);
    expect((await say(1, 'GET', '/v1/customers/joe')).status).toBe(404);
  });
});

describe('a block', () => {
  it('denies all requests of a customer at every node, from the answer on, until it is removed', async () => {
    for (const node of NODES) expect((await allow(node, { customer: 'eve' })).status).toBe(200);
    await say(2, 'PUT', '/v1/customers/eve', { blocked: true });
    for (const node of NODES) {
      expect(await allow(node, { customer: 'eve', ip: '10.0.0.2' })).toMatchObject({
        status: 403,
        body: { allowed: false, blocked: true, error: { type: 'blocked' } },
      });
    }
    await say(3, 'PUT', '/v1/customers/eve', { blocked: false });
    for (const node of NODES) expect((await allow(node, { customer: 'eve' })).status).toBe(200);
  });

  it('ends by itself at every node, and the denial reports its end', async () => {
    await say(2, 'PUT', '/v1/customers/ed', { blocked: true, durationMillis: 60_000 });
    const blocked = await say(1, 'PUT', '/v1/keys/customer=ed/block', { durationMillis: 8_000 });
    for (const node of NODES) {
      const { status, body } = await allow(node, { customer: 'ed', ip: '10.0.0.3' });
      expect([status, body.blocked]).toEqual([403, true]);
      expect(body.retryAfterMillis).toBeLessThanOrEqual(8_000);
    }
    for (const node of NODES)
      await eventually(`node ${node} grants`, async () =>
        (await allow(node, { customer: 'ed', ip: '10.0.0.3' })).status === 200 ? true : undefined,
      );
    const { body } = await call(3, 'GET', '/v1/customers/ed');
    expect(body).toMatchObject({ version: blocked.body.version, blocked: false });
    expect(body.blockedUntilMillis).toBeUndefined();
  });

  it('is also possible for a key that any rule counts by', async () => {
    await say(1, 'PUT', `/v1/keys/${encodeURIComponent('ip=10.9.9.9')}/block`);
    for (const node of NODES) expect((await allow(node, { ip: '10.9.9.9' })).status).toBe(403);
    await say(1, 'DELETE', `/v1/keys/${encodeURIComponent('ip=10.9.9.9')}/block`);
    expect((await allow(2, { ip: '10.9.9.9' })).status).toBe(200);
  });
});

describe('a limit for one customer', () => {
  it('binds at once when it is lowered under load', async () => {
    let granted = 0;
    let isLowered = false;
    let grantedAfter = 0;
    const client = async (node: number): Promise<void> => {
      for (let after = 0; after < 8; after += isLowered ? 1 : 0) {
        const cameAfter = isLowered;
        const { body } = await allow(node, { customer: 'kim', ip: `10.0.1.${node}` });
        if (body.allowed) granted += 1;
        if (body.allowed && cameAfter) grantedAfter += 1;
      }
    };
    const clients = [...NODES, ...NODES].map(client);
    await eventually('some are granted', () => (granted >= 12 ? true : undefined));
    const overrides = [{ rule: 'other/day', limit: 10 }];
    expect((await say(1, 'PUT', '/v1/customers/kim', { overrides })).status).toBe(200);
    isLowered = true;
    await Promise.all(clients);
    expect(grantedAfter).toBe(0);
  });

  it('is refused for a rule that counts by something else', async () => {
    expect(
      await say(1, 'PUT', '/v1/customers/kim', { overrides: [{ rule: 'net/day', limit: 10 }] }),
    ).toMatchObject({
      status: 400,
      body: { error: { field: 'overrides[0].rule' } },
    });
  });
});

describe('a reset', () => {
  it('forgets the grants of a customer', async () => {
    await say(1, 'PUT', '/v1/customers/max', { tier: 'free' });
    expect(await grantsOf('max', 9)).toBe(5);
    expect((await say(2, 'POST', `/v1/keys/${encodeURIComponent('customer=max')}/reset`)).status).toBe(200);
    expect(await grantsOf('max', 9)).toBe(5);
  });
});

describe('a customer record', () => {
  it('survives the loss of its leader and a restart of every node', async () => {
    await say(1, 'PUT', '/v1/customers/ida', { tier: 'free', overrides: [{ rule: 'free/day', limit: 3 }] });
    await say(1, 'PUT', '/v1/customers/bad', { blocked: true });
    expect(await grantsOf('ida', 2)).toBe(2);
    const leader = await eventually(
      'there is a leader',
      () => cluster.leaderOf(1, 'customer=ida') || undefined,
    );
    await cluster.stopNode(leader);
    expect(await grantsOf('ida', 4)).toBe(1);
    for (const node of cluster.running) expect((await allow(node, { customer: 'bad' })).status).toBe(403);
    for (const node of cluster.running) await cluster.stopNode(node);
    for (const node of NODES) await cluster.startNode(node);
    await cluster.ready();
    await documentAtAll(ports(), version);
    expect(await grantsOf('ida', 4)).toBe(0);
    for (const node of NODES) expect((await allow(node, { customer: 'bad' })).status).toBe(403);
    expect(cluster.fatalErrors).toEqual([]);
  });
});
