/** Tests that real nodes detect a node whose clock runs too fast. */
import { reportOf } from '../../src/node/cluster-view.ts';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from './harness.ts';
import { InProcessCluster } from './in-process.ts';
import { findOverGrant, type ObservedGrant } from './over-grant.ts';

const RULE = { id: 'default', limit: 5, windowMillis: 1_000, clock: 'cluster' } as const;
/** How much a clock 5 % too fast gains before it is detected: three pings, plus the transfer of leadership. */
const GAINED_MILLIS_MAX = 0.05 * (3_000 + 600);

describe('a leader whose clock runs a twentieth too fast', () => {
  let cluster: InProcessCluster;
  afterEach(async () => {
    await cluster.stop();
  });

  it('detects it, gives up its leaderships, and grants no more than in one window plus the gained time', async () => {
    cluster = await InProcessCluster.create({ rules: [RULE], partitions: 4 });
    await cluster.startAll();
    const fast = await eventually('there is a leader', () => cluster.leaderOf(1, 'ada') || undefined);
    const others = cluster.running.filter((id) => id !== fast);
    const grants: ObservedGrant[] = [];
    let isOver = false;
    const client = (async (): Promise<void> => {
      while (!isOver) {
        const invokeMillis = performance.now();
        const answer = await cluster.allow(others[0] ?? 1, { userId: 'ada' });
        if (answer.kind === 'decision' && answer.decision.allowed)
          grants.push({ invokeMillis, completeMillis: performance.now() });
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    await eventually('it grants and so compares its clock', () => (grants.length > 0 ? true : undefined));
    cluster.setMonotonicRate(fast, 1.05);
    const { core } = cluster.node(fast);
    await eventually('it leads no partition', () =>
      !core.clock.verdict.fit && core.raft.leaderships === 0 ? true : undefined,
    );
    expect(reportOf(core, { nodeId: 1, pid: 0 }).clock).toBe('fast');
    const before = grants.length;
    await eventually('others grant', () => (grants.length >= before + 3 * RULE.limit ? true : undefined));
    expect(core.raft.leaderships).toBe(0);
    for (const id of others) expect(cluster.node(id).core.clock.verdict.fit).toBe(true);
    isOver = true;
    await client;
    const window = RULE.windowMillis - GAINED_MILLIS_MAX;
    expect(findOverGrant(grants, RULE.limit, window)).toBeUndefined();
    expect(cluster.fatalErrors).toEqual([]);
  });
});
