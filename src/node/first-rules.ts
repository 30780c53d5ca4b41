/**
 * A node that hears nothing of group 0 knows no rules, and a partition that is new gets its first rules from the node that leads
 * it. So such a node lets others lead, which may hear more: a cut between two nodes of three leaves both of them in majorities.
 * Driven by ticks.
 */
import type { MultiRaft } from '../../raft/driver/multi-raft.ts';
import type { MetaState } from '../meta/cluster-state.ts';

export interface FirstRulesInit {
  readonly raft: Pick<MultiRaft, 'avoidLeading'>;
  /** As group 0 says it here. */
  readonly state: () => MetaState | undefined;
  /** How long an election takes. */
  readonly electionTicks: number;
}

/** Longer than a leader of group 0 needs to be elected, and to tell a node that it can reach. */
const ELECTIONS = 5;

export class FirstRules {
  readonly #init: FirstRulesInit;
  /** Since when the node knows nothing, counted from its start. */
  #unknownTicks = 0;

  constructor(init: FirstRulesInit) {
    this.#init = init;
  }

  tick(): void {
    const { raft, state, electionTicks } = this.#init;
    const patienceTicks = ELECTIONS * electionTicks;
    const isUnknown = state() === undefined;
    const wasLong = this.#unknownTicks >= patienceTicks;
    this.#unknownTicks = isUnknown ? this.#unknownTicks + 1 : 0;
    const overdue = this.#unknownTicks - patienceTicks;
    // Again and again: it may be elected after all.
    if (overdue >= 0 && overdue % electionTicks === 0) raft.avoidLeading('rulesUnknown', true);
    else if (!isUnknown && wasLong) raft.avoidLeading('rulesUnknown', false);
  }
}
