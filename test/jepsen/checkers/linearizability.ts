/**
 * Checks the linearizability of one budget at a time, without using the log positions of its answers: the search of
 * Wing and Gong with Lowe's memoisation. It knows intervals, answers and their times. It is meant for small histories:
 * the search is exponential in the number of concurrent requests and gives up (`unknown`) after `stepsMax`.
 */
import { groupWindowMillis, type Mode, UserModel } from '../model.ts';
import type { NemesisBand } from '../nemesis-log.ts';
import { type Budget, nameOf } from './budgets.ts';
import { begunAnew, nearEpochMillis } from './epochs.ts';
import { type CheckResult, Findings, skipped } from './result.ts';

export interface LinearizabilityOptions {
  readonly driftPpm: number;
  /** The faults and their times: group time may run ahead by what a fast clock gained. */
  readonly bands: readonly NemesisBand[];
  readonly mode: Mode;
  /** Budgets with more answers than this are left to the certificate check. */
  readonly answersMax: number;
  /** The step limit of the search for one budget. */
  readonly stepsMax: number;
}

/** An answer that must be placed somewhere between its invocation and its completion. */
interface Answer {
  readonly invokeNanos: number;
  readonly completeNanos: number;
  readonly allowed: boolean;
  readonly t: number;
  readonly cost: number;
  readonly windowMillis: number;
  readonly mode: Mode;
}

/** A choice that was made, and the alternatives left at the same place. */
interface Frame {
  readonly candidates: readonly Choice[];
  next: number;
  undo: (() => void) | undefined;
}

type Choice =
  | { readonly kind: 'answer'; readonly at: number }
  /** The first unused unknown outcome of this cost took effect here. */
  | { readonly kind: 'unseen'; readonly cost: number };

export function checkLinearizability(
  budgets: readonly Budget[],
  options: LinearizabilityOptions,
): CheckResult {
  const findings = new Findings(`linearizability-${options.mode}`);
  const epochs = { ...options, nearEpochMillis: nearEpochMillis(budgets) };
  let undecided = 0;
  for (const budget of budgets) {
    const answers = answersOf(budget, options);
    const isTooLong = answers !== undefined && answers.length > options.answersMax;
    // The model never forgets a user. The certificate check knows when the cluster forgot one.
    if (answers === undefined || isTooLong || begunAnew(budget, epochs) !== undefined) {
      findings.tally('budgetsLeftOut');
      continue;
    }
    findings.tally('budgets');
    const search = new Search(budget, answers, options);
    const found = search.run();
    findings.tally('steps', search.steps);
    if (found === 'unknown') undecided += 1;
    if (found === 'none')
      findings.add(`${nameOf(budget)}: no order explains the answers; ${search.stuckAt()}`);
  }
  if (undecided > 0) findings.tally('budgetsUndecided', undecided);
  // If no budget was searched, the result must not be `ok`.
  if (findings.counts['budgets'] === undefined && budgets.length > 0)
    return skipped(findings.name, 'every user has too many answers, or answers without a time');
  return findings.result(undecided > 0 ? 'unknown' : 'ok');
}

/** Undefined if the answers carry no times. */
function answersOf(budget: Budget, { driftPpm, mode }: LinearizabilityOptions): Answer[] | undefined {
  const answers: Answer[] = [];
  const groupWindow = groupWindowMillis(budget.windowMillis, driftPpm);
  for (const { op, invokeNanos, completeNanos } of [
    ...budget.grants,
    ...budget.denials.map((op) => ({ op, invokeNanos: op.invokeNanos, completeNanos: op.completeNanos })),
  ]) {
    const { timeMillis: t, timestampMillis, cost } = op;
    if (t === null) return undefined;
    const isHeldBack = budget.hasEventTimes && (timestampMillis === null || t > timestampMillis);
    answers.push({
      invokeNanos,
      completeNanos: completeNanos ?? Infinity,
      allowed: op.allowed === true,
      t,
      cost,
      windowMillis: timestampMillis === null ? groupWindow : budget.windowMillis,
      mode: isHeldBack ? 'lenient' : mode,
    });
  }
  return answers.sort((a, b) => a.invokeNanos - b.invokeNanos);
}

class Search {
  readonly #answers: readonly Answer[];
  readonly #model: UserModel;
  readonly #stepsMax: number;
  readonly #placed: Uint8Array;
  #placedCount = 0;
  /** All answers before this one are placed. */
  #first = 0;
  /** Per cost, the invocations of the unknown outcomes and how many of them are used. */
  readonly #unseen = new Map<number, { readonly invokeNanos: number[]; used: number }>();
  readonly #visited = new Set<string>();
  /** The first unplaced answer at the furthest point of the search. */
  #furthest = { placed: -1, answer: 0 };
  steps = 0;

