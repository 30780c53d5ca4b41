/**
 * The replicas that a node creates, offers and deletes, by the newest list and the data on disk, and never too early.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import { simpleConfig } from '../../raft/membership.ts';
import type { MultiRaft } from '../../raft/driver/multi-raft.ts';
import type { GroupConfig, StoredGroup } from '../../raft/types.ts';
import type { ClusterPlacement } from '../../src/meta/cluster-placement.ts';
import type { MetaState } from '../../src/meta/cluster-state.ts';
import { ReplicaKeeper } from '../../src/meta/replica-keeper.ts';

const SELF = 4;
const PARTITION = 0;

function tombstoneOf(placement: number): StoredGroup {
  const base = { index: 0, term: 0, timeMillis: 0 };
  const hardState = { term: 5, vote: 0, commit: 0 };
  return { placement, removedAt: placement, removed: true, hardState, base, entries: [] };
}

/** One partition, and a disk that the test completes. */
class Node {
  isHeld = false;
  isPlacedHere = false;
  config: GroupConfig = simpleConfig([]);
  newestEpoch = 0;
  reported: string[] = [];
  readonly writes: (() => void)[] = [];
  readonly keeper: ReplicaKeeper;

  constructor() {
    const raft = {
      configOf: () => this.config,
      newestEpoch: () => this.newestEpoch,
      offerGroup: (_group: number, version: number, done: () => void) => {
        this.reported.push(`writes down ${version}`);
        this.writes.push(done);
      },
      removeGroup: (_group: number, version: number, done: (stored: StoredGroup) => void) => {
        this.reported.push(`removes by ${version}`);
        this.writes.push(() => done(tombstoneOf(version)));
      },
    };
    this.keeper = new ReplicaKeeper({
      nodeId: SELF,
      raft: raft as unknown as MultiRaft,
      placement: {
        partitionCount: 1,
        replicasOf: () => (this.isPlacedHere ? [1, 2, SELF] : [1, 2, 3]),
        candidatesOf: () => [1, 2, 3, SELF],
      } as unknown as ClusterPlacement,
      replicas: {
        has: () => this.isHeld,
        add: (_partition, returns) => {
          this.isHeld = true;
          this.reported.push(returns === undefined ? 'makes' : `brings back by ${returns.placement}`);
        },
        drop: () => {
          this.isHeld = false;
        },
      },
      isConnected: (peer) => peer !== 3,
      offer: (to, version) => this.reported.push(`offers to ${to} under ${version}`),
    });
  }

  /** Updates the state of group 0 on this node, and lets the node react. */
  hears(version: number, settledVersion: number, isPlacedHere: boolean): string[] {
    this.isPlacedHere = isPlacedHere;
    this.keeper.update({ version, settledVersion } as MetaState);
    return this.afterTicks();
  }

  afterTicks(): string[] {
    this.reported = [];
    for (let i = 0; i < 50; i += 1) this.keeper.tick();
    return [...new Set(this.reported)];
  }

  written(): string[] {
    this.reported = [];
    for (const done of this.writes.splice(0)) done();
    this.keeper.tick();
    return this.reported;
  }
}

