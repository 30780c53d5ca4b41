/**
 * All keys of one rule: their sliding logs, and the rules by which an idle key may be forgotten.
 * It keeps its keys in a defined order so that a sweep over them is the same on every replica.
 */

import { assert } from './assert.ts';
import { type Rule, WINDOW_MILLIS_MAX } from './rules.ts';
import { SlidingLog } from './sliding-log.ts';

/** How late a caller's timestamp may be and still be decided at its own time, whatever was forgotten. */
export const LATE_MILLIS = 60_000;

/** How long the grants of a far epoch are kept after the last one, in group time. */
export const FAR_EPOCH_HORIZON_MILLIS = 86_400_000;

/**
 * Event time and group time are comparable only where callers use the same epoch. A key is of the *near* epoch
 * when its newest grant is at most 31 days older than the group; anything older (logical clocks, seconds taken
 * for milliseconds, replays of old data) is of a *far* epoch.
 */
export function nearEpochMillis(createdMillis: number): number {
  return createdMillis - WINDOW_MILLIS_MAX;
}

/**
 * What forgetting may cost:
 * - A near key is forgotten only when its grants are out of every window at the current group time, with
 *   `LATE_MILLIS` to spare once callers bring their own timestamps. `evictedThroughMillis` then keeps the time
 *   at which all forgotten grants are out, and a request of an unknown key is decided no earlier. So no lag,
 *   however long, gets a request around a forgotten grant; one later than `LATE_MILLIS` may be decided late.
 * - A far key is forgotten after `FAR_EPOCH_HORIZON_MILLIS` of group time without a grant. Within that horizon
 *   the promise holds in the caller's time; a replay that pauses longer than it starts afresh.
 */
export class KeyTable {
  /** The rule as last seen in a rule table. */
  rule: Rule;
  /** The window between stamps of group time; also the pruning window, being the longer one of the two. */
  effectiveWindowMillis: number;
  /** False when the current rule table no longer has the rule; its grants wait for it to come back. */
  active = true;
  /** True once a grant was stamped with a caller's timestamp. */
  eventTimed = false;
  /** Every forgotten grant of the near epoch is out of the window at this time. Never above group time. */
  evictedThroughMillis = 0;

  readonly #nearEpochMillis: number;
  readonly #slotOf = new Map<string, number>();
  /** Parallel columns in sweep order: `#userIds[slot]` owns `#logs[slot]`. */
  readonly #userIds: string[] = [];
  readonly #logs: SlidingLog[] = [];
  /** Group time of the last grant, for keys of a far epoch only. */
  readonly #farGrantMillis = new Map<string, number>();

  constructor(rule: Rule, effectiveWindowMillis: number, createdMillis: number) {
    this.rule = rule;
    this.effectiveWindowMillis = effectiveWindowMillis;
    this.#nearEpochMillis = nearEpochMillis(createdMillis);
  }

  get size(): number {
    return this.#logs.length;
  }

  get(userId: string): SlidingLog | undefined {
    const slot = this.#slotOf.get(userId);
    return slot === undefined ? undefined : this.#logs[slot];
  }

  userIdAt(slot: number): string {
    return this.#userIds[slot]!;
  }

  logAt(slot: number): SlidingLog {
    return this.#logs[slot]!;
  }

  /** Group time of the last grant of a key of a far epoch; undefined for a near key. */
  farGrantMillis(userId: string): number | undefined {
    return this.#farGrantMillis.get(userId);
  }

  /** The time at which a request for `askedMillis` is decided, given its key's log if there is one. */
  decisionMillis(log: SlidingLog | undefined, askedMillis: number): number {
    if (log !== undefined) return Math.max(askedMillis, log.newestMillis);
    // A window's length below the near epoch still overlaps what was forgotten inside it.
    const overlapsForgotten = askedMillis > this.#nearEpochMillis - this.effectiveWindowMillis;
    return overlapsForgotten ? Math.max(askedMillis, this.evictedThroughMillis) : askedMillis;
  }

  /** Records a grant at `t`, made at `groupMillis`, and returns the key's log. */
  grant(
    userId: string,
    known: SlidingLog | undefined,
    t: number,
    cost: number,
    groupMillis: number,
  ): SlidingLog {
    const log = known ?? this.add(userId, new SlidingLog());
    log.grant(t, cost, this.effectiveWindowMillis, this.rule.limit);
    if (t < this.#nearEpochMillis) this.#farGrantMillis.set(userId, groupMillis);
    else if (this.#farGrantMillis.size > 0) this.#farGrantMillis.delete(userId);
    return log;
  }

  /** Adds a key at the end of the sweep order. */
  add(userId: string, log: SlidingLog): SlidingLog {
    assert(!this.#slotOf.has(userId), 'a key is added once');
    this.#slotOf.set(userId, this.#logs.length);
    this.#userIds.push(userId);
    this.#logs.push(log);
    return log;
  }

  /** Part of `add` when a snapshot is read: the far-epoch note that belongs to a key. */
  restoreFarGrant(userId: string, groupMillis: number): void {
    this.#farGrantMillis.set(userId, groupMillis);
  }

  /** True when the stamps of this log are of a far epoch. */
  isFar(log: SlidingLog): boolean {
    return log.newestMillis < this.#nearEpochMillis;
  }

  /**
   * Forgets the key at `slot` if it is idle at `groupMillis`, and says whether it did. The last key of the order
   * then takes the slot.
   */
  evictIfIdle(slot: number, groupMillis: number): boolean {
    const userId = this.userIdAt(slot);
    const log = this.logAt(slot);
    if (this.isFar(log)) {
      const lastGrantMillis = this.#farGrantMillis.get(userId);
      assert(lastGrantMillis !== undefined, 'a far key has the group time of its last grant');
      if (lastGrantMillis + FAR_EPOCH_HORIZON_MILLIS > groupMillis) return false;
      this.#farGrantMillis.delete(userId);
    } else {
      const goneMillis = log.newestMillis + this.effectiveWindowMillis;
      if (goneMillis + (this.eventTimed ? LATE_MILLIS : 0) > groupMillis) return false;
      this.evictedThroughMillis = Math.max(this.evictedThroughMillis, goneMillis);
    }
    const lastUserId = this.#userIds.pop()!;
    const lastLog = this.#logs.pop()!;
    this.#slotOf.delete(userId);
    if (lastLog !== log) {
      this.#userIds[slot] = lastUserId;
      this.#logs[slot] = lastLog;
      this.#slotOf.set(lastUserId, slot);
    }
    return true;
  }
}
