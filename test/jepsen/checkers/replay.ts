/**
 * Asks the model again, in the order of the log, for every answer about one budget. What no client saw granted but
 * may have been is kept as a bound, so nothing is called wrong that an unknown outcome explains.
 */
import { groupWindowMillis } from '../model.ts';
import type { Operation } from '../history.ts';
import type { NemesisBand } from '../nemesis-log.ts';
import { type Budget, nameOf, type Unknown } from './budgets.ts';
import { CostLine } from './cost-line.ts';
import { begunAnew } from './epochs.ts';
import type { Fates } from './fates.ts';
import type { Findings } from './result.ts';

export interface CertificateOptions {
  readonly driftPpm: number;
  /** What was broken when: a clock that was too fast is allowed for. */
  readonly bands: readonly NemesisBand[];
  readonly requestIdHorizonMillis: number;
  readonly fates: Fates;
  /** Stamps before it are of another epoch. */
  readonly nearEpochMillis: number;
}

/** Something that was charged, or may have been, at a known place of the log. */
interface Step {
  readonly index: number;
  /** In the entry; null: not told. */
  readonly position: number | null;
  readonly timeMillis: number;
  readonly cost: number;
  readonly isCertain: boolean;
  /** The answer that told of it; undefined if only the log does. */
  readonly op: Operation | undefined;
}

const NANOS_PER_MILLI = 1e6;
const NO_ENTRY = { index: 0, timeMillis: 0, cost: 0 };

/** Where the order is not told, what remained tells it. */
function withinEntry(a: Step, b: Step): number {
  if (a.position !== null && b.position !== null) return a.position - b.position;
  return a.timeMillis - b.timeMillis || (b.op?.remaining ?? -1) - (a.op?.remaining ?? -1);
}

