/**
 * Random histories of groups that rest most of the time (idle-history.ts): the invariants hold, and the groups make
 * progress in the end.
 */
import { describe, expect, it } from 'vitest';
import { eachSeed, seeded, someSeeds } from '../seeded.ts';
import { Cluster } from './cluster.ts';
import { IdleHistory } from './idle-history.ts';
import { COMPACTING, DRIVER_OPTIONS, ELECTION_TICKS, HEARTBEAT_TICKS } from './options.ts';
import { typeOf } from './parcel.ts';

const STEPS = 60;
const BALANCE_TICKS = 25;

/** Waits until every group has a leader, has applied every proposal everywhere, and rests. */
async function expectProgressAndRest(cluster: Cluster, history: IdleHistory): Promise<void> {
  await history.end();
  await history.tick(10 * ELECTION_TICKS);
  for (const group of cluster.groups) {
    const leader = cluster.leaderOf(group);
    if (leader === undefined) throw new Error(`group ${group} has no leader`);
    leader.propose('after all', group);
  }
  await history.tick(10 * ELECTION_TICKS);
  for (const group of cluster.groups) {
    expect(cluster.agreement.appliedMax(group)).toBe(cluster.leaderOf(group)?.statusOf(group).lastIndex);
    expect(cluster.isLevel(group)).toBe(true);
  }
  cluster.sent.length = 0;
  await history.tick(2 * HEARTBEAT_TICKS);
  expect(new Set(cluster.sent.map(typeOf))).toEqual(new Set(['beat', 'beatAnswer']));
}

describe('random histories of groups that rest', () => {
  it('lose nothing, report losses of a leader in time, never let group time run ahead, and make progress in the end', async () => {
    let lists = 0;
    await eachSeed(someSeeds(15, 3), async (seed) => {
      const random = seeded(seed);
      const options = random(2) === 0 ? COMPACTING : DRIVER_OPTIONS;
      const cluster = new Cluster({
        voters: random(3) === 0 ? 5 : 3,
        groups: 1 + random(4),
        seed,
        options: { ...options, balanceTicks: random(2) === 0 ? BALANCE_TICKS : options.balanceTicks },
      });
      for (const group of cluster.groups) await cluster.elect(group);
      const history = new IdleHistory(cluster, random);
      await history.run(STEPS);
      lists += cluster.sent.filter(
        ({ message }) => message.kind === 'beat' && message.groups !== undefined,
      ).length;
      await expectProgressAndRest(cluster, history);
    });
    expect(lists).toBeGreaterThan(100);
  });
});
