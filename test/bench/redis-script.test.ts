/** Tests the sliding log script in a real Redis, if one is installed. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisMissing, startRedis, SLIDING_LOG_SCRIPT } from '../../bench/peers/redis.ts';
import { Running } from '../../bench/running.ts';

const missing = redisMissing();
if (missing !== undefined) console.log(`skipped: ${missing}`);

describe.skipIf(missing !== undefined)('the sliding log in Redis', () => {
  const running = new Running();
  let client: Redis;
  let stop: () => Promise<void>;

  beforeAll(async () => {
    const { address, process } = await startRedis(running, running.directory('script-test'));
    client = new Redis(address);
    stop = async () => running.stop(process.child);
  });

  afterAll(async () => {
    client.disconnect();
    await stop();
    running.endAll();
  });

  const ask = async (key: string, limit: number, windowMillis: number): Promise<unknown> =>
    client.eval(SLIDING_LOG_SCRIPT, 1, key, limit, windowMillis);

  test('grants up to the limit, also if many requests come within a microsecond', async () => {
    const pipeline = client.pipeline();
    for (let i = 0; i < 500; i += 1) pipeline.eval(SLIDING_LOG_SCRIPT, 1, 'many', 200, 3_600_000);
    const answers = (await pipeline.exec()) ?? [];
    expect(answers.filter(([error, answer]) => error === null && answer === 1)).toHaveLength(200);
    expect(await client.zcard('many')).toBe(200);
  });

  test('forgets a grant when its window has passed', async () => {
    expect(await ask('one', 1, 3_600_000)).toBe(1);
    expect(await ask('one', 1, 3_600_000)).toBe(0);
    // The same log with an empty window.
    expect(await ask('one', 1, 0)).toBe(1);
  });

  test('stores nothing for a denial, and nothing without an expiry', async () => {
    expect(await ask('none', 0, 1_000)).toBe(0);
    expect(await client.exists('none')).toBe(0);
    expect(await ask('some', 1, 3_600_000)).toBe(1);
    expect(await client.pttl('some')).toBeGreaterThan(0);
  });
});
