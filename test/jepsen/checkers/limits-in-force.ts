/**
 * Which limits may have been in force when, from the answers to rule changes. A change may be in force from its
 * invocation on, until a later change was answered as being in force everywhere. Judges nothing.
 */
import type { RulesChange } from '../joint-history.ts';

export class LimitsInForce {
  /** The changes that may ever have been in force. */
  readonly #changes: readonly RulesChange[];
  /** Per change, the moment after which it certainly is no longer in force. */
  readonly #ends: ReadonlyMap<RulesChange, number>;

  constructor(changes: readonly RulesChange[]) {
    this.#changes = changes.filter((change) => change.class !== 'fail');
    const everywhere = this.#changes.filter(({ status }) => status === 200);
    const endOf = (change: RulesChange): number => {
      // A change that comes late finds another rule version than it expects, and changes nothing.
      const later = everywhere.filter((other) => other !== change && other.ifVersion >= change.ifVersion);
      return Math.min(Infinity, ...later.map(({ completeNanos }) => completeNanos));
    };
    this.#ends = new Map(this.#changes.map((change) => [change, endOf(change)]));
  }

  /** The changes that may have been in force at some moment of [from, to]. */
  possible(from: number, to: number): RulesChange[] {
    return this.#changes.filter(
      (change) => change.invokeNanos <= to && (this.#ends.get(change) ?? Infinity) >= from,
    );
  }

  /** The largest limit of a rule in that time; Infinity if no change names one. */
  most(rule: string, from: number, to: number): number {
    const limits = this.possible(from, to).map((change) => change.limits[rule] ?? Infinity);
    return limits.length === 0 ? Infinity : Math.max(...limits);
  }

  /** The smallest; 0 if no change names one. */
  least(rule: string, from: number, to: number): number {
    const limits = this.possible(from, to).map((change) => change.limits[rule] ?? 0);
    return limits.length === 0 ? 0 : Math.min(...limits);
  }
}
