/**
 * What a leader proposes on its own, before the waiting requests: new rules, that history begins again, how far UTC is
 * ahead, and sweeps. It keeps track of what is due and what was proposed; the partition calls it for each free place in
 * the log and applies what is committed.
 */
import type { Entry } from '../../raft/types.ts';
import { encodeHistoryBegins, encodeRules, encodeSweep, encodeUtc } from '../limiter/log/command.ts';
import type { RuleTable } from '../limiter/rules.ts';
import type { LimiterStateMachine } from '../limiter/state-machine.ts';
import { UTC_AHEAD_MILLIS_MAX } from '../limiter/state/utc-steps.ts';

/** The dependencies of `OwnProposals`. */
export interface OwnProposalsInit {
  readonly machine: LimiterStateMachine;
  /** In milliseconds since 1970. */
  readonly wallMillis: () => number;
  /** Rules of this version are being proposed. Requests matched by other versions can no longer be decided. */
  readonly rulesTaken: (version: number) => void;
}

/** How far group time plus the logged UTC offset may be behind the wall clocks, in milliseconds. */
export const UTC_LAG_MILLIS_MAX = 1_000;

/** After history was lost, makes each leader propose once that the group runs again. */
class HistoryBegin {
  /**
   * The term of the last proposal. If another leader takes over before it is committed, that leader proposes it itself.
   */
  #term = 0;

  isDue({ awaitsHistory }: LimiterStateMachine, term: number): boolean {
    return awaitsHistory && this.#term !== term;
  }

  /** The entry to propose. Call it only if it is due and there is a place in the log. */
  take(term: number, wallMillis: number): Uint8Array {
    this.#term = term;
    return encodeHistoryBegins(Math.max(0, Math.floor(wallMillis)));
  }

  /** There was no place in the log after all. */
  refused(): void {
    this.#term = 0;
  }
}

/** The proposals of one partition's leader. */
export class OwnProposals {
  readonly #init: OwnProposalsInit;
  /** The newest rules of group 0 that this node knows. */
  #wantedRules: RuleTable | undefined;
  #proposedRules = { version: 0, term: 0 };
  readonly #historyBegin = new HistoryBegin();
  /** What is being proposed; undefined if it is requests. */
  #proposing: 'rules' | 'historyBegins' | 'utc' | 'sweep' | undefined;
  /** How far UTC should be ahead of group time; 0 if that is not worth an entry. */
  #wantedAheadMillis = 0;
  #proposedAhead = { aheadMillis: 0, term: 0 };
  /** The log had no room for the last proposal. Asking again is pointless before the next entry is applied. */
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

  /** The version of the rules that will decide the next proposal: applied already, or before it in the log. */
  rulesAhead(term: number): number {
    const proposed = this.#proposedRules.term === term ? this.#proposedRules.version : 0;
    return Math.max(proposed, this.#init.machine.ruleTable?.version ?? 0);
  }

  isHistoryDue(term: number): boolean {
    return this.#historyBegin.isDue(this.#init.machine, term);
  }

  /**
   * A majority of wall clocks says that UTC is this far ahead of group time. Returns whether that is worth an entry;
   * valid until the next call.
   */
  wantUtc(aheadMillis: number, term: number): boolean {
    const { machine } = this.#init;
    const proposed = this.#proposedAhead.term === term ? this.#proposedAhead.aheadMillis : 0;
    const isLate = aheadMillis > Math.max(proposed, machine.utcAheadMillis) + UTC_LAG_MILLIS_MAX;
    const isDue = isLate && aheadMillis <= UTC_AHEAD_MILLIS_MAX;
    this.#wantedAheadMillis = isDue ? aheadMillis : 0;
    return isDue;
  }

  /** The next entry for the log; undefined if requests may have this place. */
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
    if (this.#wantedAheadMillis > 0) {
      const aheadMillis = this.#wantedAheadMillis;
      this.#wantedAheadMillis = 0;
      this.#proposedAhead = { aheadMillis, term };
      this.#proposing = 'utc';
      return encodeUtc(aheadMillis);
    }
    if (!isSweepDue()) return undefined;
    this.#proposing = 'sweep';
    return encodeSweep();
  }

  /**
   * What was taken last is in this entry now; undefined: in none. Returns false if the last batch was one of requests.
   */
  proposed(entry: Entry | undefined): boolean {
    const proposing = this.#proposing;
    this.#proposing = undefined;
    this.waitsForRoom = entry === undefined && (proposing === 'rules' || proposing === 'historyBegins');
    if (proposing === 'utc' && entry === undefined) this.#proposedAhead = { aheadMillis: 0, term: 0 };
    if (proposing === 'rules' && entry === undefined) this.#proposedRules = { version: 0, term: 0 };
    if (proposing === 'historyBegins' && entry === undefined) this.#historyBegin.refused();
    return proposing !== undefined;
  }
}
