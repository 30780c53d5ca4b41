/**
 * What a key remembers of its grants, and how much of a rule's limit that spends: the interface of a kind of limit. A
 * meter knows no users, request ids, rule tables or clocks; whoever asks brings the rule, the window and the time.
 */

import type { Rule } from '../../api/rule.ts';
import type { Rows } from '../state/rows.ts';
import type { Slab } from '../state/block-pool.ts';
import type { ByteReader } from '../../bytes/byte-reader.ts';
import type { ByteWriter } from '../../bytes/byte-writer.ts';

/** What is wanted of a key. One object is used for many questions: a meter keeps nothing of it. */
export interface Demand {
  readonly rule: Rule;
  /** The time it is judged at, in milliseconds; not before `newestMillis` of its key. */
  readonly t: number;
  /** At least 1. */
  readonly cost: number;
  /** The window to judge by. It differs from one demand to the next where only some callers bring timestamps. */
  readonly windowMillis: number;
  /**
   * The longest window anybody will still ask about: what is older may be forgotten. At least `windowMillis`; where `t` is ahead of
   * group time, as much longer, for if this is taken back the key is asked at group time again.
   */
  readonly keptMillis: number;
  /** `t` is a timestamp of its caller. */
  readonly isEvent?: boolean;
}

/** Some cost that a key was granted, and when. */
export interface KeyRun {
  readonly timeMillis: number;
  readonly cost: number;
  /** By which window it was counted, where a meter remembers that. */
  readonly windowMillis?: number;
}

/**
 * The meters of all keys of one rule, in columns: slot by slot what a key remembers. Who implements it keeps to this:
 *
 * - **Pure.** What it answers, and every byte that it writes, is a function of the grants it recorded and of the
 *   demand: of no clock, random number, address or capacity. Replicas that recorded the same are equal.
 * - **A question changes nothing.** Only `grant`, `refund`, `remove` and `read` do: a denied request leaves no trace.
 * - **Integers.** Times, costs and waits are safe integers >= 0 (a wait may be `Infinity`). No fraction is kept: what
 *   flows in per millisecond is multiplied before it is divided, below 2^53.
 * - **It errs towards denial.** Where it rounds, what is spent goes up, what is left down, and a wait up: a demand that
 *   comes when it was told to must fit, if nothing else was granted. What it promises, to the letter, is said where it is
 *   defined (its **guarantee**); one that rounds otherwise says so there.
 * - **Bytes per key.** It adds what it takes to the `StateSize` it was made with, by a model that does not depend on how
 *   memory came to lie, and `bytesToGrant` says beforehand what a grant adds. Memory is rows and blocks, no object per
 *   key; no call works longer than logarithmically in what one key remembers, but for amortised tidying,
 *   and for `refund`, of which an entry holds few.
 * - **No allocation** in whatever a request passes through: `newestMillis`, `liveCost`, `bytesToGrant`, `grant`.
 * - **Rules change.** Limit and window may be others at the next demand, and what was recorded counts by the new ones.
 */
export interface Meter {
  /** A row of each key, from 0 on. Its first `METER_WORDS` are the meter's, and the others belong to `Keys`. */
  readonly rows: Rows;

  /** Adds a key that was granted nothing, in the next slot: appends its row. */
  add(): void;

  /** Forgets the key in `slot`; that of the last slot takes its place: moves its row, and drops the last. */
  remove(slot: number): void;

  /** Time of the newest grant in milliseconds, 0 without any. A demand for an earlier time is judged at this. */
  newestMillis(slot: number): number;

  /** How much of `capacityOf(rule)` is spent at `t`, in units of cost. May exceed it after that fell. */
  liveCost(slot: number, demand: Demand): number;

  /** Milliseconds after `t` until `cost` more fits: 0 when it does at `t`, `Infinity` when it never does. */
  millisUntilAvailable(slot: number, demand: Demand, cost: number): number;

  /** Milliseconds after `t` until nothing is spent any more; 0 when nothing is at `t`. */
  millisUntilEmpty(slot: number, demand: Demand): number;

  /**
   * What `grant` would add to the size of the state; with the slot `NONE`: to a key that is new. `Infinity`: the meter has no room
   * for so much, and must not be told to grant it.
   */
  bytesToGrant(slot: number, demand: Demand): number;

  /** Records a cost that fits, or one that is settled: of that, as much as the meter can hold. Amortised O(1). */
  grant(slot: number, demand: Demand): void;

  /**
   * Takes back, of what was granted at `timeMillis`, up to `cost`: all that still counts of it, or less, never more. What
   * has left the memory of the key is not missed. Time of a key runs back only where the meter knows all that counts at that time, and
   * never before `nowMillis`: else `newestMillis` stays what it is. Where a meter cannot know how much is left, it takes back less; what it
   * does take back, its own comment says.
   *
   * @param timeMillis with which this key was granted so much
   * @param rule by which it was, and everything since then: only a log of every millisecond takes back across a change
   * @param nowMillis group time, or as far before `timeMillis` as demands keep what counts there
   */
  refund(slot: number, timeMillis: number, cost: number, rule: Rule, nowMillis: number): void;

  /**
   * From when on nothing is spent of what was granted, by `rule` and in a window of `windowMillis`: then the key may be
   * forgotten.
   */
  idleAtMillis(slot: number, windowMillis: number, rule: Rule): number;

  /** To look at keys for a snapshot, one after the other. */
  view(): MeterView;

  /**
   * Reads what `MeterView.write` wrote into `slot`, where a key was just added, and trusts none of it.
   *
   * @param part 0, or what the call before returned
   * @returns 0 when all is read; anything else: there is more in the next chunk
   * @throws InvalidSnapshotError
   */
  read(slot: number, input: ByteReader, madeMillis: number, part: number): number;

  /** What the key remembers, oldest first, for tests. Shares nothing with `write` and `read`. */
  inspect(slot: number): readonly KeyRun[];
}

/** What one key remembers, wherever it lies: in its slot, or in a copy that a snapshot made before it changed. */
export interface MeterView {
  /** Looks at the key in `slot`, until anything is changed. */
  show(slot: number): void;

  /** What a copy takes, in units of 8 bytes. */
  readonly units: number;

  /** Copies what is looked at to word `at` of `target`, where a unit begins. */
  copyTo(target: Slab, at: number): void;

  /** Looks at the copy that begins at word `at` of `source`. */
  showCopy(source: Slab, at: number): void;

  /**
   * Writes what is looked at, in a form that is equal for equal meters. It stops where `out` is full, and may do so at
   * any value but the first.
   *
   * @param madeMillis when the key was last granted something, in group time; the reader knows it too
   * @param part 0, or what the call before returned; the view may have been moved in between
   * @returns 0 when all is written
   */
  write(out: ByteWriter, madeMillis: number, part: number): number;
}
