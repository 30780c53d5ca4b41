/** Tests that wrong wall clocks never let a user exceed a limit. */
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from './harness.ts';
import { InProcessCluster } from './in-process.ts';
import { findOverGrant, type ObservedGrant } from './over-grant.ts';

const HOUR_MILLIS = 3_600_000;
const RULE = { id: 'default', limit: 5, windowMillis: 1_000, clock: 'request' } as const;

describe('wall clocks that are wrong', () => {
  let cluster: InProcessCluster;
  afterEach(async () => {
    await cluster.stop();
  });

  it('never free budget: not with an hour between nodes, jumps during failovers, or a restart of all nodes', async () => {
    cluster = await InProcessCluster.create({ rules: [RULE], partitions: 2 });
    cluster.wallOffsetMillis.set(1, 0).set(2, HOUR_MILLIS).set(3, -HOUR_MILLIS);
    await cluster.startAll();

    const users = ['ada', 'bob', 'cy'];
    const grants = new Map<string, ObservedGrant[]>(users.map((user) => [user, []]));
    let stopped = false;
    const clients = users.map(async (userId) => {
      for (let i = 0; !stopped; i += 1) {
        const ids = cluster.running;
        const id = ids[i % ids.length];
        if (id === undefined) {
          await new Promise((resolve) => setTimeout(resolve, 10));
          continue;
        }
        const invokeMillis = performance.now();
        const answer = await cluster.allow(id, { userId });
        if (answer.kind === 'decision' && answer.decision.allowed) {
          grants.get(userId)?.push({ invokeMillis, completeMillis: performance.now() });
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
    });

    const jumps = [HOUR_MILLIS, -HOUR_MILLIS, 24 * HOUR_MILLIS, 0, -24 * HOUR_MILLIS, 61_000];
    for (const jump of jumps) {
      const leader = cluster.leaderOf(cluster.running[0] ?? 1, 'ada');
      for (const id of [1, 2, 3]) cluster.wallOffsetMillis.set(id, jump * id);
      await cluster.stopNode(leader === 0 ? 1 : leader);
      for (const id of [1, 2, 3]) cluster.wallOffsetMillis.set(id, -jump * id);
      await cluster.ready();
      await cluster.startNode(leader === 0 ? 1 : leader);
      await cluster.ready();
    }
    for (const id of cluster.running) await cluster.stopNode(id);
    for (const id of [1, 2, 3]) cluster.wallOffsetMillis.set(id, 7 * HOUR_MILLIS);
    await cluster.startAll();
    const before = new Map(users.map((user) => [user, grants.get(user)?.length ?? 0]));
    // More than fits into two windows, so the cluster continued to grant in each window.
    await eventually('all are granted something in three windows', () =>
      [...grants].every(([user, { length }]) => length > (before.get(user) ?? 0) + 2 * RULE.limit)
        ? true
        : undefined,
    );
    stopped = true;
    await Promise.all(clients);

    expect(cluster.fatalErrors).toEqual([]);
    for (const [user, observed] of grants) {
      // No window contains more grants than the limit.
      expect({ user, violation: findOverGrant(observed, RULE.limit, RULE.windowMillis) }).toEqual({ user });
    }
  });
});
