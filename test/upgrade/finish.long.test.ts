/**
 * Kills the node asked to finish an upgrade, or the leader of group 0, at random points: a repeated request must
 * succeed.
 */
import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeDirectory } from '../../src/config/cluster-directory.ts';
import { eventually } from '../cluster/harness.ts';
import { MixedCluster } from './mixed-cluster.ts';
import { NEXT, THIS } from './next-version.ts';

const RULE = { id: 'default', limit: 5, windowMillis: 3_600_000, clock: 'cluster' } as const;
const IDS = [1, 2, 3] as const;
const ROUNDS = 8;
/** Delays of the kill, from before the request is complete to after its answer. */
const KILL_MILLIS_MAX = 25;

describe('an upgrade that is finished while nodes are killed', () => {
  let mixed: MixedCluster;
  /** Copies of the databases when all nodes were upgraded and the upgrade was not finished. */
  let kept: string;
  beforeAll(async () => {
    mixed = await MixedCluster.start({ rules: [RULE], partitions: 2 });
    for (const id of IDS) await mixed.cluster.kill(id);
    kept = join(mixed.cluster.directory, 'kept');
    for (const id of IDS) await cp(directoryOf(id), join(kept, String(id)), { recursive: true });
  });
  afterAll(async () => mixed?.stop());

  function directoryOf(id: number): string {
    return nodeDirectory(mixed.cluster.directory, id);
  }

  /** Starts all nodes, and waits until the cluster is at this version. */
  async function startedOver(): Promise<void> {
    for (const id of IDS) {
      await mixed.cluster.kill(id);
      await rm(directoryOf(id), { recursive: true });
      await cp(join(kept, String(id)), directoryOf(id), { recursive: true });
      mixed.run(id, 'next');
    }
    await mixed.cluster.ready();
    for (const id of IDS) {
      for (const other of IDS) await mixed.knows(id, other, ({ speaks }) => speaks === NEXT.max);
      expect(await mixed.report(id)).toMatchObject({ clusterVersion: THIS.max });
    }
  }

  it.each(Array.from({ length: ROUNDS }, (_, round) => round))(
    'is finished in the end, round %i',
    async (round) => {
      await startedOver();
      const leader = await eventually('group 0 has a leader', async () => mixed.leaderOfNodes());
      const other = IDS.find((id) => id !== leader) ?? leader;
      const asked = round % 2 === 0 ? leader : other;
      const victim = round % 4 < 2 ? asked : leader;
      const millis = Math.random() * KILL_MILLIS_MAX;
      const outcome = mixed.finish(asked, 5_000);
      await delay(millis);
      await mixed.kill(victim, 'next');
      const first = await outcome;
      const reported = first instanceof Error ? first.message : first;
      console.log(
        `node ${asked} was asked, node ${leader} led, node ${victim} killed after ${millis.toFixed(1)} ms: ${reported}`,
      );
      await mixed.cluster.ready();
      // A client that got success may rely on it.
      if (!(first instanceof Error)) await expectAt(NEXT.max);
      await eventually('the upgrade is finished', async () =>
        (await mixed.finish(victim)) instanceof Error ? undefined : true,
      );
      await expectAt(NEXT.max);
    },
  );

  it('stays finished when all nodes were killed at once', async () => {
    for (const id of IDS) await mixed.cluster.kill(id);
    for (const id of IDS) mixed.run(id, 'next');
    await mixed.cluster.ready();
    await expectAt(NEXT.max);
  });

  /** Waits until all nodes report this version. */
  async function expectAt(version: number): Promise<void> {
    for (const id of IDS) {
      await eventually(`node ${id} is at version ${version}`, async () =>
        (await mixed.report(id))?.clusterVersion === version ? true : undefined,
      );
    }
  }
});
