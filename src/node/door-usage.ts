/** Counts what the doors of this node answer, by its clocks. What the figures are is said in src/usage; no user is named in a log. */
import type { AskAnswer, Question } from '../api/question.ts';
import { UNMATCHED } from '../api/unmatched.ts';
import type { UsageColumn, UsageQuery } from '../api/usage.ts';
import { RULES_MAX, type RuleTable } from '../limiter/rules.ts';
import type { NodeUsage } from '../usage/node-usage.ts';
import { MinuteTimes } from '../usage/minute-times.ts';
import { type AlertFigures, RecentFigures } from '../usage/recent-figures.ts';
import { UsageTable } from '../usage/usage-table.ts';
import type { Clocks } from './node-core-init.ts';

const MINUTE_MILLIS = 60_000;
/** Every so manieth answer is timed. */
const TIMED_EACH = 8;

export class DoorUsage {
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

  /** To be called every second or so: it may be another minute, or there may be other rules. */
  look(rules: RuleTable | undefined): void {
    this.#turn();
    if (rules === this.#rules || rules === undefined) return;
    this.#rules = rules;
    this.#table.setRules(rules.rules.map(({ id }) => id));
  }

  /** Returns how long it took, if that was timed. @param startedMillis when the door had read the request, on the monotonic clock */
  answered(question: Question, answer: AskAnswer, startedMillis: number): number | undefined {
    this.#answered += 1;
    // Nobody decided anything.
    if (question.settle === true && answer.kind === 'decision') return undefined;
    switch (answer.kind) {
      case 'decision': {
        const { ruleId, allowed } = answer.decision;
        // A blocked customer may be under no rule at all.
        if (ruleId !== '') this.#table.decided(ruleId, allowed, answer.key);
        this.#recent.decided(allowed);
        break;
      }
      case 'unavailable':
        // A door that takes no requests has none to answer for: an operator wanted it so.
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

  /** What a rule in shadow would have done to a request that all others let through. */
  tried(ruleId: string, wouldAllow: boolean): void {
    this.#table.tried(ruleId, wouldAllow);
  }

  /** So many requests were refused for load, before anybody read them. */
  refusedUnread(requests: number): void {
    this.#table.unread(requests);
    this.#recent.unread(requests);
  }

  counted(query: UsageQuery, untilMinute: number): NodeUsage {
    const late = this.#minuteTimes.late(query.minutes, untilMinute);
    return { ...this.#table.usage(query, untilMinute), late };
  }

  /** Requests, since the node started. */
  get answeredCount(): number {
    return this.#answered;
  }

  /** By rule and column, since the node started. */
  totals(): Iterable<readonly [string, UsageColumn, number]> {
    return this.#table.totals();
  }

  /** Of the last minutes. */
  get alertFigures(): AlertFigures {
    this.#turn();
    return this.#recent.figures;
  }

  /** Of a sample of all answers, since the node started: see `RecentFigures`. */
  get times(): Float64Array {
    return this.#recent.times;
  }

  /** Those in force when it was looked last. */
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
