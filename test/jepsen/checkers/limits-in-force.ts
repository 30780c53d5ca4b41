/**
 * Which limits may have been in force when, by what was answered to whoever changed the rules. A change may be in force from
 * its invocation on, and until another that came after it was answered to be everywhere. Judges nothing.
 */
import type { RulesChange } from '../joint-history.ts';

export class LimitsInForce {
  /** Those that may ever have been in force. */
  readonly #changes: readonly RulesChange[];
  /** Of each of them: from when on it certainly is not any more. */
  readonly #ends: ReadonlyMap<RulesChange, number>;

  constructor(changes: readonly RulesChange[]) {
    this.#changes = changes.filter((change) => change.class !== 'fail');
    const everywhere = this.#changes.filter(({ status }) => status === 200);
    const endOf = (change: RulesChange): number => {
      // One that comes late finds other rules than those it was to change, and changes nothing.
      const later = everywhere.filter((other) => other !== change && other.ifVersion >= change.ifVersion);
      return Math.min(Infinity, ...later.map(({ completeNanos }) => completeNanos));
    };
    this.#ends = new Map(this.#changes.map((change) => [change, endOf(change)]));
  }

  /** Those that may have been in force at some moment of [from, to]. */
  possible(from: number, to: number): RulesChange[] {
    return this.#changes.filter(
      (change) => change.invokeNanos <= to && (this.#ends.get(change) ?? Infinity) >= from,
    );
  }

  /** The largest limit of a rule in that time; Infinity if nobody said what it is. */
  most(rule: string, from: number, to: number): number {
    const limits = this.possible(from, to).map((change) => change.limits[rule] ?? Infinity);
    return limits.length === 0 ? Infinity : Math.max(...limits);
  }

  /** The least; 0 if nobody said. */
  least(rule: string, from: number, to: number): number {
    const limits = this.possible(from, to).map((change) => change.limits[rule] ?? 0);
    return limits.length === 0 ? 0 : Math.min(...limits);
  }
}
