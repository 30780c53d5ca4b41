/**
 * Random histories of a group whose members change all the time: crashes with writes in flight, cut links, lost,
 * late and repeated messages, slow disks, snapshots, and nodes that are switched off for good as soon as their
 * removal is complete. One leader per term, one state and one configuration per index, and progress in the end.
 */
import { describe, expect, it } from 'vitest';
import { assert } from '../../raft/assert.ts';
import { isJoint, type MembershipStep, membersOf, simpleConfig } from '../../raft/membership.ts';
import type { NodeId } from '../../raft/types.ts';
import { Cluster, chunkReads } from './driver/cluster.ts';
import type { Node } from './driver/node.ts';
import { GROUP } from './driver/options.ts';
import { eachSeed, seeded, someSeeds } from './seeded.ts';

const STEPS = 2_500;
const NODES_MAX = 12;

class Changes {
  readonly cluster: Cluster;
  readonly #random: (bound: number) => number;
  /** Removed, and never started again. */
  readonly #retired = new Set<NodeId>();
  readonly #lossPercent: number;
  readonly #repeatPercent: number;
  readonly #reorderPercent: number;
  readonly #syncPercent: number;
  readonly #faultPerMille: number;
  readonly #changePerMille: number;
  #newest: NodeId;
  #proposals = 0;
  completed = 0;
  reads = 0;

  constructor(seed: number) {
    const random = seeded(seed);
    this.#random = random;
    this.#newest = 1 + random(4);
    this.cluster = new Cluster({
      voters: this.#newest,
      seed,
      options: {
        raft: {
          heartbeatTicks: 1,
          electionTicks: 5,
          appendBytesMax: 1 + random(400),
          inflight: { messagesMax: 1 + random(8), bytesMax: 4_000 },
          uncommittedBytesMax: 4_000,
        },
        snapshotEveryBytes: random(3) === 0 ? 1 << 30 : 200 + random(1_000),
        keepLogBytes: random(300),
        snapshotWriteBytesMax: 50 + random(400),
        writeBytesMax: random(2) === 0 ? 1 << 20 : 1 + random(3_000),
        applyBytesMax: 1 + random(200),
        diskStallTicksMax: 2 + random(40),
        streams: { outgoingMax: 1 + random(3), silentTicksMax: 3 + random(10) },
      },
    });
    this.#lossPercent = random(15);
    this.#repeatPercent = random(10);
    this.#reorderPercent = random(3) === 0 ? random(40) : 0;
    this.#syncPercent = 5 + random(60);
    this.#faultPerMille = random(50);
    this.#changePerMille = 20 + random(150);
  }

  #pick<T>(from: readonly T[]): T | undefined {
    return from[this.#random(Math.max(1, from.length))];
  }

  async run(): Promise<void> {
    for (let i = 0; i < STEPS; i += 1) {
      await chunkReads();
      this.#step();
      this.cluster.checkLeaders();
    }
  }

