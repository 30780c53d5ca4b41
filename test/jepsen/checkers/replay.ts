/**
 * Replays the answers about one budget in the order of the log and asks the model for each of them. Charges that no
 * client saw but that may have happened are kept as a bound, so an answer is never called wrong if an unknown outcome
 * explains it.
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
  /** The faults and their times: group time may run ahead by what a fast clock gained. */
  readonly bands: readonly NemesisBand[];
  readonly requestIdHorizonMillis: number;
  readonly fates: Fates;
  /** Stamps before this belong to another epoch. */
  readonly nearEpochMillis: number;
}

/** A charge, certain or possible, at a known place of the log. */
interface Step {
  readonly index: number;
  /** Position in the entry. Null: not reported. */
  readonly position: number | null;
  readonly timeMillis: number;
  readonly cost: number;
  readonly isCertain: boolean;
  /** The answer that reported it. Undefined: only the log shows it. */
  readonly op: Operation | undefined;
}

const NANOS_PER_MILLI = 1e6;
const NO_ENTRY = { index: 0, timeMillis: 0, cost: 0 };

/** If the order within an entry is not reported, the remaining amounts reveal it. */
function withinEntry(a: Step, b: Step): number {
  if (a.position !== null && b.position !== null) return a.position - b.position;
  return a.timeMillis - b.timeMillis || (b.op?.remaining ?? -1) - (a.op?.remaining ?? -1);
}

/** A denial without a position was read from the state after the whole entry. */
function placeOf({ position }: Operation): number {
  return position ?? Infinity;
}

export class BudgetReplay {
  readonly #budget: Budget;
  readonly #findings: Findings;
  readonly #groupWindowMillis: number;
  /** The certain charges so far, and the possible ones. */
  readonly #sure = new CostLine();
  readonly #most = new CostLine();
  readonly #steps: readonly Step[];
  /** Unknown outcomes without a known place, ordered by invocation, and the sum of their costs up to each. */
  readonly #loose: readonly Unknown[];
  readonly #looseCost: readonly number[];
  /** The newest stamp so far: of the certain charges, of the possible charges, and of callers' timestamps. */
  #newestSure = -Infinity;
  #newestMost = -Infinity;
  #newestEvent = -Infinity;
  /** The newest certain grant so far was made after this. */
  #madeNanos = -Infinity;
  /** The grants of the last replayed entry, if its order is not reported. */
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
          // Several attempts, or an answer to another attempt, may report one grant.
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
    /** Judges the denials up to and including a place of the log. */
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
    if (op === undefined) this.#judgeUnreported(timeMillis);
  }

  /** The order of the entry is not reported: grants that no client saw may come before all others or after them. */
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
    for (const { op, timeMillis } of steps) if (op === undefined) this.#judgeUnreported(timeMillis);
  }

  /** Only the log shows the grant at `t`, so no answer was judged for it. */
  #judgeUnreported(t: number): void {
    const { limit, hasEventTimes } = this.#budget;
    const live = this.#sure.live(t, this.#groupWindowMillis);
    if (live > limit && !hasEventTimes) {
      this.#findings.add(`the log holds ${live} of ${limit} within one window at ${t} ms`);
    }
  }

  /** The user was forgotten, so its earlier grants count no more. */
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
        `answered that ${op.remaining} remain, but ${atLeast} of ${limit} were spent before: ${describe(op)}`,
      );
    } else if (op.remaining < limit - atMost - op.cost) {
      this.#findings.add(
        `answered that only ${op.remaining} remain, but at most ${atMost} of ${limit} were spent before: ${describe(op)}`,
      );
    }
  }

  /** The stamps of a key do not decrease. A request is judged at its own time unless an earlier stamp is newer. */
  #judgeStamp(op: Operation, t: number): void {
    if (t < this.#newestSure) {
      this.#findings.add(`stamped before an earlier grant at ${this.#newestSure} ms: ${describe(op)}`);
    }
    const { timestampMillis } = op;
    if (timestampMillis === null || t <= timestampMillis || this.#loose.length > 0) return;
    if (t > this.#newestMost) {
      this.#findings.add(
        `judged later than its own time ${timestampMillis} without an earlier grant: ${describe(op)}`,
      );
    }
  }

  /**
   * Whether a request may be denied without asking the model, because its timestamp is behind the newest stamp of its
   * user, or behind users that were forgotten. In the second case its own user must be forgotten too, which takes more
   * than a window without a grant.
   */
  #mayBeHeldBack({ timestampMillis, timeMillis, completeNanos }: Operation): boolean {
    const t = timeMillis ?? 0;
    const idleMillis = ((completeNanos ?? Infinity) - this.#madeNanos) / NANOS_PER_MILLI;
    if (idleMillis > this.#budget.windowMillis) return timestampMillis === null || t > timestampMillis;
    return timestampMillis === null && (t <= this.#newestEvent || this.#loose.length > 0);
  }

  /** Judges a denial against the state at the index of its receipt, at its time. */
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
    // If it was judged within its entry, some grants of that entry may come after it. At a later time it was not.
    const isWithin = op.index === this.#entry.index && t === this.#entry.timeMillis;
    const atLeast = this.#sure.live(t, windowMillis) - (isWithin ? this.#entry.cost : 0);
    if (op.remaining > limit - atLeast || op.remaining < limit - atMost) {
      this.#findings.add(
        `answered that ${op.remaining} remain, but ${atLeast} to ${atMost} of ${limit} were spent: ${describe(op)}`,
      );
    }
  }

  #windowOf(op: Operation): number {
    return op.timestampMillis === null ? this.#groupWindowMillis : this.#budget.windowMillis;
  }

  /** The cost of the unknown outcomes without a known place that were requested before `op` was answered. */
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
