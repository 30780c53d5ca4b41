/**
 * Upgrades a cluster to the next version node by node under load, with kills at random points: clients never get a
 * grant too many, and the upgrade can be undone until it is finished, but not after.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ClusterCommandError } from '../../src/cli/ask-node.ts';
import { eventually } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';
import { PersistentClients } from '../cluster/persistent-clients.ts';
import { MixedCluster } from './mixed-cluster.ts';
import { beNextVersion, NEXT, THIS } from './next-version.ts';

const RULE = { id: 'default', limit: 60, windowMillis: 3_600_000, clock: 'cluster' } as const;
const IDS = [1, 2, 3] as const;
/** Delays of kills during a start, some before the node has read its database, some after. */
const START_KILL_MILLIS_MAX = 1_500;
/** Delays of kills after a request, some before it is decided, some after. */
const FINISH_KILL_MILLIS_MAX = 150;
const FINISH_ROUNDS = 4;
/** Answers that clients may get while a node is replaced or was killed. */
const EXPLAINED = new Set(['draining', 'no_leader', 'unknown_outcome', 'deadline', 'starting', 'not_member']);

function drawn(millisMax: number, what: string): number {
  const millis = Math.random() * millisMax;
  console.log(`${what} after ${millis.toFixed(1)} ms`);
  return millis;
}

