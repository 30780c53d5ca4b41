/**
 * Tests tokens of a real cluster: one node creates them, all accept them, a revocation counts everywhere once answered.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from './harness.ts';
import { InProcessCluster } from './in-process.ts';

/** Long election timeouts: an election during the creation of a token would lose its secret. */
const PATIENT = { heartbeatMillis: 100, electionMillis: 2_000, requestDeadlineMillis: 10_000 };

let cluster: InProcessCluster;
beforeAll(async () => {
  cluster = await InProcessCluster.create({
    partitions: 2,
    rules: [{ id: 'default', limit: 100, windowMillis: 60_000, clock: 'cluster' }],
    timing: PATIENT,
  });
  await cluster.startAll();
});
afterAll(async () => cluster.stop());

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

async function ask(node: number, route: string, token?: string, body?: unknown): Promise<Answer> {
  const [method = '', path = ''] = route.split(' ');
  const address = cluster.config.nodes.find(({ id }) => id === node)?.http;
  const response = await fetch(`http://127.0.0.1:${address?.port}${path}`, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Answer['body'] };
}

/** Repeats a request until it is decided, because a busy machine may elect leaders at any time. */
async function answered(...asked: Parameters<typeof ask>): Promise<Answer> {
  return eventually(`${asked[1]} is answered`, async () => {
    const answer = await ask(...asked);
    return answer.status === 503 ? undefined : answer;
  });
}

async function create(node: number, role: string, token?: string): Promise<{ id: string; token: string }> {
  const made = await eventually(`a token of role ${role}`, async () => {
    const { status, body } = await ask(node, 'POST /v1/tokens', token, { role, name: role });
    if (status === 201) return body;
    // A follower may not know its leader yet.
    expect(status).toBe(503);
    return undefined;
  });
  expect(made['pending']).toEqual([]);
  return { id: String(made['id']), token: String(made['token']) };
}

async function statuses(route: string, token?: string): Promise<number[]> {
  return Promise.all([1, 2, 3].map(async (node) => (await ask(node, route, token)).status));
}

describe('tokens of a cluster', () => {
  let admin = { id: '', token: '' };
  let reader = { id: '', token: '' };

  it('close the cluster when the first one of role admin is created, at every node before the answer', async () => {
    reader = await create(2, 'read');
    expect(await statuses('GET /v1/cluster')).toEqual([200, 200, 200]);
    admin = await create(1, 'admin');
    expect(await statuses('GET /v1/cluster')).toEqual([401, 401, 401]);
    expect(await statuses('GET /v1/cluster', reader.token)).toEqual([200, 200, 200]);
    expect(await statuses('GET /v1/tokens', reader.token)).toEqual([403, 403, 403]);
  });

  it('are valid at once at the other nodes, and nowhere after their revocation', async () => {
    const gateway = await create(3, 'decide', admin.token);
    for (const node of [1, 2, 3]) {
      const body = { userId: `ada${node}` };
      expect((await answered(node, 'POST /v1/allow', gateway.token, body)).status).toBe(200);
    }
    const revoked = await answered(2, `DELETE /v1/tokens/${gateway.id}`, admin.token);
    expect(revoked.body['pending']).toEqual([]);
    for (const node of [1, 2, 3])
      expect((await ask(node, 'POST /v1/allow', gateway.token, { userId: 'ada' })).status).toBe(401);
  });

  it('never appear with their secrets', async () => {
    const { body } = await answered(1, 'GET /v1/tokens', admin.token);
    expect(body['tokens']).toHaveLength(2);
    const state = JSON.stringify(cluster.node(1).core.meta.state);
    const reported = JSON.stringify([body, (await ask(1, 'GET /v1/cluster', reader.token)).body]);
    for (const { token } of [admin, reader]) {
      expect(state).not.toContain(token.slice(12));
      expect(reported).not.toContain(token.slice(12));
    }
    expect(reported).not.toMatch(/[0-9a-f]{64}/);
  });

  it('are never forgotten: a node that starts alone accepts no request before it knows them', async () => {
    for (const id of [1, 2, 3]) await cluster.stopNode(id);
    await cluster.startNode(3);
    const { status } = await ask(3, 'GET /v1/cluster');
    expect([401, 503]).toContain(status);
    await cluster.startNode(1);
    await cluster.startNode(2);
    await cluster.ready();
    await eventually('all nodes know the tokens', async () =>
      (await statuses('GET /v1/cluster', reader.token)).every((each) => each === 200) ? true : undefined,
    );
    expect(await statuses('GET /v1/cluster')).toEqual([401, 401, 401]);
  });

  it('keep the last one of role admin, unless the cluster may be open again', async () => {
    const route = `DELETE /v1/tokens/${admin.id}`;
    const refused = await answered(1, route, admin.token);
    expect(refused).toMatchObject({ status: 409, body: { reason: 'lastAdmin' } });
    expect(await statuses('GET /v1/cluster')).toEqual([401, 401, 401]);
    expect((await answered(1, `${route}?open=true`, admin.token)).status).toBe(200);
    expect(await statuses('GET /v1/cluster')).toEqual([200, 200, 200]);
  });
});
