/** Tests that the downtime of a whole cluster frees no limit, and that shared windows follow UTC nevertheless. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually, TestCluster } from './harness.ts';

const MINUTE = 60_000;
const RULE = {
  id: 'default',
  limit: 100,
  windowMillis: MINUTE,
  clock: 'cluster',
  meter: 'fixedWindow',
} as const;
/** How long the whole cluster is down: longer than `OFF_MILLIS_MAX`, so that lost time would show. */
const DOWN_MILLIS = 5_000;
/** Logs may lag behind UTC by a second, and a leader needs some time to notice it. */
const OFF_MILLIS_MAX = 1_000 + 250;
/** Enough users to reach every partition. */
const USERS = 24;

let cluster: TestCluster;

beforeAll(async () => {
  cluster = await TestCluster.start({ rules: [RULE], partitions: 8 });
});
afterAll(async () => {
  await cluster.stop();
});

/**
 * By how much the end of a grant's window differs from the end of a minute, at least: the answer was under way for a
 * while.
 */
async function offOf(userId: string): Promise<number> {
  const askedMillis = Date.now();
  const { body } = await cluster.decided(1, { userId });
  const earliest = askedMillis + (body.resetMillis ?? 0);
  const latest = Date.now() + (body.resetMillis ?? 0);
  const minute = Math.ceil(earliest / MINUTE) * MINUTE;
  if (minute <= latest) return 0;
  return Math.min(minute - latest, earliest - (minute - MINUTE));
}

/**
 * Asks until every user's window ends close to a minute of UTC, and returns the largest difference. Each attempt asks
 * for new users, because a grant keeps the window that it got before the logs knew how far UTC is ahead.
 */
async function mostOff(prefix: string): Promise<number> {
  let attempts = 0;
  return eventually(
    `${prefix}: minutes are those of UTC`,
    async () => {
      attempts++;
      let most = 0;
      for (let i = 0; i < USERS; i++) most = Math.max(most, await offOf(`${prefix} ${attempts}/${i}`));
      return most <= OFF_MILLIS_MAX ? most : undefined;
    },
    30_000,
  );
}

it('minutes end with those of UTC, also after everything was down', async () => {
  expect(await mostOff('before')).toBeLessThanOrEqual(OFF_MILLIS_MAX);
  await Promise.all(cluster.ids.map(async (id) => cluster.kill(id)));
  const killedMillis = performance.now();
  await eventually('it was down for some seconds', () =>
    performance.now() - killedMillis >= DOWN_MILLIS ? true : undefined,
  );
  await cluster.startMissing();
  expect(await mostOff('afterwards')).toBeLessThanOrEqual(OFF_MILLIS_MAX);
});