/** A denial without a place was read from the state after the whole entry. */
function placeOf({ position }: Operation): number {
  return position ?? Infinity;
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
  /** The newest stamp that was certainly charged so far; that may have been; and of a caller's own ones. */
  #newestSure = -Infinity;
  #newestMost = -Infinity;
  #newestEvent = -Infinity;
  /** The newest certain grant so far was made after this. */
  #madeNanos = -Infinity;
  /** What the entry replayed last granted, if it does not tell its order. */
  #entry = NO_ENTRY;
  readonly #nearEpochMillis: number;
  readonly #begunAnew: Operation | undefined;

  constructor(budget: Budget, options: CertificateOptions, findings: Findings) {
    const { driftPpm, fates } = options;
    this.#budget = budget;
    this.#nearEpochMillis = options.nearEpochMillis;
    this.#begunAnew = begunAnew(budget, options);
    this.#findings = findings;
    this.#groupWindowMillis = groupWindowMillis(budget.windowMillis, driftPpm);
    const steps: Step[] = [];
    for (const { op } of budget.grants) {
      const { index, position, timeMillis, cost } = op;
      if (index === null || timeMillis === null) continue;
      steps.push({ index, position, timeMillis, cost, isCertain: true, op });
    }
    const places = new Set(steps.map(({ index, position }) => `${index}/${position}`));
    const loose: Unknown[] = [];
    for (const unknown of budget.unknowns) {
      const fate = fates.get(unknown.op);
      const { cost } = unknown.op;
      if (fate === undefined) loose.push(unknown);
      else if (fate.kind !== 'uncharged') {
        const isCertain = fate.kind === 'granted';
        for (const at of fate.at) {
          const place = `${at.index}/${at.position}`;
          // Several attempts, or an answer to another one, may tell of one grant.
          if (at.position !== null && places.has(place)) continue;
          places.add(place);
          steps.push({ ...at, cost, isCertain, op: undefined });
        }
      }
    }
    this.#steps = steps.sort((a, b) => a.index - b.index || withinEntry(a, b));
    this.#loose = loose;
    const costs = [0];
    for (const { op } of loose) costs.push((costs.at(-1) ?? 0) + op.cost);
    this.#looseCost = costs;
  }

  run(): void {
    const denials = this.#budget.denials
      .filter(({ index, timeMillis }) => index !== null && timeMillis !== null)
      .sort((a, b) => (a.index ?? 0) - (b.index ?? 0) || placeOf(a) - placeOf(b));
    let nextDenial = 0;
    /** Those up to a place of the log, itself included. */
    const judgeDenialsThrough = (index: number, position: number): void => {
      for (; nextDenial < denials.length; nextDenial += 1) {
        const denial = denials[nextDenial];
        const at = denial?.index ?? 0;
        if (denial === undefined || at > index || (at === index && placeOf(denial) > position)) return;
        this.#judgeDenial(denial);
      }
    };
    for (let begin = 0; begin < this.#steps.length;) {
      const index = this.#steps[begin]?.index ?? 0;
      let end = begin;
      while (this.#steps[end]?.index === index) end += 1;
      const steps = this.#steps.slice(begin, end);
      judgeDenialsThrough(index - 1, Infinity);
      if (steps.every(({ position }) => position !== null)) {
        this.#entry = NO_ENTRY;
        for (const step of steps) {
          judgeDenialsThrough(index, step.position ?? 0);
          this.#replayStep(step);
        }
      } else {
        this.#replayUnordered(steps);
      }
      begin = end;
    }
    judgeDenialsThrough(Infinity, Infinity);
    this.#findings.tally('unknownOutcomes', this.#loose.length);
  }

  #replayStep({ op, timeMillis, cost, isCertain }: Step): void {
    if (op !== undefined) {
      this.#judgeGrant(op, timeMillis);
      if (this.#budget.hasEventTimes) this.#judgeStamp(op, timeMillis);
      this.#madeNanos = Math.max(this.#madeNanos, op.invokeNanos);
    }
    if (op?.timestampMillis !== null) this.#newestEvent = Math.max(this.#newestEvent, timeMillis);
    this.#newestMost = Math.max(this.#newestMost, timeMillis);
    this.#most.insert(timeMillis, cost);
    if (!isCertain) return;
    this.#newestSure = Math.max(this.#newestSure, timeMillis);
    this.#sure.insert(timeMillis, cost);
    if (op === undefined) this.#judgeUntold(timeMillis);
  }

  /** The entry does not tell its order: what no client saw may come before all others, and may come behind. */
  #replayUnordered(steps: readonly Step[]): void {
    this.#entry = { index: steps[0]?.index ?? 0, timeMillis: steps[0]?.timeMillis ?? 0, cost: 0 };
    for (const { op, timeMillis, cost } of steps) {
      this.#entry.cost += cost;
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
    for (const { op, timeMillis } of steps) if (op === undefined) this.#judgeUntold(timeMillis);
  }

  /** Only the log told of a grant at `t`, so no answer was judged for it. */
  #judgeUntold(t: number): void {
    const { limit, hasEventTimes } = this.#budget;
    const live = this.#sure.live(t, this.#groupWindowMillis);
    if (live > limit && !hasEventTimes) {
      this.#findings.add(`the log holds ${live} of ${limit} within one window at ${t} ms`);
    }
  }

  /** Its user was forgotten, so nothing of what it was granted until then counts. */
  #beginAnew(): void {
    for (const line of [this.#sure, this.#most]) line.dropFrom(this.#nearEpochMillis);
    this.#newestSure = this.#sure.newestMillis;
    this.#newestMost = this.#newestEvent = this.#most.newestMillis;
    this.#findings.tally('begunAnew');
  }

  #judgeGrant(op: Operation, t: number): void {
    if (op === this.#begunAnew) this.#beginAnew();
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

  /** A key's stamps do not decrease, and no request is judged later than at its own time but for an earlier stamp. */
  #judgeStamp(op: Operation, t: number): void {
    if (t < this.#newestSure) {
      this.#findings.add(`stamped before an earlier grant at ${this.#newestSure} ms: ${describe(op)}`);
    }
    const { timestampMillis } = op;
    if (timestampMillis === null || t <= timestampMillis || this.#loose.length > 0) return;
    if (t > this.#newestMost) {
      this.#findings.add(`judged later than its own time ${timestampMillis} for no grant: ${describe(op)}`);
    }
  }

  /**
   * May a request be denied unasked because it is behind its user's newest stamp, or behind users that were forgotten?
   * For the latter its user must be forgotten too, which takes more than a window without a grant.
   */
  #mayBeHeldBack({ timestampMillis, timeMillis, completeNanos }: Operation): boolean {
    const t = timeMillis ?? 0;
    const idleMillis = ((completeNanos ?? Infinity) - this.#madeNanos) / NANOS_PER_MILLI;
    if (idleMillis > this.#budget.windowMillis) return timestampMillis === null || t > timestampMillis;
    return timestampMillis === null && (t <= this.#newestEvent || this.#loose.length > 0);
  }

  /** Against the state of its receipt's index, at its time. */
  #judgeDenial(op: Operation): void {
    const { limit, hasEventTimes } = this.#budget;
    const t = op.timeMillis ?? 0;
    const windowMillis = this.#windowOf(op);
    const atMost = this.#most.live(t, windowMillis) + this.#looseBefore(op);
    if (atMost + op.cost <= limit) {
      if (hasEventTimes && this.#mayBeHeldBack(op)) {
        this.#findings.tally('heldBack');
        return;
      }
      this.#findings.add(`at most ${atMost} of ${limit} were spent, and yet: ${describe(op)}`);
      return;
    }
    if (op.remaining === null || (hasEventTimes && t !== op.timestampMillis)) return;
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
  const place = op.position === null ? `${op.index}` : `${op.index}/${op.position}`;
  return `${op.allowed === true ? 'grant' : 'denial'} at index ${place}, ${time} (${nameOf(op)}${id})`;
}
