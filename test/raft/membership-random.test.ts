/**
 * Random histories of a group whose members change all the time: crashes with writes in flight, partitions, lost, late
 * and repeated messages, slow disks, snapshots, and nodes that are switched off for good as soon as their removal is
 * complete. There must be one leader per term, one state and one configuration per index, and progress in the end.
 */
import { describe, expect, it } from 'vitest';
import { assert } from '../../raft/assert.ts';
import type { RandomBelow } from '../../raft/core-state.ts';
import { isJoint, type MembershipStep, membersOf, simpleConfig } from '../../raft/membership.ts';
import type { NodeId } from '../../raft/types.ts';
import { Chaos, drawOptions } from './driver/chaos.ts';
import { Cluster } from './driver/cluster.ts';
import type { Node } from './driver/node.ts';
import { GROUP } from './driver/options.ts';
import { eachSeed, seeded, someSeeds } from './seeded.ts';

const STEPS = 2_500;
const NODES_MAX = 12;

class Changes {
  readonly cluster: Cluster;
  readonly #random: RandomBelow;
  readonly #chaos: Chaos;
  /** Nodes that were removed and never start again. */
  readonly #retired = new Set<NodeId>();
  readonly #changePerMille: number;
  #newest: NodeId;
  completed = 0;
  reads = 0;

  constructor(seed: number) {
    const random = seeded(seed);
    this.#random = random;
    this.#newest = 1 + random(4);
    this.cluster = new Cluster({
      voters: this.#newest,
      seed,
      options: { ...drawOptions(random), diskStallTicksMax: 2 + random(40) },
    });
    this.#chaos = new Chaos(this.cluster, random, { mayStart: ({ id }) => !this.#retired.has(id) });
    this.#changePerMille = 20 + random(150);
  }

  run(): Promise<void> {
    return this.#chaos.run(STEPS, () => {
      if (this.#random(100) < 10) this.#read();
      if (this.#random(1_000) < this.#changePerMille) this.#change();
    });
  }

  /** Each entry that was applied anywhere before a read began may have been answered: the read must see it. */
  #read(): void {
    const leader = this.#chaos.anyLeader(GROUP);
    const known = this.cluster.appliedMax;
    leader?.raft.readIndex(GROUP, (index) => {
      if (index === undefined) return;
      this.reads += 1;
      assert(index >= known, `a read at ${index} misses what was applied up to ${known}`);
      assert(leader.app.index >= index, `a read at ${index} is answered before that is applied`);
    });
  }

  #change(): void {
    const { cluster } = this;
    const leader = this.#chaos.anyLeader(GROUP);
    if (leader === undefined) return;
    const steps = this.#stepsFor(leader);
    if (steps.length === 0) return;
    // Now and then for an outdated placement, which is refused.
    const epoch = Math.max(0, leader.status.config.epoch + this.#random(4) - 1);
    leader.raft.changeMembership(GROUP, steps, epoch, (result) => {
      if (!result.ok) return;
      this.completed += 1;
      // A removed node is switched off: no other node may need it any more.
      for (const { kind, node } of steps) {
        if (kind !== 'remove' || this.#random(3) === 0) continue;
        this.#retired.add(node);
        if (cluster.node(node).isUp) cluster.node(node).crash(this.#random(2) === 0 ? 'lost' : 'kept');
      }
    });
  }

  #stepsFor(leader: Node): MembershipStep[] {
    const { voters, learners } = leader.status.config;
    const voter = this.#chaos.pick(voters) ?? 0;
    const learner = this.#chaos.pick(learners);
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
        // Replaces many at once: the old and the new voters hardly overlap.
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

  /** The faults end: a change that was begun is completed, and every member applies the next proposals. */
  async healAndExpectProgress(): Promise<void> {
    const { cluster } = this;
    this.#chaos.end();
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
  it('60, 61, 65: break no invariant, and the group makes progress in the end', async () => {
    let completed = 0;
    let reads = 0;
    const seeds = someSeeds(14, 4);
    await eachSeed(seeds, async (seed) => {
      const changes = new Changes(seed);
      await changes.run();
      await changes.healAndExpectProgress();
      completed += changes.completed;
      reads += changes.reads;
    });
    // Changes, crashes and removals do happen.
    expect(completed).toBeGreaterThan((5 / 3) * seeds.length);
    expect(reads).toBeGreaterThan((50 / 3) * seeds.length);
  });
});
