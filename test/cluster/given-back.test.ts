/** Tests that a request denied by one limit leaves no charge under the others, even with many requests. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually, putDocument, TestCluster } from './harness.ts';

const BEFORE = { id: 'default', limit: 100, windowMillis: 3_600_000, clock: 'cluster' } as const;
const SHARED_LIMIT = 100_000;
const DOCUMENT = `
rules:
  - { id: per-user, key: user, windows: { limit: 1, per: hour } }
  - { id: all, windows: { limit: ${SHARED_LIMIT}, per: day } }
  - { id: minute, windows: { limit: ${SHARED_LIMIT}, per: minute } }
`;
const USERS = Array.from({ length: 8 }, (_, i) => `user${i}`);
const DENIED = 1_000;
/** Long, so that a slow machine decides all requests. */
const PATIENT = { requestDeadlineMillis: 10_000 };

interface Result {
  readonly allowed: boolean;
  readonly proposed?: boolean;
}

let cluster: TestCluster;

beforeAll(async () => {
  cluster = await TestCluster.start({ rules: [BEFORE], partitions: 8, timing: PATIENT });
  await putDocument(
    cluster.ids.map((id) => cluster.port(id)),
    DOCUMENT,
  );
});
afterAll(async () => {
  await cluster.stop();
});

async function post(id: number, path: string, body: unknown): Promise<Response> {
  return fetch(`http://127.0.0.1:${cluster.port(id)}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

async function charged(): Promise<number | undefined> {
  const response = await fetch(`http://127.0.0.1:${cluster.port(1)}/v1/keys/*?rule=all`);
  const { limits } = (await response.json()) as { limits?: readonly { remaining: number }[] };
  return limits?.[0] && SHARED_LIMIT - limits[0].remaining;
}

it('gives back the reservations of a batch of a thousand denied requests, at every node', async () => {
  for (const userId of USERS)
    await eventually(`a grant of ${userId}`, async () => {
      const { status } = await post(1, '/v1/allow', { userId, requestId: `of ${userId}` });
      return status === 200 ? true : undefined;
    });
  expect(await charged()).toBe(USERS.length);
  const requests = Array.from({ length: DENIED }, (_, i) => ({ userId: USERS[i % USERS.length] }));
  const answers = await Promise.all(
    cluster.ids.map(async (id) => (await post(id, '/v1/allow/batch', { requests })).json()),
  );
  const results = (answers as { answers: Result[] }[]).flatMap((answer) => answer.answers);
  expect(results).toHaveLength(DENIED * cluster.ids.length);
  expect(results.some(({ allowed }) => allowed)).toBe(false);
  // A request that may have been granted is not given back.
  const undecided = results.filter(({ proposed }) => proposed === true).length;
  await eventually('all reservations are given back', async () => {
    const left = await charged();
    return left !== undefined && left <= USERS.length + undecided ? true : undefined;
  });
});

it('denies no other user because of a denied request, even if its timestamp is far in the future', async () => {
  const aheadMillis = Date.now() + 58_000;
  for (const id of cluster.ids) {
    const denied = await post(id, '/v1/allow', { userId: USERS[0], timestampMillis: aheadMillis });
    expect(denied.status).toBe(429);
  }
  await eventually('others are granted', async () => {
    const { status } = await post(1, '/v1/allow', { userId: 'other', requestId: 'of other' });
    return status === 200 ? true : undefined;
  });
  expect(Date.now(), 'before the cluster has reached that time').toBeLessThan(aheadMillis);
});
