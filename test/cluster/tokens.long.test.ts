/**
 * Kills nodes at random moments while tokens are created and revoked: repetition succeeds, and no node accepts a
 * revoked token.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, TestCluster } from './harness.ts';

/** The latest kill after a request: most changes are complete by then, so most kills hit a change under way. */
const KILL_MILLIS_MAX = 60;
const ROUNDS = [
  { asked: 1, victim: 1 },
  { asked: 1, victim: 2 },
  { asked: 2, victim: 3 },
  { asked: 3, victim: 3 },
  { asked: 3, victim: 1 },
];

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** No answer came, or the answer does not say whether the change was made. */
const LOST = { status: 0, body: {} } as const;

/** Repeats a request like an operator who got no answer or was asked to retry. */
async function repeated(asking: () => Promise<Answer>): Promise<Answer> {
  return eventually('it is answered', async () => {
    const answer = await asking();
    return answer.status === 0 || answer.status === 503 ? undefined : answer;
  });
}

describe('tokens that are changed while nodes are killed', () => {
  let cluster: TestCluster;
  let admin = '';

  beforeAll(async () => {
    cluster = await TestCluster.start({
      rules: [{ id: 'default', limit: 1_000, windowMillis: 60_000, clock: 'cluster' }],
      partitions: 2,
    });
    const made = await repeated(async () => ask(1, 'POST', '/v1/tokens', { role: 'admin', name: 'first' }));
    admin = String(made.body['token']);
  });
  afterAll(async () => cluster.stop());

  async function ask(
    node: number,
    method: string,
    path: string,
    body?: unknown,
    token = admin,
  ): Promise<Answer> {
    try {
      const response = await fetch(`http://127.0.0.1:${cluster.port(node)}${path}`, {
        method,
        headers: {
          ...(token !== '' && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: (await response.json()) as Answer['body'] };
    } catch {
      return LOST;
    }
  }

  /**
   * Kills `victim` during the change and starts it again. Returns the answer to the first attempt or, if none came, to a
   * later one.
   */
  async function whileKilled(
    { asked, victim }: (typeof ROUNDS)[number],
    asking: (node: number) => Promise<Answer>,
  ): Promise<Answer> {
    const killMillis = Math.random() * KILL_MILLIS_MAX;
    console.log(`node ${victim} is killed ${killMillis.toFixed(1)} ms after node ${asked} was asked`);
    const first = asking(asked);
    await delay(killMillis);
    await cluster.kill(victim);
    cluster.startNode(victim);
    const { status } = await first;
    const answer = status === 0 || status === 503 ? await repeated(async () => asking(asked)) : await first;
    for (const id of cluster.ids)
      await eventually(`node ${id} is ready`, async () =>
        (await ask(id, 'GET', '/readyz', undefined, '')).status === 200 ? true : undefined,
      );
    return answer;
  }

  async function statusesOf(token: string): Promise<number[]> {
    const asked = cluster.ids.map(async (id) => ask(id, 'POST', '/v1/allow', { userId: `u${id}` }, token));
    return (await Promise.all(asked)).map(({ status }) => status);
  }

  it('are valid everywhere once their creation is answered, and invalid for good once their revocation is answered', async () => {
    const revoked: string[] = [];
    for (const [i, round] of ROUNDS.entries()) {
      const name = `gateway ${i}`;
      const made = await whileKilled(round, async (node) =>
        ask(node, 'POST', '/v1/tokens', { role: 'decide', name }),
      );
      expect([201, 202]).toContain(made.status);
      const token = String(made.body['token']);
      await eventually('all nodes accept the token', async () =>
        (await statusesOf(token)).every((status) => status === 200) ? true : undefined,
      );
      // An unanswered attempt may have created a token, too. No client knows its secret, but it is listed and can be
      // revoked.
      const listed = await repeated(async () => ask(2, 'GET', '/v1/tokens'));
      const all = listed.body['tokens'] as readonly { readonly id: string; readonly name: string }[];
      const ids = all.filter((each) => each.name === name).map(({ id }) => id);
      expect(ids).toContain(String(made.body['id']));
      for (const id of ids) {
        const { status } = await whileKilled(round, async (node) => ask(node, 'DELETE', `/v1/tokens/${id}`));
        // 202: the killed node does not know it yet; 404: an earlier attempt revoked it.
        expect([200, 202, 404]).toContain(status);
      }
      await eventually('all nodes know that it is revoked', async () =>
        (await statusesOf(token)).every((status) => status === 401) ? true : undefined,
      );
      revoked.push(token);
      // So must nodes that were killed since and have just started.
      for (const each of revoked) expect(await statusesOf(each)).not.toContain(200);
    }
    expect(await statusesOf(admin)).toEqual([200, 200, 200]);
  });
});
