/** Tests the groups in memory that the micro bench drives. */
import { describe, expect, test } from 'vitest';
import { GroupsInMemory, WINDOW_ROUNDS } from '../../bench/micro/groups-in-memory.ts';

const FAR = Number.MAX_SAFE_INTEGER;

/** Sends each group `count` requests, and counts the grants after the round. */
function grantsOfRound(cluster: GroupsInMemory, count: number, ruleId: string): number {
  let granted = 0;
  for (const partition of cluster.partitions)
    for (let user = 0; user < count; user += 1)
      partition.decide({ userId: `user-${user}`, ruleId }, FAR, (answer) => {
        if (answer.kind === 'decision' && answer.decision.allowed) granted += 1;
      });
  cluster.round();
  return granted;
}

describe('groups in memory', () => {
  test.each([1, 3] as const)('of %i nodes answer all requests within the round', (nodes) => {
    const cluster = GroupsInMemory.start({ nodes, groups: 4 });
    for (let round = 0; round < 3; round += 1) expect(grantsOfRound(cluster, 8, 'open')).toBe(4 * 8);
    expect(grantsOfRound(cluster, 8, 'spent')).toBe(4 * 8);
    expect(grantsOfRound(cluster, 8, 'spent')).toBe(0);
  });

  test('reach a steady state: grants outside the window are forgotten', () => {
    const cluster = GroupsInMemory.start({ nodes: 1, groups: 1 });
    const grants = (): number => cluster.partitions[0]?.stats().grants ?? 0;
    for (let round = 0; round < 2 * WINDOW_ROUNDS; round += 1) grantsOfRound(cluster, 2, 'open');
    const first = grants();
    for (let round = 0; round < 4 * WINDOW_ROUNDS; round += 1) grantsOfRound(cluster, 2, 'open');
    expect(grants()).toBeLessThanOrEqual(first + 4);
  });
});
