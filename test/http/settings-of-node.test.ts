/** A node opens its HTTP listener with the settings of its configuration. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';

let cluster: InProcessCluster;

beforeAll(async () => {
  cluster = await InProcessCluster.create({
    rules: [{ id: 'default', limit: 5, windowMillis: 600_000, clock: 'cluster' }],
    nodes: 1,
    partitions: 1,
    http: { rateLimitHeaders: ['draft6'], userHeader: 'x-user-id' },
  });
  await cluster.startAll();
});

afterAll(() => cluster.stop());

async function ask(user: string, body: object): Promise<Response> {
  const port = cluster.config.nodes[0]?.http.port ?? 0;
  const headers = { 'content-type': 'application/json', 'x-user-id': user };
  return fetch(`http://127.0.0.1:${port}/v1/allow`, { method: 'POST', headers, body: JSON.stringify(body) });
}

it('a node uses the rate limit headers and the user header of cluster.json', async () => {
  const granted = await eventually('there is a leader', async () => {
    const response = await ask('ada', {});
    return response.status === 200 ? response : undefined;
  });
  expect(granted.headers.get('ratelimit-limit')).toBe('5');
  expect(granted.headers.get('ratelimit-policy')).toBe('5;w=600');
  expect(granted.headers.has('ratelimit')).toBe(false);
  expect(granted.headers.has('x-ratelimit-limit')).toBe(false);
  expect((await ask('ada', { userId: 'bob' })).status).toBe(400);
});