describe('a cluster that is upgraded node by node', () => {
  let mixed: MixedCluster;
  let clients: PersistentClients;
  beforeAll(async () => {
    mixed = await MixedCluster.start({ rules: [RULE], partitions: 8, snapshotEveryBytes: 64 << 10 });
    clients = new PersistentClients(8, () => mixed.cluster.ids.map((id) => mixed.cluster.port(id)));
  });
  afterAll(async () => {
    await clients?.stop();
    await mixed?.stop();
  });

  it('runs both versions at once, and refuses to finish while one node speaks the lower version', async () => {
    await mixed.replace(2, 'next', drawn(START_KILL_MILLIS_MAX, 'node 2 is killed'));
    await mixed.knows(2, 1, ({ speaks, up }) => up && speaks === THIS.max);
    expect(await mixed.report(2)).toMatchObject({ clusterVersion: THIS.max });
    expect((await mixed.report(1))?.nodes.map(({ up }) => up)).toEqual([true, true, true]);
    expect(await mixed.status(2)).toMatch(/node 1 speaks 1, node 3 speaks 1\).*\nunfinished$/);
    const refused = await mixed.finish(2);
    expect(refused).toBeInstanceOf(ClusterCommandError);
    expect((refused as Error).message).toContain('node 1 speaks 1, node 3 speaks 1: ');
    // The asked node does not speak that version.
    expect(await mixed.finish(1)).toBeInstanceOf(ClusterCommandError);
  });

  it('can switch nodes back and forth until it is finished, also if nodes of either version are killed', async () => {
    await mixed.replace(2, 'this', drawn(START_KILL_MILLIS_MAX, 'node 2, of this version again, is killed'));
    await mixed.replace(3, 'next');
    await mixed.kill(1, 'this');
    await mixed.cluster.ready();
    await mixed.kill(3, 'next');
    await mixed.cluster.ready();
    await mixed.replace(2, 'next');
    await mixed.knows(3, 2, ({ speaks, up }) => up && speaks === NEXT.max);
    const refused = await mixed.finish(3);
    expect((refused as Error).message).toMatch(
      /: node 1 speaks 1: start it with a quorate that speaks version/,
    );
    await mixed.replace(1, 'next', drawn(START_KILL_MILLIS_MAX, 'node 1 is killed'));
  });

  it('is finished once, also if nodes are killed meanwhile and the request is repeated', async () => {
    for (const id of IDS) await mixed.knows(3, id, ({ speaks, up }) => up && speaks === NEXT.max);
    expect(await mixed.report(3)).toMatchObject({ clusterVersion: THIS.max });
    for (let round = 0; round < FINISH_ROUNDS; round += 1) {
      const leader = await eventually('group 0 has a leader', async () => mixed.leaderOfNodes());
      const asked = round % 2 === 0 ? leader : (IDS.find((id) => id !== leader) ?? leader);
      const victim = round === 3 ? asked : leader;
      const outcome = mixed.finish(asked);
      await delay(drawn(FINISH_KILL_MILLIS_MAX, `node ${victim} is killed, node ${asked} was asked,`));
      await mixed.kill(victim, 'next');
      const reported = await outcome;
      console.log(reported instanceof Error ? reported.message : reported);
      await mixed.cluster.ready();
    }
    expect(
      await eventually('the upgrade is finished', async () => {
        const reported = await mixed.finish(2);
        return reported instanceof Error ? undefined : reported;
      }),
    ).toMatch(/^(done: )?the cluster is at version 2/m);
    for (const id of IDS) {
      await eventually(`node ${id} knows that the upgrade is finished`, async () =>
        (await mixed.report(id))?.clusterVersion === NEXT.max ? true : undefined,
      );
      // Group 0 may have no leader for a moment. Then the command first prints that it tries again.
      expect(await mixed.finish(id)).toMatch(
        /^the cluster is at version 2 already: there is nothing to finish$/m,
      );
      expect(await mixed.status(id)).toMatch(/finished$/);
    }
  });

  it('then refuses a node of the older version, which says what to do; the newer version starts again', async () => {
    await mixed.cluster.kill(1);
    mixed.run(1, 'this');
    // The node learns it from its own database, or from the others in the handshake.
    const own = 'the cluster was raised to version 2, and this program reads no version above 1';
    const others =
      /node 1 speaks version 1, and node [23] of this cluster 2: start node 1 with a newer quorate/;
    await eventually('node 1 says why it does not run', async () => {
      const log = await mixed.logOf(1);
      return log.includes(own) || others.test(log) ? true : undefined;
    });
    expect((await mixed.report(2))?.nodes.find(({ id }) => id === 1)?.up).toBe(false);
    await mixed.kill(1, 'next');
    await mixed.cluster.ready();
  });

  it('answered no grant too many, and no refusal without an explanation', async () => {
    await clients.stop();
    const { counts, grants, answers } = clients;
    console.log(`answers ${JSON.stringify(counts)}`);
    expect([...grants.values()].filter((count) => count > RULE.limit)).toEqual([]);
    expect([...grants.values()].filter((count) => count === RULE.limit).length).toBeGreaterThan(0);
    const unexplained = answers.filter(
      ({ status, reason }) => ![200, 429].includes(status) && !(status === 503 && EXPLAINED.has(reason)),
    );
    expect(unexplained).toEqual([]);
  });

  it('cannot be lowered to the older version', async () => {
    const asked = { method: 'PUT', headers: { 'content-type': 'application/json' } };
    const answer = await eventually('a leader of group 0 decides', async () => {
      const body = JSON.stringify({ version: THIS.max });
      const response = await fetch(new URL('/v1/cluster/version', mixed.url(2)), { ...asked, body });
      return response.status === 503 ? undefined : response;
    });
    expect([answer.status, await answer.json()]).toMatchObject([409, { reason: 'lowerVersion' }]);
  });

  describe('the upgraded cluster after its nodes have stopped', () => {
    beNextVersion();

    it('has the same state on all its nodes', async () => {
      for (const id of IDS) await mixed.cluster.kill(id);
      const here = InProcessCluster.of(mixed.cluster.config, mixed.cluster.directory);
      await here.startAll();
      try {
        const hashes = await eventually('all replicas have applied the same', () => {
          const all = IDS.map((id) => stateOf(here, id));
          return new Set(all).size === 1 ? all[0] : undefined;
        });
        expect(hashes).toMatch(/"clusterVersion":2/);
      } finally {
        for (const id of IDS) await here.stopNode(id);
      }
    });
  });
});

/** Digest of all replicated state on this node. */
function stateOf(cluster: InProcessCluster, id: number): string {
  const { core } = cluster.node(id);
  const hashes = [...core.partitions].sort(([a], [b]) => a - b).map(([, partition]) => partition.stateHash());
  return JSON.stringify([hashes, core.meta.state]);
}
