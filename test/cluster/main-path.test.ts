/** Tests the main path with three real nodes: limits, retries, the spread of leaders, and refusals of bad input. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RateLimiter } from '../../src/limiter/rate-limiter.ts';
import { eventually, TestCluster } from './harness.ts';

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

describe('three real nodes', () => {
  let cluster: TestCluster;

  beforeAll(async () => {
    cluster = await TestCluster.start({
      rules: [
        { id: 'default', limit: 100, windowMillis: 600_000, clock: 'request' },
        { id: 'three', limit: 3, windowMillis: 10_000, clock: 'request' },
      ],
    });
  });
  afterAll(async () => {
    await cluster.stop();
  });

  it('decide the textbook sequence from any node, exactly like the library class', async () => {
    const library = new RateLimiter(3, 10_000);
    const seen: boolean[] = [];
    for (const [i, timestampMillis] of [0, 1_000, 2_000, 3_000, 11_000].entries()) {
      const { body } = await cluster.decided((i % 3) + 1, { userId: 'A', rule: 'three', timestampMillis });
      expect(body.allowed).toBe(library.allow('A', timestampMillis));
      seen.push(body.allowed);
    }
    expect(seen).toEqual([true, true, true, false, true]);
  });

  it('give one user exactly the limit when 50 connections ask all nodes at once', async () => {
    const clients = Array.from({ length: 50 }, async (_, client) => {
      let allowed = 0;
      for (let i = 0; i < 10; i += 1) {
        const question = { userId: 'hot', requestId: `${client}-${i}` };
        // A slow machine may miss a deadline, and nodes refuse at once while a leader is silent. A repeated request
        // with
        // the same id is charged once.
        const { status } = await cluster.decided(((client + i) % 3) + 1, question);
        expect([200, 429]).toContain(status);
        if (status === 200) allowed += 1;
      }
      return allowed;
    });
    const counts = await Promise.all(clients);
    expect(sum(counts)).toBe(100);
  });

  it('answer a retry with the receipt of its first attempt, charging nothing', async () => {
    let users = 0;
    // The first attempt must be answered: otherwise the retry would already get the first receipt.
    const { question, first } = await eventually('a first attempt is answered', async () => {
      users += 1;
      const asked = { userId: `retry-${users}`, requestId: 'r-1' };
      const answer = await cluster.allow(1, asked);
      return answer.status === 503 ? undefined : { question: asked, first: answer };
    });
    const again = await cluster.decided(2, question);
    const next = await cluster.decided(3, { userId: question.userId, requestId: 'r-2' });
    expect(first.status).toBe(200);
    expect(again.body).toEqual(first.body);
    expect(next.body.remaining).toBe(98);
  });

  it('spread their leaders', async () => {
    // The 16 partitions spread evenly: a node leads at most 6.
    const led = await eventually('leaders spread over the nodes', async () => {
      const status = await cluster.status();
      const counts = cluster.ids.map(
        (id) => status.partitions.filter((partition) => partition.leader === id).length,
      );
      return Math.max(...counts) <= 6 && sum(counts) === 16 ? counts : undefined;
    });
    expect(Math.min(...led)).toBeGreaterThanOrEqual(4);
  });

  it('refuse bad input with the field and its bound', async () => {
    const { status, body } = await cluster.allow(1, { userId: 'x'.repeat(257) });
    expect(status).toBe(400);
    expect(body).toMatchObject({ error: { field: 'userId', message: expect.stringContaining('256 bytes') } });
  });
});
