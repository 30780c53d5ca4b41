/**
 * A cluster of the version before is upgraded node by node under load, with kills at random points: no client is told a grant too
 * many, there is a way back until the upgrade is finished, and none after it.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VERSIONS } from '../../src/api/versions.ts';
import { ClusterCommandError } from '../../src/cli/ask-node.ts';
import { changeNodes } from '../../src/cli/nodes-command.ts';
import { eventually } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';
import { PersistentClients } from '../cluster/persistent-clients.ts';
import { MixedCluster } from './mixed-cluster.ts';
import { VERSION_BEFORE, versionBefore } from './version-before.ts';

const RULE = { id: 'default', limit: 60, windowMillis: 3_600_000, clock: 'cluster' } as const;
const IDS = [1, 2, 3] as const;
/** Some of them before a node has read its database, some after. */
const START_KILL_MILLIS_MAX = 1_500;
/** Earlier and later than what is asked is decided. */
const FINISH_KILL_MILLIS_MAX = 150;
const FINISH_ROUNDS = 4;
/** What a client may be told while a node is replaced or was killed. */
const EXPLAINED = new Set(['draining', 'no_leader', 'unknown_outcome', 'deadline', 'starting', 'not_member']);

function drawn(millisMax: number, what: string): number {
  const millis = Math.random() * millisMax;
  console.log(`${what} after ${millis.toFixed(1)} ms`);
  return millis;
}

const before = await versionBefore();

describe.skipIf(before === undefined)('a cluster that is upgraded node by node', () => {
  let mixed: MixedCluster;
  let clients: PersistentClients;
  beforeAll(async () => {
    if (before === undefined) return;
    mixed = await MixedCluster.start(before, { rules: [RULE], partitions: 8, snapshotEveryBytes: 64 << 10 });
    clients = new PersistentClients(8, () => mixed.cluster.ids.map((id) => mixed.cluster.port(id)));
  });
  afterAll(async () => {
    await clients?.stop();
    await mixed?.cluster.stop();
  });

  /** Of node 2, by node 2. */
  async function label(): Promise<void> {
    const change = { label: { node: 2, zone: 'a' } };
    await changeNodes({ via: mixed.url(2), change, timeoutMillis: 60_000, print: () => undefined });
  }

  it('runs both versions at once, and refuses to be finished while one node is of the one before', async () => {
    await mixed.replace(2, 'this', drawn(START_KILL_MILLIS_MAX, 'node 2 is killed'));
    await mixed.knows(2, 1, ({ speaks, up }) => up && speaks === VERSION_BEFORE);
    expect(await mixed.report(2)).toMatchObject({ clusterVersion: VERSION_BEFORE });
    expect((await mixed.report(1))?.nodes.map(({ up }) => up)).toEqual([true, true, true]);
    expect(await mixed.status(2)).toMatch(/node 1 speaks 13, node 3 speaks 13.*\nunfinished$/);
    const refused = await mixed.finish(2);
    expect(refused).toBeInstanceOf(ClusterCommandError);
    expect((refused as Error).message).toContain('node 1 speaks 13, node 3 speaks 13: ');
    // Who is asked there speaks no such version.
    expect(await mixed.finish(1)).toBeInstanceOf(ClusterCommandError);
    await expect(label()).rejects.toThrow(/labels need version 14 of the cluster/);
  });

  it('goes back and forth until it is finished, also with a node of either version killed', async () => {
    await mixed.replace(2, 'before', drawn(START_KILL_MILLIS_MAX, 'node 2, of before again, is killed'));
    await mixed.replace(3, 'this');
    await mixed.kill(1, 'before');
    await mixed.cluster.ready();
    await mixed.kill(3, 'this');
    await mixed.cluster.ready();
    await mixed.replace(2, 'this');
    await mixed.knows(3, 2, ({ speaks, up }) => up && speaks === VERSIONS.max);
    const refused = await mixed.finish(3);
    expect((refused as Error).message).toMatch(
      /: node 1 speaks 13: start it with a quorate that speaks version/,
    );
    await mixed.replace(1, 'this', drawn(START_KILL_MILLIS_MAX, 'node 1 is killed'));
  });

  it('is finished once, whoever is killed meanwhile and however often it is asked', async () => {
    for (const id of IDS) await mixed.knows(3, id, ({ speaks, up }) => up && speaks === VERSIONS.max);
    expect(await mixed.report(3)).toMatchObject({ clusterVersion: VERSION_BEFORE });
    for (let round = 0; round < FINISH_ROUNDS; round += 1) {
      const leader = await eventually('group 0 has a leader', async () => mixed.leaderOfNodes());
      const asked = round % 2 === 0 ? leader : (IDS.find((id) => id !== leader) ?? leader);
      const victim = round === 3 ? asked : leader;
      const outcome = mixed.finish(asked);
      await delay(drawn(FINISH_KILL_MILLIS_MAX, `node ${victim} is killed, node ${asked} was asked,`));
      await mixed.kill(victim, 'this');
      const told = await outcome;
      console.log(told instanceof Error ? told.message : told);
      await mixed.cluster.ready();
    }
    expect(
      await eventually('it is finished', async () => {
        const told = await mixed.finish(2);
        return told instanceof Error ? undefined : told;
      }),
    ).toMatch(/^(done: )?the cluster is at version 14/m);
    for (const id of IDS) {
      await eventually(`node ${id} knows it`, async () =>
        (await mixed.report(id))?.clusterVersion === VERSIONS.max ? true : undefined,
      );
      // Group 0 may be without a leader for a moment: then it says first that it asks again.
      expect(await mixed.finish(id)).toMatch(
        /^the cluster is at version 14 already: there is nothing to finish$/m,
      );
      expect(await mixed.status(id)).toMatch(/finished$/);
    }
    await label();
    expect((await mixed.report(3))?.nodes.map(({ zone }) => zone)).toEqual([undefined, 'a', undefined]);
  });

  it('refuses a node of the version before after that, and says what to do; the new version takes over again', async () => {
    await mixed.cluster.kill(1);
    mixed.run(1, 'before');
    // Its own database tells it; one that had not heard is told so by the others, at the handshake.
    const own = 'the cluster was raised to version 14, and this program reads no version above 13';
    const others =
      /node 1 speaks version 12 to 13, and node [23] of this cluster 14: start node 1 with a newer quorate/;
    await eventually('node 1 says why it does not run', async () => {
      const log = await mixed.logOf(1);
      return log.includes(own) || others.test(log) ? true : undefined;
    });
    expect((await mixed.report(2))?.nodes.find(({ id }) => id === 1)?.up).toBe(false);
    await mixed.kill(1, 'this');
    await mixed.cluster.ready();
  });

  it('told nobody a grant too many, and nothing that is not explained', async () => {
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

  it('has the same state on all its nodes', async () => {
    for (const id of IDS) await mixed.cluster.kill(id);
    const here = InProcessCluster.of(mixed.cluster.config, mixed.cluster.directory);
    await here.startAll();
    try {
      const hashes = await eventually('all replicas have applied the same', () => {
        const all = IDS.map((id) => stateOf(here, id));
        return new Set(all).size === 1 ? all[0] : undefined;
      });
      expect(hashes).toMatch(/"clusterVersion":14/);
    } finally {
      for (const id of IDS) await here.stopNode(id);
    }
  });
});

/** Of all that is replicated, as this node has it. */
function stateOf(cluster: InProcessCluster, id: number): string {
  const { core } = cluster.node(id);
  const hashes = [...core.partitions].sort(([a], [b]) => a - b).map(([, partition]) => partition.stateHash());
  return JSON.stringify([hashes, core.meta.state]);
}
