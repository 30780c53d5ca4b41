/** Tests the load on limiters, and the sliding logs of the databases that are installed. */
import { afterAll, describe, expect, test } from 'vitest';
import { limiterLoad, limiterOf } from '../../bench/load/limiter-load.ts';
import type { LimiterJob } from '../../bench/load/load-job.ts';
import { etcd } from '../../bench/peers/etcd.ts';
import { postgres } from '../../bench/peers/postgres.ts';
import { Running } from '../../bench/running.ts';
import { measuredSomething } from './measured.ts';

const running = new Running();
afterAll(() => running.endAll());

const JOB: LimiterJob = {
  kind: 'limiter',
  limiter: 'etcd',
  workload: 'mixed',
  seed: 1,
  addresses: [],
  connections: 4,
  warmUpMillis: 10,
  measuredMillis: 100,
};

async function soon(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1));
}

async function fails(): Promise<boolean> {
  await soon();
  throw new Error('the database is gone');
}

describe('load on a limiter', () => {
  test('counts answers by kind, and has no more open requests than connections', async () => {
    let open = 0;
    let most = 0;
    const { grants, denials, errors } = await measuredSomething(async () =>
      limiterLoad(
        JOB,
        async (_key, rule) => {
          open += 1;
          most = Math.max(most, open);
          await soon();
          open -= 1;
          return rule === 'open';
        },
        () => undefined,
      ),
    );
    expect(grants).toBeGreaterThan(0);
    expect(denials).toBeGreaterThan(0);
    expect(errors).toBe(0);
    expect(most).toBe(JOB.connections);
    expect(open).toBe(0);
  });

  test('fails if the limiter fails', async () => {
    await expect(limiterLoad(JOB, fails, () => undefined)).rejects.toThrow('the database is gone');
  });
});

for (const thing of [postgres(running), etcd(running)]) {
  const missing = thing.missing?.();
  if (missing !== undefined) console.log(`skipped: ${missing}`);
  describe.skipIf(missing !== undefined)(`a sliding log in ${thing.id}`, () => {
    test('grants no more than the limit to concurrent requests', { timeout: 60_000 }, async () => {
      const started = await thing.start();
      const { kind, addresses } = started.limiter!;
      const limiter = await limiterOf({ ...JOB, limiter: kind, addresses });
      const asked = Array.from({ length: 60 }, async (_, i) => limiter(`user-${i % 5}`, 'spent'));
      const answers = await Promise.all(asked);
      expect(answers.filter(Boolean)).toHaveLength(5);
      expect(await limiter('user-0', 'open')).toBe(true);
      await started.stop();
    });
  });
}
