/** Tests that a replica that moved away is deleted from memory and disk, and can come back later. */
import { afterEach, describe, expect, it } from 'vitest';
import type { GroupWrite, LogStore } from '../../raft/driver/store.ts';
import type { GroupId } from '../../raft/types.ts';
import { nodeDirectory } from '../../src/config/cluster-directory.ts';
import { factsOf } from '../../src/config/cluster-facts.ts';
import { groupOfPartition } from '../../src/partition/placement.ts';
import { openLevelDatabase } from '../../storage/database.ts';
import { openStore } from '../../storage/open-store.ts';
import { eventually } from './harness.ts';
import { InProcessCluster } from './in-process.ts';

const RULE = { id: 'default', limit: 1_000, windowMillis: 3_600_000, clock: 'cluster' } as const;
const PARTITIONS = 8;
const USERS = 3_000;
const TOMBSTONE_BYTES_MAX = 200;

/** Records of each group in the database of a stopped node. LevelDB frees the space of deleted ones later. */
async function bytesByGroup(directory: string): Promise<Map<number, number>> {
  const database = await openLevelDatabase(directory, { createIfMissing: false, writeBufferBytes: 1 << 20 });
  const bytes = new Map<number, number>();
  await database.scan({ first: Buffer.from([0x10]), last: Buffer.from([0xff]) }, (key, value) => {
    const group = key.readUInt32BE(1);
    bytes.set(group, (bytes.get(group) ?? 0) + key.length + value.length);
  });
  await database.close();
  return bytes;
}

/** Adds each group to `removed` as soon as its tombstone is on the disk. */
function noting(store: LogStore, removed: Set<GroupId>): LogStore {
  return new Proxy(store, {
    get(target, name) {
      if (name === 'write') {
        return (writes: readonly GroupWrite[], done: (error?: Error) => void): void =>
          target.write(writes, (error) => {
            for (const { group, remove } of writes)
              if (error === undefined && remove === true) removed.add(group);
            done(error);
          });
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

describe('a node whose partitions move to others', () => {
  let cluster: InProcessCluster;
  afterEach(async () => {
    await cluster.stop();
  });

  /** The partitions that node 1 holds, once they are those that it should hold by the newest list of nodes. */
  async function holdsWhatItShould(): Promise<number[]> {
    return eventually('node 1 holds exactly the partitions that it should hold', () => {
      const { core } = cluster.node(1);
      // The other nodes may report that all have moved before node 1 has learned of the change.
      const versions = cluster.running.map((id) => cluster.node(id).core.meta.state?.version ?? 0);
      if (core.meta.state?.version !== Math.max(...versions)) return undefined;
      const all = Array.from({ length: PARTITIONS }, (_, partition) => partition);
      const wanted = all.filter((partition) => core.placement.replicasOf(partition).includes(1));
      const held = [...core.partitions.keys()].toSorted((a, b) => a - b);
      return held.join() === wanted.join() ? held : undefined;
    });
  }

  function ask(user: number): ReturnType<InProcessCluster['allow']> {
    return cluster.allow(1, { userId: `${user}`.padEnd(200, '.') });
  }

  /** Remaining limit of a user after one more grant, repeated on a slow machine. */
  async function remainingOf(user: number): Promise<number> {
    return eventually(`user ${user} is granted one more`, async () => {
      const answer = await ask(user);
      return answer.kind === 'decision' && answer.decision.allowed ? answer.decision.remaining : undefined;
    });
  }

  it('deletes them from its disk, and stores them again when they return', async () => {
    cluster = await InProcessCluster.create({ rules: [RULE], partitions: PARTITIONS });
    let disk: LogStore | undefined;
    const removed = new Set<GroupId>();
    await cluster.startNode(1, (store) => (disk = noting(store, removed)));
    for (const id of [2, 3]) await cluster.startNode(id);
    await cluster.ready();
    expect(await holdsWhatItShould()).toHaveLength(PARTITIONS);
    for (let user = 0; user < USERS; user += 100) {
      await Promise.all(Array.from({ length: 100 }, (_, i) => ask(user + i)));
    }
    const remaining = await remainingOf(1);
    // Each of six nodes holds half as much as each of three did.
    for (const add of [4, 5, 6]) await cluster.change({ add: await cluster.join(add) });
    const kept = await holdsWhatItShould();
    expect(kept.length).toBeLessThanOrEqual(PARTITIONS / 2);

    await eventually('all records are deleted, a few at a time', () => {
      const isWritten = removed.size === PARTITIONS - kept.length;
      return (isWritten && disk?.hasGarbage === false) || undefined;
    });
    await cluster.stopNode(1);
    const directory = nodeDirectory(cluster.directory, 1);
    const store = await openStore(directory, { nodeId: 1, facts: factsOf(cluster.config) });
    for (let partition = 0; partition < PARTITIONS; partition += 1) {
      const stored = await store.load(groupOfPartition(partition));
      expect({ partition, removed: stored?.removed }).toEqual({
        partition,
        removed: !kept.includes(partition),
      });
    }
    await store.close();
    const bytes = await bytesByGroup(directory);
    const of = (partitions: readonly number[]): number[] =>
      partitions.map((partition) => bytes.get(groupOfPartition(partition)) ?? 0);
    const gone = Array.from({ length: PARTITIONS }, (_, i) => i).filter(
      (partition) => !kept.includes(partition),
    );
    console.log(
      `bytes of the groups that node 1 keeps: ${of(kept).join(' ')}; of the others: ${of(gone).join(' ')}`,
    );
    expect(Math.min(...of(kept))).toBeGreaterThan(10_000);
    expect(Math.max(...of(gone))).toBeLessThan(TOMBSTONE_BYTES_MAX);
    await cluster.startNode(1);
    expect(await holdsWhatItShould()).toEqual(kept);

    // Other nodes leave, so node 1 needs the deleted partitions again.
    for (const remove of [6, 5]) {
      await cluster.change({ remove });
      await cluster.stopNode(remove);
    }
    const again = await holdsWhatItShould();
    expect(again.length).toBeGreaterThan(kept.length);
    await eventually('node 1 takes part in all of them', () => cluster.node(1).core.isReady || undefined);
    // Nodes that had deleted their replica know the earlier grants again.
    expect(await remainingOf(1)).toBeLessThan(remaining);
    expect(cluster.fatalErrors).toEqual([]);
  });
});
