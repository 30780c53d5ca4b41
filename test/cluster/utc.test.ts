/** Nobody is credited with the time during which a whole cluster is down; windows that everybody shares follow UTC all the same. */
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
/** Longer than what may be missing afterwards. */
const DOWN_MILLIS = 5_000;
/** A second that logs may lag behind, and what an answer takes. */
const OFF_MILLIS_MAX = 1_000 + 250;
const USERS = Array.from({ length: 24 }, (_, i) => `user${i}`);

let cluster: TestCluster;

beforeAll(async () => {
  cluster = await TestCluster.start({ rules: [RULE], partitions: 8 });
});
afterAll(async () => {
  await cluster.stop();
});

/** By how much the end of a grant's window differs from the end of a minute, at least: the answer was under way for a while. */
async function offOf(userId: string): Promise<number> {
  const askedMillis = Date.now();
  const { body } = await cluster.decided(1, { userId });
  const ends = [askedMillis, Date.now()].map((millis) => (millis + (body.resetMillis ?? 0)) % MINUTE);
  return Math.min(...ends.map((past) => Math.min(past, MINUTE - past)));
}

/** The largest difference that any of these users is told. */
async function mostOff(users: readonly string[]): Promise<number> {
  const offs: number[] = [];
  for (const userId of users) offs.push(await offOf(userId));
  return Math.max(...offs);
}

it('minutes end with those of UTC, also after everything was down', async () => {
  expect(await mostOff(USERS)).toBeLessThanOrEqual(OFF_MILLIS_MAX);
  await Promise.all(cluster.ids.map(async (id) => cluster.kill(id)));
  const killedMillis = performance.now();
  await eventually('it was down for some seconds', () =>
    performance.now() - killedMillis >= DOWN_MILLIS ? true : undefined,
  );
  await cluster.startMissing();
  // Others than before: what was granted then counts as long as it would have.
  const others = USERS.map((userId) => `${userId} again`);
  await eventually(
    'minutes are those of UTC',
    async () => ((await mostOff(others)) <= OFF_MILLIS_MAX ? true : undefined),
    30_000,
  );
});
