/** A node adds up the bytes of its partitions, and peers report how much room they have. */
import { describe, expect, it } from 'vitest';
import type { Room } from '../../src/limiter/state/state-size.ts';
import { type CapacityReport, CapacityWatch, IDLE_CHECKS } from '../../src/partition/capacity-watch.ts';
import {
  NodeBudget,
  PeerRooms,
  snapshotEveryBytes,
  stateBytesDefault,
} from '../../src/partition/node-budget.ts';

class FakeReplica {
  stateBytes = 0;
  room: Room = 'free';
  reported = 0;
  /** A partition that was not yet searched for idle items. */
  keys = 0;
  readonly housekeeping = {
    check: (checksMax: number): number => {
      const checks = Math.min(checksMax, this.keys);
      this.keys -= checks;
      return checks;
    },
  };

  limitRoom(room: Room): void {
    this.room = room;
    this.reported += 1;
  }
}

class Bench {
  now = 0;
  readonly partitions = new Map([
    [0, new FakeReplica()],
    [1, new FakeReplica()],
  ]);
  readonly followers = new Map([
    [0, [1, 2, 3]],
    [1, [1, 4, 5]],
  ]);
  readonly reported: Room[] = [];
  readonly refusing: { isRefusing: boolean; report: CapacityReport }[] = [];
  readonly watch = new CapacityWatch({
    partitions: this.partitions,
    monotonicMillis: () => this.now,
    followersOf: (partition) => this.followers.get(partition) ?? [],
    announce: (room) => this.reported.push(room),
    refusing: (isRefusing, report) => this.refusing.push({ isRefusing, report }),
  });

  pass(millis: number): void {
    for (let passed = 0; passed < millis; passed += 10) {
      this.now += 10;
      this.watch.tick();
    }
  }

  get rooms(): Room[] {
    return [...this.partitions.values()].map(({ room }) => room);
  }
}

describe('a node with a bound', () => {
  it('is full above the bound, exhausted an eighth above that, and free again only well below', () => {
    const budget = new NodeBudget();
    expect(budget.update(1e15)).toBe('free');
    budget.limit(1_600);
    const rooms = [1_600, 1_601, 1_800, 1_801, 1_700, 1_687, 1_550, 1_500, 1_600].map((bytes) =>
      budget.update(bytes),
    );
    expect(rooms).toEqual(['free', 'full', 'full', 'exhausted', 'exhausted', 'full', 'full', 'free', 'free']);
  });

  it('adds up its partitions, reports the room to them and its peers, and reports when it is free again', () => {
    const bench = new Bench();
    bench.watch.limit(1_000);
    const [first, second] = [...bench.partitions.values()];
    first!.stateBytes = 600;
    bench.pass(500);
    expect([bench.reported, bench.rooms, first!.reported]).toEqual([[], ['free', 'free'], 0]);
    second!.stateBytes = 500;
    bench.pass(110);
    expect([bench.reported, bench.rooms]).toEqual([['full'], ['full', 'full']]);
    // It repeats its report for nodes that missed it.
    bench.pass(5_000);
    expect(bench.reported.length).toBeGreaterThan(4);
    expect(bench.reported.length).toBeLessThan(8);
    second!.stateBytes = 0;
    bench.pass(110);
    expect([bench.reported.at(-1), bench.rooms]).toEqual(['free', ['free', 'free']]);
    const { reported } = first!;
    bench.pass(5_000);
    expect(first!.reported).toBe(reported);
  });

  it('is full while the process is short of memory, regardless of its partitions', () => {
    const bench = new Bench();
    bench.watch.limit(1_000);
    bench.watch.shortOfHeap(true);
    bench.pass(200);
    expect(bench.rooms).toEqual(['full', 'full']);
    expect(bench.reported[0]).toBe('full');
    expect(bench.watch.report.room).toBe('full');
    bench.watch.shortOfHeap(false);
    bench.pass(200);
    expect(bench.rooms).toEqual(['free', 'free']);
    expect(bench.reported.at(-1)).toBe('free');
  });

  it('limits partitions with a copy on a full peer, and only until the peer has been silent for a while', () => {
    const bench = new Bench();
    bench.watch.heard(4, 'full');
    bench.watch.tick();
    expect(bench.rooms).toEqual(['free', 'full']);
    bench.watch.heard(2, 'exhausted');
    bench.watch.tick();
    expect(bench.rooms).toEqual(['exhausted', 'full']);
    bench.watch.heard(2, 'free');
    bench.watch.tick();
    expect(bench.rooms).toEqual(['free', 'full']);
    // The peer is down, or its reports do not arrive any more.
    bench.pass(3_200);
    expect(bench.rooms).toEqual(['free', 'free']);
  });

  it('reports once that it refuses, and once that it no longer does', () => {
    const bench = new Bench();
    bench.now = 100_000;
    bench.pass(1_000);
    expect(bench.refusing).toEqual([]);
    for (let i = 0; i < 300; i += 1) {
      bench.watch.refusedOne();
      bench.pass(100);
    }
    expect(bench.refusing.map(({ isRefusing }) => isRefusing)).toEqual([true]);
    expect(bench.watch.report.refused).toBe(300);
    bench.pass(11_000);
    expect(bench.refusing.map(({ isRefusing }) => isRefusing)).toEqual([true, false]);
  });
});

describe('a node with many keys', () => {
  it('searches a bounded number of keys at a time for idle ones, in all partitions in turn', () => {
    const bench = new Bench();
    const replicas = [...bench.partitions.values()];
    const rounds = 4;
    for (const replica of replicas) replica.keys = rounds * IDLE_CHECKS;
    bench.pass(rounds * 100);
    expect(replicas.map(({ keys }) => keys)).toEqual([2 * IDLE_CHECKS, 2 * IDLE_CHECKS]);
    replicas[0]!.keys = 100;
    replicas[1]!.keys = 200;
    bench.pass(100);
    expect(replicas.map(({ keys }) => keys)).toEqual([0, 0]);
  });
});

describe('the rooms of peers', () => {
  it('count as the smallest of them', () => {
    const rooms = new PeerRooms();
    rooms.heard(1, 'full', 0);
    rooms.heard(2, 'exhausted', 0);
    expect(rooms.leastOf([3, 4])).toBe('free');
    expect(rooms.leastOf([3, 1])).toBe('full');
    expect(rooms.leastOf([1, 2, 3])).toBe('exhausted');
    expect(rooms.isAnyShort(3_000)).toBe(true);
    expect(rooms.isAnyShort(3_001)).toBe(false);
  });
});

describe('the memory of a node', () => {
  const gibibyte = 1 << 30;
  const small = { heapBytesMax: 140 << 20, memoryBytes: 8 * gibibyte };

  it('is used for keys and ids to a quarter', () => {
    expect(stateBytesDefault(small)).toBe(35 << 20);
    expect(stateBytesDefault({ heapBytesMax: 4 * gibibyte, memoryBytes: gibibyte })).toBe(256 << 20);
  });

  it('leaves little for logs on a small machine', () => {
    expect(snapshotEveryBytes({ ...small, heapBytesMax: 4 * gibibyte }, 17, 4 << 20)).toBe(4 << 20);
    const every = snapshotEveryBytes(small, 17, 4 << 20);
    expect(every * 17 * 5).toBeLessThan(small.heapBytesMax / 7);
    expect(snapshotEveryBytes(small, 4_096, 4 << 20)).toBe(65_536);
  });
});
