/** Faults of processes: they die, stop, pause, hand over, or start again with other rules and another list of nodes. */
import { without } from './cuts.ts';
import type { Faults, Hand, Strike } from './nemesis-world.ts';
import type { NetworkFaults } from './network-faults.ts';
import type { SimNode } from './sim-node.ts';

type Name =
  | 'crash'
  | 'crashLeader'
  | 'crashMost'
  | 'crashAll'
  | 'crashLoop'
  | 'crashInside'
  | 'crashRecovering'
  | 'stop'
  | 'handOver'
  | 'pause'
  | 'pauseLeader'
  | 'newRules'
  | 'editFile';

export class ProcessFaults {
  readonly #hand: Hand;
  readonly #network: NetworkFaults;
  /** The newest rule table that nodes are configured with. */

  constructor(hand: Hand, network: NetworkFaults) {
    this.#hand = hand;
    this.#network = network;
  }

  readonly faults: Faults<Name> = {
    crash: ({ victim }) => this.#hand.crash(victim),
    crashLeader: ({ leader }) => this.#hand.crash(leader),
    crashMost: ({ up, nodes }) => {
      const some = this.#hand.random.shuffled(up).slice(0, Math.ceil((nodes.length + 1) / 2));
      for (const node of some) this.#hand.crash(node);
    },
    crashAll: ({ up }) => {
      for (const node of up) this.#hand.crash(node);
    },
    crashLoop: ({ victim }) => this.#crashLoop(victim, this.#hand.random.between(2, 5)),
    crashInside: ({ victim }) => victim.dieAfter(this.#hand.random.between(1, 30), this.#hand.fate()),
    crashRecovering: ({ victim }) => {
      victim.dieRecovering(this.#hand.random.between(2, 3), this.#hand.fate());
      this.#hand.crash(victim);
    },
    stop: ({ victim }) => victim.stop(),
    handOver: (strike) => this.#handOver(strike),
    pause: ({ victim }) => this.#hand.pause(victim),
    pauseLeader: ({ leader }) => this.#hand.pause(leader),
    newRules: (strike) => this.#newRules(strike),
    editFile: ({ victim }) => {
      const { world, random } = this.#hand;
      victim.identity.editFile(
        world.nodes.map(({ id }) => id),
        random,
      );
      this.#hand.crash(victim);
    },
  };

  /** Dies again and again during recovery. */
  #crashLoop(node: SimNode, left: number): void {
    this.#hand.crash(node);
    if (left > 1) this.#hand.later(150, () => this.#crashLoop(node, left - 1));
  }

  #handOver({ leader, all }: Strike): void {
    const { world, random } = this.#hand;
    leader.core?.raft.handOver();
    if (random.chance(0.5)) return;
    // Requests to the new leader wait for the end of the hand-over, even if that node never takes over.
    this.#network.cutFor([[leader.id, random.pick(without(all, [leader.id]))]], 1_000);
    world.crowd(leader, leader);
  }

  /** Replaces the rules in force while requests are on their way. */
  #newRules({ victim }: Strike): void {
    const { tables } = this.#hand.world.settings;
    const asked = victim.core;
    const next = tables.find(({ version }) => version === (asked?.rules.newest?.version ?? 0) + 1);
    if (asked === undefined || next === undefined) return;
    const { version, ...table } = next;
    // The logs show the result.
    victim.inProcess((core) => core.rules.change({ table, ifVersion: version - 1 }, () => undefined));
    const { random } = this.#hand;
    if (random.chance(0.5)) return;
    // Other nodes bring it into force, while requests are on their way.
    this.#hand.later(random.between(1, 500), () => {
      for (const node of this.#hand.world.leaders()) node.core?.raft.handOver();
    });
  }
}
