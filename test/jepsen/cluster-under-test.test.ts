import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allowAt, eventually } from '../cluster/harness.ts';
import { seeded } from '../raft/seeded.ts';
import { ClusterUnderTest } from './cluster-under-test.ts';
import { lacks, libfaketime } from './machine.ts';

const RULE = { id: 'default', limit: 1_000_000, windowMillis: 60_000, clock: 'request' } as const;
const HOUR_MILLIS = 3_600_000;
/** The number of polls for the log line about a connection that was reset, and about the next one. */
const CHECKS_MAX = 100;
const CHECK_MILLIS = 50;

describe('the cluster under test', () => {
  let cluster: ClusterUnderTest;
  beforeAll(async () => {
    cluster = await ClusterUnderTest.create({ nodes: 3, rules: [RULE], random: seeded(1), partitions: 4 });
    // The leader reports to the other node where node 1 is, before node 1 runs.
    for (const id of [2, 3]) cluster.node(id).start();
    for (const id of [2, 3]) {
      await eventually(`node ${id} knows the leader`, async () => {
        const partitions = (await cluster.node(id).report())?.partitions ?? [];
        return partitions.length > 0 && partitions.every(({ leader }) => leader !== 0) ? true : undefined;
      });
    }
    await cluster.startAll();
    await cluster.ready();
  });
  afterAll(async () => {
    await cluster.dispose();
  });

  const port = (id: number): number => cluster.node(id).machine.address.http.port;
  async function isGrantedAt(id: number): Promise<boolean> {
    const { status } = await allowAt(port(id), { userId: `${Math.random()}` }).catch(() => ({ status: 0 }));
    return status === 200;
  }
  const grantedAt = async (id: number): Promise<true> =>
    eventually(`a grant at node ${id}`, async () => ((await isGrantedAt(id)) ? true : undefined));

  /** The log lines of a node about its connections. */
  const linesAboutPeers = (id: number): string =>
    readFileSync(`${cluster.logsDirectory}/node-${id}.log`, 'utf8')
      .split('\n')
      .filter((line) => line.includes('peer'))
      .join('\n');

  /** The addresses at which the node reached its peers, from its log. */
  function connectionsOf(id: number): { peer: number; port: number }[] {
    return linesAboutPeers(id)
      .split('\n')
      .filter((line) => line.includes('connected to peer'))
      .map((line) => JSON.parse(line) as { peer: number; address: { port: number } })
      .map(({ peer, address }) => ({ peer, port: address.port }));
  }

  it('runs one process per node, and all messages between nodes go through the proxies', async () => {
    expect(cluster.members).toEqual([1, 2, 3]);
    expect(cluster.spares).toEqual([4, 5]);
    const pairs = cluster.members.flatMap((from) => cluster.members.map((to) => ({ from, to })));
    const silent = (): { from: number; to: number }[] =>
      pairs.filter(({ from, to }) => from !== to && cluster.network.link(from, to).forward.bytesPassed === 0);
    // A cluster is ready when every partition has a leader. A link that no leader needs may still be connecting.
    await eventually('every node is connected with every other', () =>
      silent().length === 0 ? true : undefined,
    ).catch((error: unknown) => {
      console.log(
        silent()
          .map(({ from, to }) => `${from} > ${to}\n${linesAboutPeers(from)}`)
          .join('\n'),
      );
      throw error;
    });
    for (const from of cluster.members)
      for (const { peer, port: dialled } of connectionsOf(from))
        expect(`${from} > ${peer} at ${dialled}`).toBe(
          `${from} > ${peer} at ${cluster.network.link(from, peer).port}`,
        );
    await eventually('the first node in the order of leaderships leads a partition', async () => {
      const [first = 0] = await cluster.byLeadership();
      const status = await cluster.node(first).report();
      return status?.partitions.some(({ leader }) => leader === first) === true ? true : undefined;
    });
    for (const id of cluster.members) await grantedAt(id);
  });

  it('isolates a node: it cannot grant, the others can, and it recovers', async () => {
    const [leader = 0, other = 0] = await cluster.byLeadership();
    cluster.network.setAll((from, to) => (from === leader || to === leader ? { blackHole: true } : {}));
    await grantedAt(other);
    await eventually('the isolated node denies', async () =>
      (await isGrantedAt(leader)) ? undefined : true,
    );
    cluster.network.heal();
    await grantedAt(leader);
    expect(cluster.network.totals().bytesLost).toBeGreaterThan(0);
  });

  it('kills, pauses, stalls and restarts nodes, and knows which exits it caused', async () => {
    await cluster.kill(1);
    expect(cluster.running).toEqual([2, 3]);
    cluster.node(1).start();
    expect(await cluster.node(1).isUp()).toBe(true);

    cluster.node(2).pause();
    expect(await cluster.node(2).report()).toBeUndefined();
    cluster.node(2).resume();
    await eventually('node 2 answers again', async () => cluster.node(2).report());

    const startMillis = performance.now();
    cluster.node(3).stall(400);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await cluster.node(3).report();
    expect(performance.now() - startMillis).toBeGreaterThanOrEqual(350);

    expect(cluster.exits).toEqual([{ id: 1, code: null, signal: 'SIGKILL', expected: 'killed' }]);
    expect(cluster.unexpectedExits).toEqual([]);
    await cluster.ready();
  });

  it('sets the wall clock of one node', async () => {
    console.log(`wall clocks by ${libfaketime() ?? 'a module in the node: libfaketime is not installed'}`);
    const logged = (): number => {
      // The text after the last line end is an incomplete line.
      const lines = readFileSync(`${cluster.logsDirectory}/node-1.log`, 'utf8').split('\n').slice(0, -1);
      return (JSON.parse(lines.at(-1) ?? '') as { time: number }).time - Date.now();
    };
    cluster.node(1).setWallClock(HOUR_MILLIS);
    await eventually('the log is an hour ahead', async () => {
      // The node may have logged the earlier line before it read its new clock.
      cluster.network.link(2, 1).reset();
      for (let i = 0; i < CHECKS_MAX; i += 1) {
        if (Math.abs(logged() - HOUR_MILLIS) < 60_000) return true;
        await delay(CHECK_MILLIS);
      }
      return undefined;
    });
    cluster.node(1).setWallClock(0);
    cluster.node(1).setMonotonicRate(50);
    expect(await grantedAt(1)).toBe(true);
  });

  const compilerLack = lacks.compiler();
  if (compilerLack !== undefined) console.log(`skipped: slow and failing syncs (${compilerLack})`);
  it.skipIf(compilerLack !== undefined)('fails a sync: the node ends', async () => {
    cluster.node(2).expectExit('sync error');
    cluster.node(2).setSyncFault('fail 1');
    await eventually('node 2 ends', async () => {
      await isGrantedAt(1);
      return cluster.node(2).isRunning ? undefined : true;
    });
    expect(cluster.exits.at(-1)).toEqual({ id: 2, code: 70, signal: null, expected: 'sync error' });
    cluster.node(2).setSyncFault('');
    cluster.node(2).start();
    expect(await cluster.node(2).isUp()).toBe(true);
  });

  const ext4Lack = lacks.ext4();
  if (ext4Lack !== undefined) console.log(`skipped: a power cut (${ext4Lack})`);
  it.skipIf(ext4Lack !== undefined)('cuts the power of a majority, and the nodes start again', async () => {
    await cluster.cutPower(1, 2);
    await cluster.startAll();
    await cluster.ready();
    await grantedAt(1);
    expect(cluster.unexpectedExits).toEqual([]);
  });
});