  #step(): void {
    const { cluster } = this;
    cluster.now += this.#random(4);
    if (this.#random(100) < 50) this.#pick(cluster.up)?.raft.tick();
    for (const node of cluster.up) {
      if (node.hasTurn && this.#random(100) < 70) node.turn();
      if (node.isWriting && this.#random(100) < this.#syncPercent) node.sync();
    }
    for (let count = cluster.up.length * 2; count > 0 && cluster.queue.length > 0; count -= 1) {
      const at = this.#random(100) < this.#reorderPercent ? this.#random(cluster.queue.length) : 0;
      const [parcel] = cluster.queue.splice(at, 1);
      if (parcel === undefined || this.#random(100) < this.#lossPercent) continue;
      cluster.deliver(parcel);
      if (this.#random(100) < this.#repeatPercent) cluster.queue.push(parcel);
    }
    if (this.#random(100) < 25) {
      this.#proposals += 1;
      this.#anyLeader()?.propose(`p${this.#proposals}${'x'.repeat(this.#random(60))}`);
    }
    if (this.#random(100) < 10) this.#read();
    if (this.#random(1_000) < this.#changePerMille) this.#change();
    if (this.#random(1_000) < this.#faultPerMille) this.#fault();
    if (this.#random(100) < 4) this.#pick(this.#down())?.start();
  }

  #down(): Node[] {
    return [...this.cluster.nodes.values()].filter(({ id, isUp }) => !isUp && !this.#retired.has(id));
  }

  /** Now and then one that does not know that it was deposed. */
  #anyLeader(): Node | undefined {
    return this.#pick(this.cluster.up.filter(({ isLeader }) => isLeader));
  }

  /** Whatever was applied anywhere before a read was asked for may have been answered: the read must see it. */
  #read(): void {
    const leader = this.#anyLeader();
    const known = this.cluster.appliedMax;
    leader?.raft.readIndex(GROUP, (index) => {
      if (index === undefined) return;
      this.reads += 1;
      assert(index >= known, `a read at ${index} misses what was applied up to ${known}`);
      assert(leader.app.index >= index, `a read at ${index} is told before that is applied`);
    });
  }

  #change(): void {
    const { cluster } = this;
    const leader = this.#anyLeader();
    if (leader === undefined) return;
    const steps = this.#stepsFor(leader);
    if (steps.length === 0) return;
    // Now and then in the name of an outdated placement, which is refused.
    const epoch = Math.max(0, leader.status.config.epoch + this.#random(4) - 1);
    leader.raft.changeMembership(GROUP, steps, epoch, (result) => {
      if (!result.ok) return;
      this.completed += 1;
      // Who was removed is switched off: nobody may need it any more.
      for (const { kind, node } of steps) {
        if (kind !== 'remove' || this.#random(3) === 0) continue;
        this.#retired.add(node);
        if (cluster.node(node).isUp) cluster.node(node).crash(this.#random(2) === 0 ? 'lost' : 'kept');
      }
    });
  }

  #stepsFor(leader: Node): MembershipStep[] {
    const { voters, learners } = leader.status.config;
    const voter = this.#pick(voters) ?? 0;
    const learner = this.#pick(learners);
    switch (this.#random(7)) {
      case 0:
      case 1:
        if (learners.length < 2 && this.#random(2) === 0) return this.#newLearner();
        if (learner === undefined) return this.#newLearner();
        return [{ kind: 'promote', node: learner }];
      case 2:
        return learner === undefined
          ? this.#newLearner()
          : [
              { kind: 'promote', node: learner },
              { kind: 'remove', node: voter },
            ];
      case 3:
        // Many at once: the old and the new voters hardly know each other.
        return [
          ...learners.map((node) => ({ kind: 'promote', node }) as const),
          ...voters.slice(0, learners.length).map((node) => ({ kind: 'remove', node }) as const),
        ];
      case 4:
        return [{ kind: 'demote', node: voter }];
      case 5:
        return [{ kind: 'remove', node: learner ?? voter }];
      default:
        return [{ kind: 'remove', node: voter }];
    }
  }

  #newLearner(): MembershipStep[] {
    const { cluster } = this;
    if (this.#newest >= NODES_MAX) return [];
    this.#newest += 1;
    cluster.add(this.#newest);
    return [{ kind: 'addLearner', node: this.#newest }];
  }

  #fault(): void {
    const { cluster } = this;
    const leader = this.#random(2) === 0 ? cluster.leader : undefined;
    const target = leader ?? this.#pick([...cluster.nodes.values()]);
    if (target === undefined) return;
    switch (this.#random(5)) {
      case 0:
        if (!target.isUp) return;
        target.crash(this.#random(2) === 0 ? 'lost' : 'kept');
        if (this.#random(2) === 0) for (const other of cluster.up) other.raft.peerLost(target.id);
        return;
      case 1:
        cluster.isolate(target.id);
        return;
      case 2:
        cluster.passes = ({ from }) => from !== target.id;
        return;
      case 3: {
        const side = [...cluster.nodes.keys()].filter(() => this.#random(2) === 0);
        cluster.isolate(...side);
        return;
      }
      default:
        cluster.heal();
    }
  }

  /** The faults end: a change that was begun is completed, and what is proposed then is applied by every member. */
  async healAndExpectProgress(): Promise<void> {
    const { cluster } = this;
    cluster.heal();
    for (const node of this.#down()) node.start();
    const before = cluster.appliedMax;
    await cluster.until(() => {
      const { leader } = cluster;
      return leader !== undefined && !isJoint(leader.status.config) && leader.status.applied >= before;
    }, 500);
    await cluster.commit('after all');
    const members = (): Node[] =>
      membersOf(cluster.leader?.status.config ?? simpleConfig([]))
        .filter((id) => !this.#retired.has(id))
        .map((id) => cluster.node(id));
    await cluster.until(() => {
      const config = JSON.stringify(cluster.leader?.status.config);
      return members().every(
        ({ app, status }) => app.index === cluster.appliedMax && JSON.stringify(status.config) === config,
      );
    }, 500);
    assert(cluster.appliedMax > before, 'what is proposed after all faults is applied');
  }
}

describe('random histories of a group that changes', () => {
  it('60, 61, 65: keep every promise and end in progress', async () => {
    let completed = 0;
    let reads = 0;
    await eachSeed(someSeeds(100, 20), async (seed) => {
      const changes = new Changes(seed);
      await changes.run();
      await changes.healAndExpectProgress();
      completed += changes.completed;
      reads += changes.reads;
    });
    // They do happen.
    expect(completed).toBeGreaterThan(100);
    expect(reads).toBeGreaterThan(1_000);
  });
});
