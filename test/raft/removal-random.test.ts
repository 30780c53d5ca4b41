/**
 * Random histories of a group that moves between a few nodes again and again. Replicas are removed when the rules in
 * docs/internals/raft.md ("Removing a replica") allow it, and come back. There are crashes, partitions, and lost,
 * repeated and very late messages. There must be one leader per term, one state per index, no lost entries, and
 * progress in the end.
 *
 * Each node learns the placement late, as from group 0: first a new version, later that it is settled.
 */
import { describe, expect, it } from 'vitest';
import { assert } from '../../raft/assert.ts';
import type { RandomBelow } from '../../raft/core-state.ts';
import { isJoint, membersOf } from '../../raft/membership.ts';
import type { GroupConfig, NodeId } from '../../raft/types.ts';
import { nextStep } from '../../src/meta/group-mover.ts';
import { Chaos, drawOptions } from './driver/chaos.ts';
import { Cluster } from './driver/cluster.ts';
import type { Node } from './driver/node.ts';
import { GROUP } from './driver/options.ts';
import { eachSeed, seeded, someSeeds } from './seeded.ts';

const STEPS = 4_000;
const NODES = 6;

/** The placement as one node knows it. It survives crashes and may be arbitrarily old. */
interface Knowledge {
  version: number;
  settled: number;
  /** By node: the version of the placement under which it last offered to be removed. */
  readonly offers: Map<NodeId, number>;
  /** Its offers since its process began. */
  offered: number;
}

class Moves {
  readonly cluster: Cluster;
  readonly #random: RandomBelow;
  readonly #chaos: Chaos;
  /** By version, from 0: the nodes that should hold the group. */
  readonly #placements: (readonly NodeId[])[];
  readonly #knowledge = new Map<NodeId, Knowledge>();
  #settled = 0;
  removals = 0;
  returns = 0;

