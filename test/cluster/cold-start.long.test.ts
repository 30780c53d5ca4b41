/** Processes that have just started, and are given all that `redis-benchmark -P 64` sends at once. */
import { describe, expect, it } from 'vitest';
import type { Decoded } from '../resp/decode-replies.ts';
import { encodeCommand, RespClient } from '../resp/fixtures.ts';
import { TestCluster } from './harness.ts';

const RULE = { id: 'default', limit: 100, windowMillis: 60_000, clock: 'request' } as const;
const CONNECTIONS = 50;
const PIPELINE = 64;
const USERS = 10_000;
const FIRST_MILLIS = 1_000;
/** Whatever a node does, one that shares its processor with others may be too late. */
const TRIES_MAX = 5;

function anyUser(): string {
  return `user:${Math.floor(Math.random() * USERS)}`;
}

function pipeline(): Buffer {
  return Buffer.concat(Array.from({ length: PIPELINE }, () => encodeCommand('ALLOW', anyUser())));
}

/** What one connection is answered until `endMillis`. */
async function answersOf(port: number, endMillis: number): Promise<Decoded[]> {
  const client = new RespClient(port);
  const answers: Decoded[] = [];
  do {
    client.socket.write(pipeline());
    answers.push(...(await client.next(PIPELINE)));
  } while (performance.now() < endMillis);
  client.socket.destroy();
  return answers;
}

/** What all are told in the first second after a cluster of new processes is ready. */
async function firstAnswers(): Promise<Decoded[]> {
  const cluster = await TestCluster.start({ rules: [RULE], partitions: 6, resp: true });
  try {
    const port = cluster.config.nodes[0]?.resp?.port ?? 0;
    const endMillis = performance.now() + FIRST_MILLIS;
    const told = Array.from({ length: CONNECTIONS }, async () => answersOf(port, endMillis));
    return (await Promise.all(told)).flat();
  } finally {
    await cluster.stop();
  }
}

describe('a cluster of processes that have just started', () => {
  it('decides all that is asked at once in its first second', async () => {
    const refused: number[] = [];
    while (refused.length < TRIES_MAX && !refused.includes(0)) {
      const answers = await firstAnswers();
      expect(answers.length).toBeGreaterThanOrEqual(CONNECTIONS * PIPELINE);
      const undecided = answers.filter((answer) => !Array.isArray(answer));
      for (const answer of undecided)
        expect(answer).toMatchObject({ error: expect.stringMatching(/^UNAVAILABLE /) });
      refused.push(undecided.length);
    }
    expect(refused).toContain(0);
  });
});