  constructor(budget: Budget, answers: readonly Answer[], { stepsMax, mode }: LinearizabilityOptions) {
    this.#answers = answers;
    this.#model = new UserModel(budget.limit, budget.windowMillis);
    this.#stepsMax = stepsMax;
    this.#placed = new Uint8Array(answers.length);
    // A grant that no client saw can only explain denials, and in this mode denials need no explanation.
    if (mode === 'lenient') return;
    for (const { op, invokeNanos } of budget.unknowns) {
      const same = this.#unseen.get(op.cost);
      if (same === undefined) this.#unseen.set(op.cost, { invokeNanos: [invokeNanos], used: 0 });
      else same.invokeNanos.push(invokeNanos);
    }
  }

  run(): 'found' | 'none' | 'unknown' {
    const stack: Frame[] = [this.#frame()];
    for (;;) {
      if (this.#placedCount === this.#answers.length) return 'found';
      const frame = stack.at(-1);
      if (frame === undefined) return 'none';
      frame.undo?.();
      frame.undo = undefined;
      const choice = frame.candidates[frame.next];
      if (choice === undefined) {
        stack.pop();
        continue;
      }
      frame.next += 1;
      this.steps += 1;
      if (this.steps > this.#stepsMax) return 'unknown';
      frame.undo = this.#take(choice);
      if (frame.undo === undefined) continue;
      const key = this.#key();
      if (this.#visited.has(key)) continue;
      this.#visited.add(key);
      stack.push(this.#frame());
    }
  }

  stuckAt(): string {
    const answer = this.#answers[this.#furthest.answer];
    const what = answer?.allowed === true ? 'grant' : 'denial';
    return `${this.#furthest.placed} of ${this.#answers.length} fit before the ${what} at ${answer?.t} ms`;
  }

  /** The answers that may come next: those invoked before the first completion among the unplaced ones. */
  #frame(): Frame {
    const places: number[] = [];
    let end = Infinity;
    for (let at = this.#first; at < this.#answers.length; at += 1) {
      const answer = this.#answers[at];
      if (answer === undefined || answer.invokeNanos > end) break;
      if (this.#placed[at] === 1) continue;
      end = Math.min(end, answer.completeNanos);
      places.push(at);
    }
    const possible = places.filter((at) => (this.#answers[at]?.invokeNanos ?? 0) <= end);
    // Their times suggest the likely order. Grants come first, since they can explain a denial of the same millisecond.
    possible.sort((a, b) => {
      const [left, right] = [this.#answers[a], this.#answers[b]];
      if (left === undefined || right === undefined) return 0;
      return left.t - right.t || Number(right.allowed) - Number(left.allowed);
    });
    if (this.#placedCount > this.#furthest.placed) {
      this.#furthest = { placed: this.#placedCount, answer: this.#first };
    }
    const candidates: Choice[] = possible.map((at) => ({ kind: 'answer', at }));
    const isDenialStuck = possible.some((at) => {
      const answer = this.#answers[at];
      return answer !== undefined && !answer.allowed && !this.#isLegal(answer);
    });
    if (isDenialStuck) {
      for (const [cost, { invokeNanos, used }] of this.#unseen) {
        if ((invokeNanos[used] ?? Infinity) <= end) candidates.push({ kind: 'unseen', cost });
      }
    }
    return { candidates, next: 0, undo: undefined };
  }

  #isLegal({ allowed, t, cost, mode, windowMillis }: Answer): boolean {
    return this.#model.isLegal(allowed, t, cost, mode, windowMillis);
  }

  /** Applies a choice if the model allows it. Returns a function that undoes it. */
  #take(choice: Choice): (() => void) | undefined {
    if (choice.kind === 'unseen') {
      const unseen = this.#unseen.get(choice.cost);
      if (unseen === undefined) return undefined;
      unseen.used += 1;
      const forget = this.#model.recordUnseen(choice.cost);
      return () => {
        forget();
        unseen.used -= 1;
      };
    }
    const { at } = choice;
    const answer = this.#answers[at];
    if (answer === undefined || !this.#isLegal(answer)) return undefined;
    const forget = answer.allowed ? this.#model.record(answer.t, answer.cost) : undefined;
    const first = this.#first;
    this.#placed[at] = 1;
    this.#placedCount += 1;
    while (this.#placed[this.#first] === 1) this.#first += 1;
    return () => {
      forget?.();
      this.#placed[at] = 0;
      this.#placedCount -= 1;
      this.#first = first;
    };
  }

  #key(): string {
    const beyond: number[] = [];
    let count = this.#first;
    for (let at = this.#first; count < this.#placedCount; at += 1) {
      if (this.#placed[at] !== 1) continue;
      count += 1;
      beyond.push(at);
    }
    return `${this.#first}+${beyond.join(',')}|${this.#model.unseenKey()}`;
  }
}