  constructor(seed: number) {
    const random = seeded(seed);
    this.#random = random;
    const founders = 1 + random(3);
    this.cluster = new Cluster({ voters: founders, seed, options: drawOptions(random) });
    this.#placements = [Array.from({ length: founders }, (_, i) => i + 1)];
    for (let id = founders + 1; id <= NODES; id += 1) this.cluster.add(id);
    for (const id of this.cluster.nodes.keys()) {
      this.#knowledge.set(id, { version: 0, settled: 0, offers: new Map(), offered: 0 });
    }
    this.#chaos = new Chaos(this.cluster, random, {
      crashed: ({ id }) => {
        this.#of(id).offered = 0;
      },
    });
  }

  #of(id: NodeId): Knowledge {
    const known = this.#knowledge.get(id);
    assert(known !== undefined, `node ${id} knows something`);
    return known;
  }

  #wantedBy(version: number): readonly NodeId[] {
    return this.#placements[version] ?? [];
  }

  run(): Promise<void> {
    return this.#chaos.run(STEPS, () => {
      const node = this.#chaos.pick(this.cluster.up);
      if (node !== undefined) this.#manage(node);
      if (this.#random(100) < 2) this.#newVersion();
    });
  }

  /** A new version, when the one before is settled, and now and then sooner. */
  #newVersion(): void {
    const newest = this.#placements.length - 1;
    if (this.#settled < newest && this.#random(10) > 0) return;
    const nodes = [...this.cluster.nodes.keys()];
    const wanted: NodeId[] = [];
    for (let count = 1 + this.#random(3); count > 0; count -= 1) {
      const [node] = nodes.splice(this.#random(nodes.length), 1);
      if (node !== undefined) wanted.push(node);
    }
    this.#placements.push(wanted);
  }

  /** The actions that follow from the placement as the node knows it. */
  #manage(node: Node): void {
    const known = this.#of(node.id);
    if (this.#random(4) === 0)
      known.version = Math.min(known.version + 1 + this.#random(2), this.#placements.length - 1);
    if (this.#random(4) === 0 && this.#settled <= known.version) known.settled = this.#settled;
    const { version } = known;
    if (this.#wantedBy(version).includes(node.id)) this.#offer(node, known);
    else if (known.settled === version) this.#maybeRemove(node, version);
    if (node.isLeader) this.#lead(node, known);
  }

  #offer(node: Node, known: Knowledge): void {
    const { version } = known;
    if (!node.holdsGroup) {
      if (node.tombstone === undefined || version <= node.tombstone.placement) return;
      node.comeBack(version);
      this.returns += 1;
    }
    if (known.offered === version) {
      // The offer is repeated to every node that may lead.
      const other = this.#chaos.pick([...this.cluster.nodes.keys()]) ?? node.id;
      this.#of(other).offers.set(node.id, version);
    } else if (node.disk.get(GROUP)?.placement === version) {
      known.offered = version;
    } else if (this.#random(2) === 0 && (node.disk.get(GROUP)?.placement ?? 0) < version) {
      node.raft.offerGroup(GROUP, version, () => {
        known.offered = version;
      });
    }
  }

  #maybeRemove(node: Node, settled: number): void {
    if (!node.holdsGroup || settled === 0) return;
    const placement = node.disk.get(GROUP)?.placement ?? 0;
    if (settled <= placement || node.raft.newestEpoch(GROUP) > settled || this.#isOffering(node, settled))
      return;
    node.remove(settled);
    this.removals += 1;
  }

  /** An offer under a newer version may be on its way to the disk. */
  #isOffering(node: Node, settled: number): boolean {
    return this.#of(node.id).offered > settled || node.isWriting;
  }

  #lead(node: Node, known: Knowledge): void {
    const { version } = known;
    const config = node.raft.configOf(GROUP);
    if (config === undefined || node.raft.isChanging(GROUP)) return;
    const wanted = { voters: this.#wantedBy(version), learners: [] };
    const mayEnter = (entering: NodeId): boolean => known.offers.get(entering) === version;
    const step = nextStep(config, wanted, { mayEnter, mayLeave: () => true });
    if (step === 'waits') return;
    if (step === 'none') {
      if (config.epoch === version) this.#reported(version);
      else node.raft.changeMembership(GROUP, [], version, () => undefined);
      return;
    }
    node.raft.changeMembership(GROUP, step, version, () => undefined);
  }

  /** Settles the newest version only, as group 0 does. */
  #reported(version: number): void {
    if (version === this.#placements.length - 1) this.#settled = version;
  }

  /**
   * The faults end: the newest version is settled, all other nodes remove their replicas, and proposals are applied.
   */
  async healAndExpectProgress(): Promise<void> {
    const { cluster } = this;
    this.#chaos.end();
    const before = cluster.appliedMax;
    const newest = this.#placements.length - 1;
    const wanted = this.#wantedBy(newest);
    const managed = (condition: () => boolean): Promise<void> =>
      cluster.until(() => {
        for (let i = 0; i < 4; i += 1) for (const node of cluster.up) this.#manage(node);
        return condition();
      }, 3_000);
    await managed(() => this.#settled === newest && cluster.leader !== undefined);
    await cluster.commit('after all');
    await managed(() =>
      [...cluster.nodes.values()].every((node) =>
        wanted.includes(node.id)
          ? node.holdsGroup && node.app.index === cluster.appliedMax && isSettled(node.status.config, wanted)
          : !node.holdsGroup || newest === 0,
      ),
    );
    assert(cluster.appliedMax > before, 'what is proposed after all faults is applied');
  }
}

function isSettled(config: GroupConfig, wanted: readonly NodeId[]): boolean {
  const members = membersOf(config);
  return !isJoint(config) && members.length === wanted.length && wanted.every((id) => members.includes(id));
}

describe('random histories of a group whose replicas are removed and come back', () => {
  it('break no invariant, and the group makes progress in the end', async () => {
    let removals = 0;
    let returns = 0;
    const seeds = someSeeds(8, 2);
    await eachSeed(seeds, async (seed) => {
      const moves = new Moves(seed);
      await moves.run();
      await moves.healAndExpectProgress();
      removals += moves.removals;
      returns += moves.returns;
    });
    // Removals and returns do happen.
    expect(removals).toBeGreaterThan(3 * seeds.length);
    expect(returns).toBeGreaterThan(3 * seeds.length);
  });
});
