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
 * - A near key is forgotten only when its grants are out of every window at the current group time and none was
 *   made for a window's length of group time, with `LATE_MILLIS` to spare once callers bring their own timestamps.
 *   `evictedThroughMillis` then keeps the time at which all forgotten grants are out, and an unknown key that asks
 *   for an earlier time is denied: its history may be among the forgotten. So no lag, however long, gets a request
 *   around a forgotten grant; a new user whose timestamps are later than `LATE_MILLIS` may be denied.
 * - A far key is forgotten after `FAR_EPOCH_HORIZON_MILLIS`, or a window if that is longer, of group time without a
 *   grant. Within that horizon the promise holds in the caller's time; a replay that pauses longer starts afresh.
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
  /** Group time at which the last grant was made, whatever time it was stamped with. */
  readonly #madeMillis: number[] = [];

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

  /** Group time at which the key at `slot` was last granted something. */
  madeMillisAt(slot: number): number {
    return this.#madeMillis[slot]!;
  }

  /** The time at which a request for `askedMillis` is judged, given its key's log if there is one. */
  decisionMillis(log: SlidingLog | undefined, askedMillis: number): number {
    if (log !== undefined) return Math.max(askedMillis, log.newestMillis);
    // A window's length below the near epoch still overlaps what was forgotten inside it.
    const overlapsForgotten = askedMillis > this.#nearEpochMillis - this.effectiveWindowMillis;
    return overlapsForgotten ? Math.max(askedMillis, this.evictedThroughMillis) : askedMillis;
  }

  /**
   * True when a request that would be judged at `t`, later than it asked for, must be denied whatever is recorded:
   * - nothing is known of its key, but may have been forgotten (`evictedThroughMillis`);
   * - it asks in group time and the key has grants ahead of it, stamped by a caller. Judged at those stamps it could
   *   be granted again and again as they move on, faster than real time.
   */
  isHeld(log: SlidingLog | undefined, askedMillis: number, t: number, isEvent: boolean): boolean {
    return t > askedMillis && (log === undefined || !isEvent);
  }

  /** Records a grant at `t`, made at `groupMillis`, and returns the key's log. */
  grant(
    userId: string,
    known: SlidingLog | undefined,
    t: number,
    cost: number,
    groupMillis: number,
  ): SlidingLog {
    const log = known ?? this.add(userId, new SlidingLog(), groupMillis);
    log.grant(t, cost, this.effectiveWindowMillis, this.rule.limit);
    if (known !== undefined) this.#madeMillis[this.#slotOf.get(userId)!] = groupMillis;
    return log;
  }

  /** Adds a key, last granted something at `madeMillis`, at the end of the sweep order. */
  add(userId: string, log: SlidingLog, madeMillis: number): SlidingLog {
    assert(!this.#slotOf.has(userId), 'a key is added once');
    this.#slotOf.set(userId, this.#logs.length);
    this.#userIds.push(userId);
    this.#logs.push(log);
    this.#madeMillis.push(madeMillis);
    return log;
  }

  /**
   * Forgets the key at `slot` if it is idle at `groupMillis`, and says whether it did. The last key of the order
   * then takes the slot.
   */
  evictIfIdle(slot: number, groupMillis: number): boolean {
    const userId = this.userIdAt(slot);
    const log = this.logAt(slot);
    const madeMillis = this.madeMillisAt(slot);
    if (log.newestMillis < this.#nearEpochMillis) {
      const horizonMillis = Math.max(FAR_EPOCH_HORIZON_MILLIS, this.effectiveWindowMillis);
      if (madeMillis + horizonMillis > groupMillis) return false;
    } else {
      const idleSinceMillis = Math.max(log.newestMillis, madeMillis) + this.effectiveWindowMillis;
      if (idleSinceMillis + (this.eventTimed ? LATE_MILLIS : 0) > groupMillis) return false;
      const goneMillis = log.newestMillis + this.effectiveWindowMillis;
      this.evictedThroughMillis = Math.max(this.evictedThroughMillis, goneMillis);
    }
    const lastUserId = this.#userIds.pop()!;
    const lastLog = this.#logs.pop()!;
    const lastMadeMillis = this.#madeMillis.pop()!;
    this.#slotOf.delete(userId);
    if (lastLog !== log) {
      this.#userIds[slot] = lastUserId;
      this.#logs[slot] = lastLog;
      this.#madeMillis[slot] = lastMadeMillis;
      this.#slotOf.set(lastUserId, slot);
    }
    return true;
  }
}
