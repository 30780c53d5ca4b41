/** Changes the rules of a real cluster under load: once a change is answered, nothing is granted by the old rules. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RULE_ID_BYTES_MAX } from '../../src/api/request.ts';
import { RULES_MAX } from '../../src/limiter/rules.ts';
import { type AllowResult, allowAt, eventually, TestCluster, WAIT_MILLIS_MAX } from './harness.ts';

const BEFORE = 100;
const AFTER = 10;
const WINDOW_MILLIS = 3_000;
const USERS = 20;
const CLIENTS = 16;
/** Pause of a client between two requests. The rate does not matter here. */
const PAUSE_MILLIS = 15;

function ruleOf(limit: number): { id: string; limit: number; windowMillis: number; clock: 'cluster' } {
  return { id: 'default', limit, windowMillis: WINDOW_MILLIS, clock: 'cluster' };
}

describe('a change of the rules', () => {
  let cluster: TestCluster;
  let isAsking = true;
  let clients: Promise<void>[] = [];
  const grants = new Map<string, AllowResult[]>();
  let inForce = 0;

  beforeAll(async () => {
    cluster = await TestCluster.start({
      rules: [ruleOf(BEFORE)],
      partitions: 6,
      snapshotEveryBytes: 64 << 10,
    });
    clients = Array.from({ length: CLIENTS }, async (_, client) => askOn(client));
  });
  afterAll(async () => {
    isAsking = false;
    await Promise.all(clients);
    await cluster.stop();
  });

  async function askOn(client: number): Promise<void> {
    for (let i = client; isAsking; i += 1) {
      const userId = `user${i % USERS}`;
      const result = await allowAt(cluster.port(cluster.ids[i % 3] ?? 1), { userId }).catch(() => undefined);
      if (result?.status === 200) grants.set(userId, [...(grants.get(userId) ?? []), result]);
      await delay(PAUSE_MILLIS);
    }
  }

  async function put(limit: number, ifMatch: string, more: readonly object[] = []): Promise<Response> {
    return fetch(`http://127.0.0.1:${cluster.port(2)}/v1/rules`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json', 'if-match': ifMatch },
      body: JSON.stringify({ rules: [ruleOf(limit), ...more] }),
    });
  }

  /** Repeats the change if the leader of group 0 changes meanwhile. */
  async function accepted(more: readonly object[]): Promise<void> {
    await expect
      .poll(async () => (await put(AFTER, '*', more)).status, { timeout: WAIT_MILLIS_MAX })
      .toBeLessThan(300);
  }

  const read = async (id: number): Promise<unknown> =>
    (await fetch(`http://127.0.0.1:${cluster.port(id)}/v1/rules`)).json();

  const grantCount = (): number => [...grants.values()].reduce((sum, { length }) => sum + length, 0);

  it('that lowers a limit applies to all windows once it is answered', async () => {
    await expect.poll(grantCount, { timeout: WAIT_MILLIS_MAX }).toBeGreaterThan(USERS * 40);
    let etag = '';
    let isOpen = false;
    const response = await eventually('a leader of group 0 answers', async () => {
      etag = (await fetch(`http://127.0.0.1:${cluster.port(1)}/v1/rules`)).headers.get('etag') ?? '';
      const answer = await put(AFTER, etag);
      // A change without an answer may have been made, and node 1 may learn of it later. Partitions without a leader
      // may use it later.
      const isAgain = [202, 503].includes(answer.status) || (isOpen && answer.status === 412);
      isOpen ||= isAgain;
      return isAgain ? undefined : answer;
    });
    const sinceMillis = performance.now();
    inForce = Number(etag.replaceAll('"', '')) + 1;
    expect([response.status, await response.json()]).toEqual([200, { version: inForce, pending: [] }]);
    const countThen = grantCount();
    await expect.poll(grantCount, { timeout: WAIT_MILLIS_MAX }).toBeGreaterThan(countThen + USERS * AFTER);
    for (const [user, seen] of grants) {
      for (const { invokeMillis, completeMillis } of seen) {
        if (invokeMillis < sinceMillis) continue;
        // Grants that were certainly made before this one and in the window that ends with it.
        const inWindow = seen.filter(
          (other) =>
            other.invokeMillis > completeMillis - WINDOW_MILLIS && other.completeMillis < invokeMillis,
        );
        expect([user, inWindow.length < AFTER]).toEqual([user, true]);
      }
    }
    const late = await eventually('a leader of group 0 answers', async () => {
      const { status } = await put(BEFORE, etag);
      return status === 503 ? undefined : status;
    });
    expect(late).toBe(412);
  });

  it('survives a restart of all nodes, whose files have other rules', async () => {
    for (const id of cluster.ids) await cluster.kill(id);
    for (const id of cluster.ids) cluster.startNode(id);
    await cluster.ready();
    // A node that lagged behind when it was killed learns the rules from the others.
    await expect
      .poll(() => read(3), { timeout: WAIT_MILLIS_MAX })
      .toMatchObject({ version: inForce, rules: [{ limit: AFTER }] });
  });

  it('may contain the maximum number of rules, which then come in a snapshot', async () => {
    const more = Array.from({ length: RULES_MAX - 1 }, (_, i) => ({
      ...ruleOf(AFTER),
      id: String(i).padEnd(RULE_ID_BYTES_MAX, '\u0001'),
    }));
    // More than the log of group 0 may hold, so every node takes a snapshot of it.
    await accepted(more);
    for (const id of cluster.ids)
      await expect
        .poll(() => read(id), { timeout: WAIT_MILLIS_MAX })
        .toMatchObject({ rules: { length: RULES_MAX } });
    await accepted([]);
    for (const id of cluster.ids)
      await expect.poll(() => read(id), { timeout: WAIT_MILLIS_MAX }).toMatchObject({ rules: { length: 1 } });
  });
});
