/**
 * Asks the model again, in the order of the log, for every answer about one budget. What no client saw granted but
 * may have been is kept as a bound, so nothing is called wrong that an unknown outcome explains.
 */
import { groupWindowMillis } from '../model.ts';
import type { Operation } from '../history.ts';
import type { NemesisBand } from '../nemesis-log.ts';
import { type Budget, nameOf, type Unknown } from './budgets.ts';
import { CostLine } from './cost-line.ts';
import type { Fates } from './fates.ts';
import type { Findings } from './result.ts';

export interface CertificateOptions {
  readonly driftPpm: number;
  /** What was broken when: a clock that was too fast is allowed for. */
  readonly bands: readonly NemesisBand[];
  readonly requestIdHorizonMillis: number;
  readonly fates: Fates;
}

/** Something that was charged, or may have been, at a known place of the log. */
interface Step {
  readonly index: number;
  readonly timeMillis: number;
  readonly cost: number;
  readonly isCertain: boolean;
  /** The answer that told of it; undefined if only the log does. */
  readonly op: Operation | undefined;
}

export class BudgetReplay {
  readonly #budget: Budget;
  readonly #findings: Findings;
  readonly #groupWindowMillis: number;
  /** What was certainly charged so far; what may have been. */
  readonly #sure = new CostLine();
  readonly #most = new CostLine();
  readonly #steps: readonly Step[];
  /** Unknown outcomes at no known place, by invocation, and their cost up to each. */
  readonly #loose: readonly Unknown[];
  readonly #looseCost: readonly number[];
  /** What the entry replayed last granted. */
  #entry = { index: 0, timeMillis: 0, cost: 0 };

