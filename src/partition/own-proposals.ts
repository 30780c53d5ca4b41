/**
 * What a leader proposes for itself, before the requests that wait: rules that changed, that history begins again, and sweeps.
 * It knows what is due and what became of it; the partition asks for its turn and applies what is committed.
 */
import type { Entry } from '../../raft/types.ts';
import { encodeRules, encodeSweep } from '../limiter/log/command.ts';
import type { RuleTable } from '../limiter/rules.ts';
import type { LimiterStateMachine } from '../limiter/state-machine.ts';
import { HistoryBegin } from './history-begin.ts';

export interface OwnProposalsInit {
  readonly machine: LimiterStateMachine;
  /** In milliseconds since 1970. */
  readonly wallMillis: () => number;
  /** Rules of this version are proposed: what others matched is decided by other rules. */
  readonly rulesTaken: (version: number) => void;
}

export class OwnProposals {
  readonly #init: OwnProposalsInit;
  /** The newest that group 0 has, as far as this node knows. */
  #wantedRules: RuleTable | undefined;
  #proposedRules = { version: 0, term: 0 };
  readonly #historyBegin = new HistoryBegin();
  /** What is being proposed; undefined: requests. */
  #proposing: 'rules' | 'historyBegins' | 'sweep' | undefined;
  /** The log had no room for what was proposed last. The next applied entry makes room; to ask before that asks in vain. */
  waitsForRoom = false;

  constructor(init: OwnProposalsInit) {
    this.#init = init;
  }

  wantRules(table: RuleTable): void {
    if (table.version > (this.#wantedRules?.version ?? 0)) this.#wantedRules = table;
  }

  areRulesDue(term: number): boolean {
    return (this.#wantedRules?.version ?? 0) > this.rulesAhead(term);
  }

  /** The version of the rules that decide what is proposed next: they are applied, or in the log before it. */
  rulesAhead(term: number): number {
    const proposed = this.#proposedRules.term === term ? this.#proposedRules.version : 0;
    return Math.max(proposed, this.#init.machine.ruleTable?.version ?? 0);
  }

  isHistoryDue(term: number): boolean {
    return this.#historyBegin.isDue(this.#init.machine, term);
  }

  /** The next entry for the log; undefined: the requests have their turn. */
  take(term: number, isSweepDue: () => boolean): Uint8Array | undefined {
    const { rulesTaken, wallMillis } = this.#init;
    const rules = this.#wantedRules;
    if (rules !== undefined && this.areRulesDue(term)) {
      this.#proposedRules = { version: rules.version, term };
      this.#proposing = 'rules';
      rulesTaken(rules.version);
      return encodeRules(rules);
    }
    if (this.isHistoryDue(term)) {
      this.#proposing = 'historyBegins';
      return this.#historyBegin.take(term, wallMillis());
    }
    if (!isSweepDue()) return undefined;
    this.#proposing = 'sweep';
    return encodeSweep();
  }

  /** What was taken last is in this entry now; undefined: in none. Returns false if requests were taken last, and not this. */
  proposed(entry: Entry | undefined): boolean {
    const proposing = this.#proposing;
    this.#proposing = undefined;
    this.waitsForRoom = entry === undefined && (proposing === 'rules' || proposing === 'historyBegins');
    if (proposing === 'rules' && entry === undefined) this.#proposedRules = { version: 0, term: 0 };
    if (proposing === 'historyBegins' && entry === undefined) this.#historyBegin.refused();
    return proposing !== undefined;
  }
}
