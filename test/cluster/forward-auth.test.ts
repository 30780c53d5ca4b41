/** Who has no room left is let through by no node of a real cluster, also while it starts and has not heard which rules are in force. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually, TestCluster } from './harness.ts';

const BEFORE = { id: 'default', limit: 1_000_000, windowMillis: 3_600_000, clock: 'cluster' } as const;
const LIMIT = 3;
const DOCUMENT = `
rules:
  - { id: generous, match: { tier: gold }, key: tier, windows: { limit: 1000000, per: hour } }
  - { id: user, key: user, windows: { limit: ${LIMIT}, per: hour } }
`;
const HEADERS = {
  'x-user-id': 'ada',
  'x-forwarded-for': '203.0.113.9',
  'x-forwarded-method': 'GET',
  'x-forwarded-uri': '/',
};

let cluster: TestCluster;

beforeAll(async () => {
  const http = { rateLimitHeaders: [], userHeader: 'x-user-id', trustedProxies: ['127.0.0.1'] } as const;
  cluster = await TestCluster.start({ rules: [BEFORE], partitions: 8, http });
});
afterAll(() => cluster.stop());

/** Undefined: nobody listens. */
async function statusAt(id: number): Promise<number | undefined> {
  try {
    const response = await fetch(`http://127.0.0.1:${cluster.port(id)}/v1/forward-auth`, {
      headers: HEADERS,
    });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return undefined;
  }
}

async function put(document: string): Promise<void> {
  await eventually('every partition decides by the document', async () => {
    const url = `http://127.0.0.1:${cluster.port(1)}/v1/rules`;
    const response = await fetch(url, {
      method: 'PUT',
      headers: { 'content-type': 'text/yaml' },
      body: document,
    });
    const { pending } = (await response.json()) as { readonly pending?: readonly number[] };
    return response.status === 200 && (pending ?? []).length === 0 ? true : undefined;
  });
}

/** Asks at every moment until `id` denies as it should. */
async function expectNoneWhileStarting(id: number): Promise<void> {
  const seen = new Set<number | undefined>();
  await eventually(`node ${id} denies`, async () => {
    const status = await statusAt(id);
    seen.add(status);
    return status === 429 ? true : undefined;
  });
  expect([...seen].filter((status) => status !== undefined && status !== 429 && status !== 503)).toEqual([]);
}

it('a node that was away when a document came decides by nothing else when it comes back', async () => {
  await expect.poll(async () => statusAt(3)).toBe(200);
  await cluster.kill(3);
  await put(DOCUMENT);
  await eventually('all of the window is taken', async () =>
    (await statusAt(1)) === 429 ? true : undefined,
  );
  cluster.startNode(3);
  await expectNoneWhileStarting(3);
});

it('nor do nodes that all come back at once', async () => {
  await cluster.ready();
  for (const id of cluster.ids) await cluster.kill(id);
  for (const id of cluster.ids) cluster.startNode(id);
  await Promise.all(cluster.ids.map(expectNoneWhileStarting));
});
