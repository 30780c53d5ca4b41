/**
 * Counts what the listeners of this node answer, with the clocks of the node. The figures are defined in src/usage.
 */
import type { AskAnswer, Question } from '../api/question.ts';
import { UNMATCHED } from '../api/refusals.ts';
import type { UsageColumn, UsageQuery } from '../api/usage.ts';
import { RULES_MAX, type RuleTable } from '../limiter/rules.ts';
import type { NodeUsage } from '../usage/node-usage.ts';
import { MinuteTimes } from '../usage/answer-times.ts';
import { type AlertFigures, RecentFigures } from '../usage/recent-figures.ts';
import { UsageTable } from '../usage/usage-table.ts';
import type { Clocks } from '../api/clocks.ts';

const MINUTE_MILLIS = 60_000;
/** One in this many answers is timed. */
const TIMED_EACH = 8;

/** The usage figures of one node. */
export class ListenerUsage {
  readonly #clocks: Clocks;
  readonly #table = new UsageTable(RULES_MAX);
  readonly #recent = new RecentFigures();
  readonly #minuteTimes = new MinuteTimes();
  #rules: RuleTable | undefined;
  #untilTimed = TIMED_EACH;
  #answered = 0;

  constructor(clocks: Clocks) {
    this.#clocks = clocks;
    this.#turn();
  }

  /** Call about once a second: the minute or the rules may have changed. */
  usesRules(rules: RuleTable | undefined): void {
    this.#turn();
    if (rules === this.#rules || rules === undefined) return;
    this.#rules = rules;
    this.#table.setRules(rules.rules.map(({ id }) => id));
  }

  /**
   * Counts an answer. Returns how long it took, if it was timed. @param startedMillis when the listener had read
   * the request, on the monotonic clock
   */
  answered(question: Question, answer: AskAnswer, startedMillis: number): number | undefined {
    this.#answered += 1;
    // A settlement decides nothing, so it is not counted.
    if (question.settle === true && answer.kind === 'decision') return undefined;
    switch (answer.kind) {
      case 'decision': {
        const { ruleId, allowed } = answer.decision;
        // A blocked customer may be denied without any rule.
        if (ruleId !== '') this.#table.decided(ruleId, allowed, answer.key);
        this.#recent.decided(allowed);
        break;
      }
      case 'unavailable':
        // A drained node refuses requests because an operator wants it to, so these do not count.
        if (answer.reason === 'draining') return undefined;
        this.#table.undecided(question.rule);
        this.#recent.undecided(answer.proposed ? (question.cost ?? 1) : 0);
        break;
      case 'degraded':
        this.#table.degraded(answer.ruleIds[0]);
        this.#recent.degraded(answer.allowed);
        break;
      case 'unmatched':
        this.#table.decided(UNMATCHED, false, undefined);
        this.#recent.decided(false);
        break;
      case 'invalid':
      case 'conflict':
      case 'unlimited':
        return undefined;
    }
    this.#untilTimed -= 1;
    if (this.#untilTimed > 0) return undefined;
    this.#untilTimed = TIMED_EACH;
    const tookMillis = this.#clocks.monotonicMillis() - startedMillis;
    this.#recent.took(tookMillis);
    this.#minuteTimes.took(tookMillis);
    return tookMillis;
  }

  /** Counts what a shadow rule would have done to a request that all other rules let through. */
  tried(ruleId: string, wouldAllow: boolean): void {
    this.#table.tried(ruleId, wouldAllow);
  }

  /** Counts requests that were refused by load shedding before they were read. */
  refusedUnread(requests: number): void {
    this.#table.unread(requests);
    this.#recent.unread(requests);
  }

  /** The figures for other nodes. @param untilMinute the last minute, counted since 1970 */
  counted(query: UsageQuery, untilMinute: number): NodeUsage {
    const late = this.#minuteTimes.late(query.minutes, untilMinute);
    return { ...this.#table.usage(query, untilMinute), late };
  }

  /** Number of answers since the node started. */
  get answeredCount(): number {
    return this.#answered;
  }

  /** Counts since the node started, by rule and column. */
  totals(): Iterable<readonly [string, UsageColumn, number]> {
    return this.#table.totals();
  }

  /** Figures of the last minutes. */
  get alertFigures(): AlertFigures {
    this.#turn();
    return this.#recent.figures;
  }

  /** Answer times of a sample of all answers since the node started; see `RecentFigures`. */
  get times(): Float64Array {
    return this.#recent.times;
  }

  /** The rules that were in force at the last `usesRules`. */
  get rules(): RuleTable | undefined {
    return this.#rules;
  }

  #turn(): void {
    const minute = Math.max(0, Math.floor(this.#clocks.wallMillis() / MINUTE_MILLIS));
    this.#table.turnTo(minute);
    this.#recent.turnTo(minute);
    this.#minuteTimes.turnTo(minute);
  }
}