describe('a node', () => {
  let node: Node;
  beforeEach(() => {
    node = new Node();
    node.keeper.loaded(PARTITION, undefined);
  });

  it('creates a replica that is placed here, and offers it when it is on disk, until it is a member', () => {
    expect(node.hears(2, 1, true)).toEqual(['makes', 'writes down 2']);
    expect(node.afterTicks()).toEqual([]);
    expect(node.written()).toEqual(['offers to 1 under 2', 'offers to 2 under 2']);
    expect(node.afterTicks()).toEqual(['offers to 1 under 2', 'offers to 2 under 2']);
    node.config = { ...simpleConfig([1, 2]), epoch: 2, learners: [SELF] };
    expect(node.afterTicks()).toContain('offers to 1 under 2');
    node.config = { ...simpleConfig([1, 2, SELF]), epoch: 2 };
    expect(node.afterTicks()).toEqual([]);
  });

  it('offers a replica again under a newer version, also if it is a member under an older one', () => {
    node.isHeld = true;
    node.config = { ...simpleConfig([1, 2, SELF]), epoch: 1 };
    expect(node.hears(3, 2, true)).toEqual(['writes down 3']);
    node.written();
    expect(node.hears(4, 2, true)).toEqual(['writes down 4']);
  });

  it('deletes a replica only when all groups have moved and it is not placed here', () => {
    node.isHeld = true;
    expect(node.hears(2, 1, false)).toEqual([]);
    expect(node.hears(2, 2, false)).toEqual(['removes by 2']);
    expect(node.isHeld).toBe(false);
    node.written();
    expect(node.afterTicks()).toEqual([]);
  });

  it('deletes none that was offered under this version or a newer one, even after a restart', () => {
    node.keeper.loaded(PARTITION, { ...tombstoneOf(0), removed: false, placement: 3 });
    node.isHeld = true;
    // Group 0 is behind on this node: it is at 2, and the node learned of 3 before the restart.
    expect(node.hears(2, 2, false)).toEqual([]);
    expect(node.hears(3, 2, true)).toEqual(['offers to 1 under 3', 'offers to 2 under 3']);
    expect(node.hears(3, 3, false)).toEqual([]);
    expect(node.hears(4, 4, false)).toEqual(['removes by 4']);
  });

  it('deletes none whose log has a configuration of a newer version', () => {
    node.isHeld = true;
    node.newestEpoch = 3;
    expect(node.hears(2, 2, false)).toEqual([]);
    node.newestEpoch = 2;
    expect(node.afterTicks()).toEqual(['removes by 2']);
  });

  it('deletes no replica that is about to be offered', () => {
    expect(node.hears(2, 1, true)).toEqual(['makes', 'writes down 2']);
    // The offer is not on disk yet, and the version that asked for it is over.
    expect(node.hears(2, 2, false)).toEqual([]);
    expect(node.hears(3, 3, false)).toEqual(['removes by 3']);
  });

  it('brings a replica back that it deleted, by a newer version and no older one', () => {
    node.isHeld = true;
    node.hears(3, 3, false);
    expect(node.hears(4, 3, true)).toEqual([]);
    node.written();
    expect(node.afterTicks()).toEqual(['brings back by 4', 'writes down 4']);
  });

  it('brings no replica back by an older list after a restart', () => {
    node = new Node();
    node.keeper.loaded(PARTITION, tombstoneOf(3));
    expect(node.hears(2, 2, true)).toEqual([]);
    expect(node.hears(3, 3, true)).toEqual([]);
    expect(node.hears(4, 3, true)).toEqual(['brings back by 4', 'writes down 4']);
  });

  it('sends the offers of one write to each node in one frame', () => {
    const partitionCount = 3_000;
    const held = new Set<number>();
    const writes: (() => void)[] = [];
    const frames: string[] = [];
    const keeper = new ReplicaKeeper({
      nodeId: SELF,
      raft: {
        configOf: () => simpleConfig([]),
        offerGroup: (_group: number, _version: number, done: () => void) => writes.push(done),
      } as unknown as MultiRaft,
      placement: {
        partitionCount,
        replicasOf: () => [1, 2, SELF],
        candidatesOf: () => [1, 2, SELF],
      } as unknown as ClusterPlacement,
      replicas: {
        has: (partition) => held.has(partition),
        add: (partition) => held.add(partition),
        drop: () => undefined,
      },
      isConnected: () => true,
      offer: (to, _version, partitions) => frames.push(`${partitions.length} to ${to}`),
    });
    keeper.update({ version: 2, settledVersion: 1 } as MetaState);
    keeper.check();
    for (const done of writes) done();
    keeper.tick();
    expect(frames).toEqual(['3000 to 1', '3000 to 2']);
  });
});
