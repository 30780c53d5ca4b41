/**
 * Runs the partitions of one node or of three in one process, without sockets, disks and timers. Partitions and driver
 * are the real ones, the store is in memory, and frames are encoded and decoded as between processes. The caller
 * advances time.
 */
import { assert } from '../../raft/assert.ts';
import { GroupClock } from '../../raft/driver/group-clock.ts';
import { MULTI_RAFT_DEFAULTS, MultiRaft } from '../../raft/driver/multi-raft.ts';
import { validateRuleTable } from '../../src/limiter/rules.ts';
import { Partition } from '../../src/partition/partition.ts';
import { PARTITION_DEFAULTS } from '../../src/partition/partition-options.ts';
import { groupOfPartition } from '../../src/partition/placement.ts';
import { decodePeerMessages, encodePeerMessages } from '../../src/wire/peer-messages.ts';
import { MemoryStore } from '../../storage/memory-store.ts';
import { seededUnit } from '../random.ts';

const START_MILLIS = 1_700_000_000_000;
const TICK_MILLIS = 10;
const ELECTION_TICKS_MAX = 10_000;
const LEADER = 1;
/** Length of the window in rounds. It is short, so that grants expire as fast as they come: a steady state. */
export const WINDOW_ROUNDS = 100;

const RULES = validateRuleTable({
  version: 1,
  rules: [
    { id: 'open', limit: 1_000_000, windowMillis: WINDOW_ROUNDS, clock: 'cluster' },
    { id: 'spent', limit: 1, windowMillis: 3_600_000, clock: 'cluster' },
  ],
});

export interface GroupsInMemoryInit {
  /** Each node holds all groups; the first node leads them. */
  readonly nodes: 1 | 3;
  readonly groups: number;
}

interface MemoryNode {
  readonly raft: MultiRaft;
  readonly partitions: readonly Partition[];
}

export class GroupsInMemory {
  readonly #groups: number;
  readonly #unit = seededUnit(1);
  #nowMillis = START_MILLIS;
  /** Pending tasks in order: turns of the event loop, finished writes, arriving frames. */
  #tasks: (() => void)[] = [];
  #nodes: ReadonlyMap<number, MemoryNode> = new Map();

  private constructor(groups: number) {
    this.#groups = groups;
  }

  /** Starts the nodes. On return the first node leads all groups. */
  static start({ nodes, groups }: GroupsInMemoryInit): GroupsInMemory {
    const all = new GroupsInMemory(groups);
    const ids = Array.from({ length: nodes }, (_, i) => i + 1);
    all.#nodes = new Map(ids.map((id) => [id, all.#node(id, ids)]));
    for (const { raft } of all.#nodes.values()) raft.start();
    for (let ticks = 0; !all.#isReady; ticks += 1) {
      assert(ticks < ELECTION_TICKS_MAX, 'the first node is elected in all groups');
      all.tick();
    }
    return all;
  }

  /** The partitions of the leading node. */
  get partitions(): readonly Partition[] {
    return this.#nodes.get(LEADER)?.partitions ?? [];
  }

  get nowMillis(): number {
    return this.#nowMillis;
  }

  /** Runs all pending work to its end, then advances time by a millisecond. */
  round(): void {
    this.#drain();
    this.#nowMillis += 1;
  }

  tick(): void {
    this.#nowMillis += TICK_MILLIS;
    for (const { raft } of this.#nodes.values()) raft.tick();
    this.#drain();
  }

  get #isReady(): boolean {
    return this.partitions.every(({ leader, ruleTable }) => leader === LEADER && ruleTable !== undefined);
  }

  #drain(): void {
    while (this.#tasks.length > 0) {
      const tasks = this.#tasks;
      this.#tasks = [];
      for (const task of tasks) task();
    }
  }

  #node(id: number, ids: readonly number[]): MemoryNode {
    const soon = (task: () => void): void => {
      this.#tasks.push(task);
    };
    const raft = new MultiRaft({
      id,
      store: new MemoryStore({ schedule: soon }),
      random: (bound) => Math.floor(this.#unit() * bound),
      monotonicMillis: () => this.#nowMillis,
      options: MULTI_RAFT_DEFAULTS,
      defer: soon,
      send: (to, messages) => {
        for (const payload of encodePeerMessages(messages)) soon(() => this.#receive(id, to, payload));
      },
      fatal(error) {
        throw error;
      },
    });
    const partitions = Array.from({ length: this.#groups }, (_, i) => this.#partition(id, i, raft));
    for (const [i, app] of partitions.entries())
      raft.addGroup({
        group: groupOfPartition(i),
        voters: ids,
        preferredLeader: LEADER,
        app,
        stored: undefined,
      });
    return { raft, partitions };
  }

  #receive(from: number, to: number, payload: Uint8Array): void {
    this.#nodes.get(to)?.raft.receive(decodePeerMessages(payload, from, to));
  }

  #partition(nodeId: number, partition: number, raft: MultiRaft): Partition {
    const nowMillis = (): number => this.#nowMillis;
    const replica = new Partition({
      partition,
      nodeId,
      clock: new GroupClock(nowMillis, nowMillis),
      options: PARTITION_DEFAULTS,
      monotonicMillis: nowMillis,
      wallMillis: nowMillis,
      requestProposal: () => raft.requestProposal(groupOfPartition(partition)),
      readIndex: (done) => raft.readIndex(groupOfPartition(partition), done),
      leaderChanged: () => undefined,
    });
    replica.wantRules(RULES);
    return replica;
  }
}
