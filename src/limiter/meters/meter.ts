/**
 * The interface of a kind of limit (a meter): what the keys of a rule remember of their grants, and how much of a limit
 * that spends.
 * A meter knows no users, request ids, rule tables or clocks; its caller passes the rule, the window and the time.
 */

import type { Rule } from '../../api/rule.ts';
import type { Rows } from '../state/rows.ts';
import type { Slab } from '../state/block-pool.ts';
import type { ByteReader } from '../../bytes/byte-reader.ts';
import type { ByteWriter } from '../../bytes/byte-writer.ts';

/**
 * The demand of a request on a key: cost, time and rule. One object is reused for many requests, so a meter must not
 * keep it.
 */
export interface Demand {
  readonly rule: Rule;
  /** The time to judge at, in milliseconds; not before `newestMillis` of the key. */
  readonly t: number;
  /** At least 1. */
  readonly cost: number;
  /**
   * The window to judge by, in milliseconds. In group time it is wider than for timestamps of callers, so two demands
   * on one key may have different windows.
   */
  readonly windowMillis: number;
  /**
   * The longest window that any later request may ask about; older grants may be forgotten. At least `windowMillis`. If
   * `t` is ahead of group time, it is longer by that difference, because after a refund the key is judged at group time
   * again.
   */
  readonly keptMillis: number;
  /** `t` is a timestamp of the caller. */
  readonly isEvent?: boolean;
}

/** A cost that a key was granted, and when. */
export interface KeyRun {
  readonly timeMillis: number;
  readonly cost: number;
  /** The window it was counted by, if the meter remembers that. */
  readonly windowMillis?: number;
}

/**
 * The meter of all keys of one rule, in columns indexed by slot. An implementation keeps to these rules:
 *
 * - **Pure.** Its answers, and every byte it writes, are functions of the recorded grants and the demand: not of a
 *   clock, a random number, an address or a capacity. Replicas that recorded the same grants are equal.
 * - **Questions change nothing.** Only `grant`, `refund`, `remove` and `read` do: a denied request leaves no trace.
 * - **Integers.** Times, costs and waits are safe integers >= 0 (a wait may be `Infinity`). No fractions are kept:
 *   rates are multiplied before they are divided, below 2^53.
 * - **Errors go towards denial.** Spent cost is rounded up, remaining cost down, waits up. A demand that comes after
 *   the reported wait must fit if nothing else was granted. Each class states its exact **guarantee**, and any
 *   exception to this rounding.
 * - **Bytes per key.** It adds the memory it takes to the `StateSize` it was made with, by a model that does not
 *   depend on how memory happens to be laid out, and `bytesToGrant` predicts what a grant adds. Memory is rows and
 *   blocks, no object per key. No call takes more than logarithmic time in what one key remembers, except for
 *   amortised cleanup and for `refund`, of which an entry has few.
 * - **No allocation** in the calls on the path of a request: `newestMillis`, `liveCost`, `bytesToGrant`, `grant`.
 * - **Rules change.** The next demand may have another limit and window; grants recorded before then count by the
 *   new ones.
 */
export interface Meter {
  /** One row per key, from slot 0 on. Its first `METER_WORDS` belong to the meter, the others to `Keys`. */
  readonly rows: Rows;

  /** Adds a key without grants in the next slot by appending its row. */
  add(): void;

  /** Forgets the key in `slot`: moves the row of the last slot there and drops the last row. */
  remove(slot: number): void;

  /** Time of the newest grant in milliseconds, 0 without any. A demand for an earlier time is judged at this time. */
  newestMillis(slot: number): number;

  /**
   * How much of `capacityOf(rule)` is spent at `t`, in units of cost. May exceed the capacity after a rule change
   * lowered it.
   */
  liveCost(slot: number, demand: Demand): number;

  /** Milliseconds after `t` until `cost` more fits: 0 if it fits at `t`, `Infinity` if it never does. */
  millisUntilAvailable(slot: number, demand: Demand, cost: number): number;

  /** Milliseconds after `t` until nothing is spent any more; 0 if nothing is spent at `t`. */
  millisUntilEmpty(slot: number, demand: Demand): number;

  /**
   * How many bytes `grant` would add to the size of the state; with the slot `NONE`, for a new key. `Infinity`: the
   * meter cannot record that much, and `grant` must not be called.
   */
  bytesToGrant(slot: number, demand: Demand): number;

  /** Records a cost that fits, or a settled cost, of which the meter records as much as it can hold. Amortised O(1). */
  grant(slot: number, demand: Demand): void;

  /**
   * Gives back up to `cost` of what was granted at `timeMillis`: everything of it that still counts, or less, never
   * more. Cost that the key has forgotten needs no refund. The time of the key goes back only if the meter knows
   * everything that counts at the earlier time, and never before `nowMillis`; otherwise `newestMillis` stays. If a
   * meter cannot know how much is left, it gives back less; each class says how much.
   *
   * @param timeMillis when this key was granted the cost
   * @param rule the rule of that grant and of everything since; only a log with millisecond resolution refunds across a
   * rule change
   * @param nowMillis the earliest time that the key may go back to: group time, but not more than `AHEAD_MILLIS_MAX`
   * before `timeMillis`, because the meter may have forgotten what counts earlier (see `Demand.keptMillis`)
   */
  refund(slot: number, timeMillis: number, cost: number, rule: Rule, nowMillis: number): void;

  /**
   * When nothing is spent any more under `rule` with a window of `windowMillis`. From then on the key may be forgotten.
   */
  idleAtMillis(slot: number, windowMillis: number, rule: Rule): number;

  /** A view to walk over keys for a snapshot. */
  view(): MeterView;

  /**
   * Reads what `MeterView.write` wrote into `slot`, where a key was just added. All values are checked.
   *
   * @param madeMillis group time of the key's newest grant
   * @param part 0, or what the call before returned
   * @returns 0 if everything is read; otherwise the rest is in the next chunk
   * @throws InvalidSnapshotError
   */
  read(slot: number, input: ByteReader, madeMillis: number, part: number): number;

  /** The grants that the key remembers, oldest first, for tests. Uses no code of `write` and `read`. */
  inspect(slot: number): readonly KeyRun[];
}

/** The memory of one key, either in its slot or in a copy that a snapshot made before the key changed. */
export interface MeterView {
  /** Points to the key in `slot`. Valid until anything is changed. */
  show(slot: number): void;

  /** The size of a copy, in units of 8 bytes. */
  readonly units: number;

  /** Copies the key to word `at` of `target`, where a unit begins. */
  copyTo(target: Slab, at: number): void;

  /** Points to the copy that begins at word `at` of `source`. */
  showCopy(source: Slab, at: number): void;

  /**
   * Writes the key in a form that is equal for equal meters. It stops if `out` is full, which may be at any value
   * except the first.
   *
   * @param madeMillis group time of the key's newest grant; the reader knows it too
   * @param part 0, or what the call before returned; the view may have been moved in between
   * @returns 0 if everything is written
   */
  write(out: ByteWriter, madeMillis: number, part: number): number;
}
