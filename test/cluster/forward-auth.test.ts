/**
 * Tests that no node of a real cluster grants to a user whose limit is used up, even while the node starts and does not
 * know the rules yet.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually, TestCluster } from './harness.ts';

const BEFORE = { id: 'default', limit: 1_000_000, windowMillis: 3_600_000, clock: 'cluster' } as const;
const LIMIT = 3;
const WITHOUT_LIMIT = `
rules:
  - { id: generous, match: { tier: gold }, key: tier, windows: { limit: 1000000, per: hour } }
`;
const DOCUMENT = `${WITHOUT_LIMIT}
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

/** Forms of the same request, by path. */
const ASKED: Readonly<Record<string, RequestInit>> = {
  '/v1/forward-auth': { headers: HEADERS },
  '/v1/allow': {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ descriptors: { user: 'ada', ip: '203.0.113.9' } }),
  },
};

/** Returns undefined if the node does not listen. */
async function statusAt(id: number, path = '/v1/forward-auth'): Promise<number | undefined> {
  try {
    const response = await fetch(`http://127.0.0.1:${cluster.port(id)}${path}`, ASKED[path]);
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

/** Repeats the request until node `id` denies it. */
async function expectNoneWhileStarting(id: number): Promise<void> {
  const seen = new Set<number | undefined>();
  for (const path of Object.keys(ASKED))
    await eventually(`node ${id} denies at ${path}`, async () => {
      for (const each of Object.keys(ASKED)) seen.add(await statusAt(id, each));
      return (await statusAt(id, path)) === 429 ? true : undefined;
    });
  // A request that describes itself is invalid where no document is known.
  const refused = [undefined, 400, 429, 503];
  expect([...seen].filter((status) => !refused.includes(status))).toEqual([]);
}

/** Rules that node 3 learns only when it returns, when one of their windows is already full. */
async function changeWhileAway(): Promise<void> {
  await cluster.kill(3);
  await put(DOCUMENT);
  await eventually('the window is full', async () => ((await statusAt(1)) === 429 ? true : undefined));
  cluster.startNode(3);
}

it('a node that was down when a document was applied decides by this document when it returns', async () => {
  await eventually('node 3 grants', async () => ((await statusAt(3)) === 200 ? true : undefined));
  await changeWhileAway();
  await expectNoneWhileStarting(3);
});

it('so does a node that knows an older document without that limit', async () => {
  await cluster.ready();
  await put(WITHOUT_LIMIT);
  await eventually('node 3 grants', async () => ((await statusAt(3)) === 200 ? true : undefined));
  await changeWhileAway();
  await expectNoneWhileStarting(3);
});

it('so do nodes that all return at once', async () => {
  await cluster.ready();
  for (const id of cluster.ids) await cluster.kill(id);
  for (const id of cluster.ids) cluster.startNode(id);
  await Promise.all(cluster.ids.map(expectNoneWhileStarting));
});
