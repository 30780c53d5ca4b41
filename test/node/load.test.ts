/** Tests that a restart reads one group after the other, and writes nothing before all are loaded. */
import { describe, expect, it } from 'vitest';
import type { LogStore } from '../../raft/driver/store.ts';
import type { SnapshotMeta, StoredGroup } from '../../raft/types.ts';
import { Admission } from '../../src/meta/admission.ts';
import { META_GROUP } from '../../src/meta/cluster-placement.ts';
import { NodeCore } from '../../src/node/node-core.ts';
import { loadHash32 } from '../../src/partition/hash.ts';
import { Partition } from '../../src/partition/partition.ts';
import { GroupClock } from '../../raft/driver/group-clock.ts';
import { localConfig } from '../../src/config/cluster-directory.ts';
import { NEVER_PLACED } from '../raft/stored-log.ts';
import { chunksOf } from '../raft/driver/whole-snapshots.ts';
import { PARTITION_DEFAULTS } from '../../src/partition/partition-options.ts';

const PARTITIONS = 3;
const INDEX = 7;
const zero = (): number => 0;
const CONFIG = localConfig({ nodes: 3, partitions: PARTITIONS, limit: 1, windowMillis: 1_000, basePort: 1 });

function chunksOfPartition(): Uint8Array[] {
  const partition = new Partition({
    partition: 0,
    nodeId: 1,
    clock: new GroupClock(zero, zero),
    options: PARTITION_DEFAULTS,
    monotonicMillis: zero,
    wallMillis: zero,
    requestProposal: () => undefined,
    readIndex: () => undefined,
    leaderChanged: () => undefined,
  });
  return chunksOf(partition.snapshot());
}

/** A store with a snapshot of every partition, which records the calls. */
class StoreWithSnapshots implements LogStore {
  readonly hasGarbage = false;
  readonly events: string[] = [];
  readonly #chunks: readonly Uint8Array[];

  constructor(chunks: readonly Uint8Array[]) {
    this.#chunks = chunks;
  }

  async load(group: number): Promise<StoredGroup | undefined> {
    this.events.push(`load ${group}`);
    if (group === META_GROUP) return undefined;
    const position = { index: INDEX, term: 1, timeMillis: 0 };
    const byteLength = this.#chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    const snapshot: SnapshotMeta = {
      ...position,
      voters: [1, 2, 3],
      chunkCount: this.#chunks.length,
      byteLength,
    };
    return {
      ...NEVER_PLACED,
      hardState: { term: 1, vote: 0, commit: INDEX },
      base: position,
      entries: [],
      snapshot,
    };
  }

  async readSnapshotChunk(group: number, _index: number, chunk: number): Promise<Uint8Array | undefined> {
    this.events.push(`chunk ${chunk} of ${group}`);
    return this.#chunks[chunk];
  }

  write(): void {
    this.events.push('write');
  }

  async close(): Promise<void> {}
}

describe('a restart', () => {
  it('restores one group after the other, chunk by chunk, reports its progress, and writes nothing before the end', async () => {
    const chunks = chunksOfPartition();
    const store = new StoreWithSnapshots(chunks);
    const deferred: (() => void)[] = [];
    const { founders } = CONFIG;
    const incarnation = founders[0]?.incarnation ?? '';
    const core = await NodeCore.load({
      config: CONFIG,
      nodeId: 1,
      admission: new Admission({ nodeId: 1, incarnation, facts: '', founders }),
      store,
      hash: await loadHash32(),
      clocks: { monotonicMillis: zero, wallMillis: zero },
      listenerMillis: zero,
      random: zero,
      defer: (fn) => deferred.push(fn),
      gather: (fn) => deferred.push(fn),
      send: () => true,
      isConnected: () => true,
      leaderChanged: () => undefined,
      loaded: (done, total) => store.events.push(`${done} of ${total}`),
      fatal: (error) => store.events.push(`fatal: ${String(error)}`),
    });
    const expected: string[] = [];
    for (let group = 1; group <= PARTITIONS; group += 1) {
      expected.push(
        `load ${group}`,
        ...chunks.map((_, i) => `chunk ${i} of ${group}`),
        `${group} of ${PARTITIONS + 1}`,
      );
    }
    expected.push(`load ${META_GROUP}`, `${PARTITIONS + 1} of ${PARTITIONS + 1}`);
    expect(store.events).toEqual(expected);
    expect(core.raft.status(1)?.applied).toBe(INDEX);
    // From here on the node may write, and take part in groups.
    store.events.length = 0;
    for (let i = 0; i < 200 && store.events.length === 0; i += 1) {
      core.tick();
      for (const run of deferred.splice(0)) run();
    }
    expect(core.raft.status(1)?.role).toBe('preCandidate');
    core.raft.stop();
  });
});
