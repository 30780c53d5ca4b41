/** Faults of the network: nodes that cannot hear each other for a while. */
import type { NodeId } from '../../raft/types.ts';
import { bothWays, Cuts, type Path, ringOf, without } from './cuts.ts';
import type { Faults, Hand, Strike } from './nemesis-world.ts';
import type { SimNode } from './sim-node.ts';

type Name =
  | 'isolate'
  | 'isolateLeader'
  | 'halves'
  | 'oneWay'
  | 'bridge'
  | 'ring'
  | 'clog'
  | 'stuckRequests'
  | 'swizzle'
  | 'break'
  | 'blind';

export class NetworkFaults {
  readonly #hand: Hand;
  readonly #cuts: Cuts;

  constructor(hand: Hand) {
    this.#hand = hand;
    this.#cuts = new Cuts(hand.world.network);
  }

  readonly faults: Faults<Name> = {
    isolate: ({ victim, all }) => this.#cutBoth([victim.id], without(all, [victim.id])),
    isolateLeader: ({ leader, all }) => this.#cutBoth([leader.id], without(all, [leader.id])),
    halves: ({ all }) => {
      const { random } = this.#hand;
      const side = random.shuffled(all).slice(0, random.between(1, all.length - 1));
      this.#cutBoth(side, without(all, side));
    },
    oneWay: (strike) => this.#oneWay(strike),
    bridge: ({ victim, all }) => {
      const rest = this.#hand.random.shuffled(without(all, [victim.id]));
      const half = rest.slice(0, Math.ceil(rest.length / 2));
      this.#cutBoth(half, without(rest, half));
    },
    ring: ({ all }) => this.cutFor(ringOf(this.#hand.random.shuffled(all)), 2_000),
    clog: ({ victim, all }) => this.cutFor([[victim.id, this.#otherThan(victim, all)]], 400),
    stuckRequests: ({ up, leader }) => {
      const others = up.filter((node) => node !== leader && node.isOpen);
      if (others.length > 0) this.#holdRequests(this.#hand.random.pick(others), leader);
    },
    swizzle: ({ all }) => {
      for (const node of all) {
        if (!this.#hand.random.chance(0.5)) continue;
        this.#hand.later(500, () => this.#cutBoth([node], without(all, [node])));
      }
    },
    break: ({ victim, all }) => this.#break(victim.id, this.#otherThan(victim, all)),
    blind: ({ victim }) => this.#blind(victim),
  };

  /** Returns a function that heals these paths. */
  cut(paths: readonly Path[]): () => void {
    return this.#cuts.cut(paths);
  }

  cutFor(paths: readonly Path[], meanMillis: number): void {
    this.#hand.later(meanMillis, this.cut(paths));
  }

  #cutBoth(some: readonly NodeId[], others: readonly NodeId[]): void {
    this.cutFor(bothWays(some, others), 2_000);
  }

  #otherThan(node: SimNode, all: readonly NodeId[]): NodeId {
    return this.#hand.random.pick(without(all, [node.id]));
  }

  #oneWay({ victim, all }: Strike): void {
    const { random } = this.#hand;
    const other = this.#otherThan(victim, all);
    const paths: Path[] = random.chance(0.5)
      ? [[victim.id, other]]
      : without(all, [victim.id]).map((peer) => [victim.id, peer]);
    this.cutFor(random.chance(0.5) ? paths : paths.map(([a, b]) => [b, a]), 2_000);
    // The acknowledgements on this connection are lost with it, so the leader must learn of them again.
    if (random.chance(0.5)) this.#hand.later(2_000, () => this.#break(victim.id, other));
  }

  #break(node: NodeId, other: NodeId): void {
    const { world, random } = this.#hand;
    world.network.break(node, other);
    if (random.chance(0.5)) world.network.break(other, node);
  }

  /**
   * A node's requests to a leader are stuck. When they arrive at last, they may already have been sent on another path
   * and answered.
   */
  #holdRequests(asking: SimNode, leader: SimNode): void {
    const { random } = this.#hand;
    const { crowd, settings, after } = this.#hand.world;
    const heal = this.cut([[asking.id, leader.id]]);
    crowd(asking, leader);
    const deadlines = 0.3 + random.unit() * random.pick([0.7, 3]);
    after(settings.timing.requestDeadlineMillis * deadlines, () => {
      if (this.#hand.isActive) heal();
    });
  }

  /** A node hears nothing of group 0, and everything else: its list of members lags behind. */
  #blind(node: SimNode): void {
    const { network, changeNodes } = this.#hand.world;
    network.censor.blind(node.id, true);
    changeNodes();
    this.#hand.later(8_000, () => network.censor.blind(node.id, false));
  }
}
