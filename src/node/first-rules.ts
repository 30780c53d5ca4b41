/**
 * Makes a node that knows nothing of group 0 avoid leading. Such a node knows no rules, and a new partition gets
 * its first rules from its leader. So it lets others lead, which may reach group 0: if the link between two of
 * three nodes is cut, both still are in a majority. Driven by ticks.
 */
import type { MultiRaft } from '../../raft/driver/multi-raft.ts';
import type { MetaState } from '../meta/cluster-state.ts';

/** What `FirstRules` needs. */
export interface FirstRulesInit {
  readonly raft: Pick<MultiRaft, 'avoidLeading'>;
  /** The state of group 0 on this node. */
  readonly state: () => MetaState | undefined;
  /** Length of an election. */
  readonly electionTicks: number;
}

/** Longer than it takes to elect a leader of group 0 and for it to reach this node. */
const ELECTIONS = 5;

/** The check of one node. */
export class FirstRules {
  readonly #init: FirstRulesInit;
  /** Ticks since the start during which the node has known nothing. */
  #unknownTicks = 0;

  constructor(init: FirstRulesInit) {
    this.#init = init;
  }

  /** Call once per tick. */
  tick(): void {
    const { raft, state, electionTicks } = this.#init;
    const patienceTicks = ELECTIONS * electionTicks;
    const isUnknown = state() === undefined;
    const wasLong = this.#unknownTicks >= patienceTicks;
    this.#unknownTicks = isUnknown ? this.#unknownTicks + 1 : 0;
    const overdue = this.#unknownTicks - patienceTicks;
    // Repeated, as the node may be elected nevertheless.
    if (overdue >= 0 && overdue % electionTicks === 0) raft.avoidLeading('rulesUnknown', true);
    else if (!isUnknown && wasLong) raft.avoidLeading('rulesUnknown', false);
  }
}