  constructor(budget: Budget, { driftPpm, fates }: CertificateOptions, findings: Findings) {
    this.#budget = budget;
    this.#findings = findings;
    this.#groupWindowMillis = groupWindowMillis(budget.windowMillis, driftPpm);
    const steps: Step[] = [];
    for (const { op } of budget.grants) {
      const { index, timeMillis, cost } = op;
      if (index !== null && timeMillis !== null) steps.push({ index, timeMillis, cost, isCertain: true, op });
    }
    const loose: Unknown[] = [];
    for (const unknown of budget.unknowns) {
      const fate = fates.get(unknown.op);
      const { cost } = unknown.op;
      if (fate === undefined) loose.push(unknown);
      else if (fate.kind === 'granted') steps.push({ ...fate.at, cost, isCertain: true, op: undefined });
      else if (fate.kind === 'logged')
        for (const at of fate.at) steps.push({ ...at, cost, isCertain: false, op: undefined });
    }
    // Within an entry the order is not told, but what remained tells it.
    this.#steps = steps.sort(
      (a, b) =>
        a.index - b.index || a.timeMillis - b.timeMillis || (b.op?.remaining ?? -1) - (a.op?.remaining ?? -1),
    );
    this.#loose = loose;
    const costs = [0];
    for (const { op } of loose) costs.push((costs.at(-1) ?? 0) + op.cost);
    this.#looseCost = costs;
  }

  run(): void {
    const denials = this.#budget.denials
      .filter(({ index, timeMillis }) => index !== null && timeMillis !== null)
      .sort((a, b) => (a.index ?? 0) - (b.index ?? 0));
    let nextDenial = 0;
    const judgeDenialsBefore = (index: number): void => {
      for (; nextDenial < denials.length; nextDenial += 1) {
        const denial = denials[nextDenial];
        if (denial === undefined || (denial.index ?? 0) >= index) return;
        this.#judgeDenial(denial);
      }
    };
    for (let begin = 0; begin < this.#steps.length;) {
      const index = this.#steps[begin]?.index ?? 0;
      let end = begin;
      while (this.#steps[end]?.index === index) end += 1;
      judgeDenialsBefore(index);
      this.#replayEntry(this.#steps.slice(begin, end));
      begin = end;
    }
    judgeDenialsBefore(Infinity);
    this.#findings.tally('unknownOutcomes', this.#loose.length);
  }

  #replayEntry(steps: readonly Step[]): void {
    this.#entry = { index: steps[0]?.index ?? 0, timeMillis: steps[0]?.timeMillis ?? 0, cost: 0 };
    for (const { op, timeMillis, cost } of steps) {
      this.#entry.cost += cost;
      // Where in the entry they are is not known: they may be before all others, and may be behind.
      if (op === undefined) this.#most.insert(timeMillis, cost);
    }
    for (const { op, timeMillis, cost } of steps) {
      if (op === undefined) continue;
      this.#judgeGrant(op, timeMillis);
      this.#sure.insert(timeMillis, cost);
      this.#most.insert(timeMillis, cost);
    }
    for (const { op, timeMillis, cost, isCertain } of steps) {
      if (op === undefined && isCertain) this.#sure.insert(timeMillis, cost);
    }
    for (const { op, timeMillis } of steps) {
      const { limit } = this.#budget;
      const live = this.#sure.live(timeMillis, this.#groupWindowMillis);
      // Only the log told of it, so no answer was judged for it.
      if (op === undefined && live > limit && !this.#budget.hasEventTimes) {
        this.#findings.add(`the log holds ${live} of ${limit} within one window at ${timeMillis} ms`);
      }
    }
  }

  #judgeGrant(op: Operation, t: number): void {
    const { limit } = this.#budget;
    const windowMillis = this.#windowOf(op);
    const atLeast = this.#sure.live(t, windowMillis);
    if (atLeast + op.cost > limit) {
      this.#findings.add(`${atLeast} of ${limit} were spent, and yet: ${describe(op)}`);
      return;
    }
    if (op.timestampMillis !== null && t < op.timestampMillis) {
      this.#findings.add(`judged before its own time ${op.timestampMillis}: ${describe(op)}`);
    }
    if (op.remaining === null) return;
    const atMost = this.#most.live(t, windowMillis) + this.#looseBefore(op);
    if (op.remaining > limit - atLeast - op.cost) {
      this.#findings.add(
        `told ${op.remaining} remain, but ${atLeast} of ${limit} were spent before: ${describe(op)}`,
      );
    } else if (op.remaining < limit - atMost - op.cost) {
      this.#findings.add(
        `told only ${op.remaining} remain, but at most ${atMost} of ${limit} were spent before: ${describe(op)}`,
      );
    }
  }

  /** Against the state of its receipt's index, at its time. */
  #judgeDenial(op: Operation): void {
    const { limit, hasEventTimes } = this.#budget;
    const t = op.timeMillis ?? 0;
    const windowMillis = this.#windowOf(op);
    const atMost = this.#most.live(t, windowMillis) + this.#looseBefore(op);
    if (atMost + op.cost <= limit) {
      // A request that is held back behind its user's newest grant, or behind forgotten ones, is denied unasked.
      if (hasEventTimes && (op.timestampMillis === null || t > op.timestampMillis)) {
        this.#findings.tally('heldBack');
        return;
      }
      this.#findings.add(`at most ${atMost} of ${limit} were spent, and yet: ${describe(op)}`);
      return;
    }
    if (op.remaining === null || hasEventTimes) return;
    // It may have been judged within its entry, before some of what that granted. At a later time, it was not.
    const isWithin = op.index === this.#entry.index && t === this.#entry.timeMillis;
    const atLeast = this.#sure.live(t, windowMillis) - (isWithin ? this.#entry.cost : 0);
    if (op.remaining > limit - atLeast || op.remaining < limit - atMost) {
      this.#findings.add(
        `told ${op.remaining} remain, but ${atLeast} to ${atMost} of ${limit} were spent: ${describe(op)}`,
      );
    }
  }

  #windowOf(op: Operation): number {
    return op.timestampMillis === null ? this.#groupWindowMillis : this.#budget.windowMillis;
  }

  /** The cost of the unknown outcomes at no known place that were asked for before `op` was answered. */
  #looseBefore(op: Operation): number {
    const before = op.completeNanos ?? Infinity;
    let low = 0;
    let high = this.#loose.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#loose[middle]?.invokeNanos ?? 0) < before) low = middle + 1;
      else high = middle;
    }
    return this.#looseCost[low] ?? 0;
  }
}

export function describe(op: Operation): string {
  const id = op.requestId === null ? '' : `, request '${op.requestId}'`;
  const time = `${op.timeMillis} ms`;
  return `${op.allowed === true ? 'grant' : 'denial'} at index ${op.index}, ${time} (${nameOf(op)}${id})`;
}
