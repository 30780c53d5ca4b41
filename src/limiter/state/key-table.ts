/**
 * All keys of one rule: what they were granted, and the rules by which an idle key may be forgotten. It judges nothing.
 * It keeps its keys in a defined order so that a sweep over them is the same on every replica.
 */

import { capacityOf, type Rule, WINDOW_MILLIS_MAX } from '../../api/rule.ts';
import { type MeterKind, meterKindOf, meterOf, reachMillisOf } from '../meters/meter-of.ts';
import type { Demand, Meter } from '../meters/meter.ts';
import { areSameRule } from '../rule-form.ts';
import { statedRule } from '../stated-rules.ts';
import { Keys } from './keys.ts';
import { FAR_EPOCH_HORIZON_MILLIS, LATE_MILLIS, LostHistory } from './lost-history.ts';
import type { GrantView } from './remembered-grant.ts';
import { NONE } from './rows.ts';
import { type StateSize } from './state-size.ts';
import type { TextBytes } from './text-bytes.ts';
import { UtcSteps } from './utc-steps.ts';

/** So far ahead of group time a key may be judged, and come back to it when that is taken back: see `Demand.keptMillis`. */
export const AHEAD_MILLIS_MAX = 604_800_000;

/**
 * Event time and group time are comparable only where callers use the same epoch. A key is of the *near* epoch
 * when its newest grant is at most 31 days older than the group; anything older (logical clocks, seconds taken
 * for milliseconds, replays of old data) is of a *far* epoch.
 */
export function nearEpochMillis(createdMillis: number): number {
  return createdMillis - WINDOW_MILLIS_MAX;
}

const NO_TABLES: readonly KeyTable[] = [];
const NOTHING_LOST = new LostHistory();

/** Is told before what a slot holds is changed, moved or forgotten. */
export interface SlotWatcher {
  beforeChange(slot: number): void;
}

/** A demand that fits. */
interface Granted extends Demand {
  /** Of its key, or `NONE`. */
  readonly slot: number;
  /** Of its key, so far. */
  readonly newestMillis: number;
  /** It was judged at a caller's timestamp. */
  readonly isEvent: boolean;
}

/** A request by the rule as it is for its key. */
interface Asked {
  readonly asked: number;
  readonly isEvent: boolean;
  readonly rule: Rule;
}

/** Everything of one window of a rule, under each meter that it had. */
export type Sibling = readonly KeyTable[];

/**
 * What forgetting may cost:
 * - A near key is forgotten only when its grants are out of every window at the current group time and none was
 *   made for as long as a grant counts, in group time, with `LATE_MILLIS` to spare once callers bring their own timestamps.
 *   `evictedThroughMillis` then keeps the time at which all forgotten grants are out, and an unknown key that asks
 *   for an earlier time is denied: its history may be among the forgotten. So is one known from a far epoch alone. No
 *   lag, however long, gets a request around a forgotten grant; a new user whose timestamps are later than
 *   `LATE_MILLIS` may be denied.
 * - A far key is forgotten after `FAR_EPOCH_HORIZON_MILLIS`, or as long as a grant counts if that is longer, of group time without a
 *   grant. Within that horizon the promise holds in the caller's time; a replay that pauses longer starts afresh. A far
 *   key that is granted something in the near epoch is kept as long, though it is a near one now: while it is known,
 *   what its caller stamps with the far epoch again is judged at its newest grant.
 */
export class KeyTable {
  /** Slot by slot the same keys, in sweep order. */
  readonly keys: Keys;
  readonly meter: Meter;
  readonly meterKind: MeterKind;
  /** The rule as last seen in a rule table. */
  rule: Rule;
  /** What it may grant at once. */
  capacity: number;
  /** The window between stamps of group time; also the pruning window, being the longer one of the two. */
  effectiveWindowMillis: number;
  /** How long its grants count, between stamps of group time. */
  #reachMillis: number;
  /** False when the current rule table no longer has the rule, or keeps it by another meter; its grants wait for that. */
  active = true;
  /** Of the same rule id, under other meters: what they were granted counts on top, until it is out. */
  retired: readonly KeyTable[];
  /** The other windows of its rule, in force or not. */
  siblings: readonly Sibling[] = [];
  /** The first millisecond of group time after its window last came into force, whatever meters it had since. */
  sinceMillis = 0;
  /** It is part of the state. The keys of stated rules are not before the first grant. */
  isKept = false;
  /** The table that has the keys of all stated rules, if this is one of them. */
  readonly shared: KeyTable | undefined;
  /** To put together the names of keys there: each is followed by the rule's id. */
  readonly #names: TextBytes | undefined;
  readonly #nameEnd: string;
  /** The id of its rule states the rule. */
  readonly isStated: boolean;
  /** True once a grant was stamped with a caller's timestamp. */
  eventTimed = false;
  /** Every forgotten grant of the near epoch is out of the window at this group time. Never above the present one. */
  evictedThroughMillis = 0;
  /** The entry in which its rule became another one last; 0 if it never did. */
  ruledIndex = 0;
  /** Set while a snapshot has not come to the end of this table. */
  watcher: SlotWatcher | undefined;

  readonly #nearEpochMillis: number;
  readonly #lost: LostHistory;
  readonly #utc: UtcSteps;

  constructor(init: {
    readonly rule: Rule;
    readonly effectiveWindowMillis: number;
    readonly createdMillis: number;
    readonly size: StateSize;
    readonly retired?: readonly KeyTable[] | undefined;
    readonly lost?: LostHistory;
    readonly utc?: UtcSteps;
    readonly shared?: KeyTable | undefined;
    readonly names?: TextBytes | undefined;
  }) {
    this.rule = init.rule;
    this.meterKind = meterKindOf(init.rule);
    this.isStated = statedRule(init.rule.id) !== undefined;
    this.effectiveWindowMillis = init.effectiveWindowMillis;
    this.retired = init.retired ?? NO_TABLES;
    this.#lost = init.lost ?? NOTHING_LOST;
    this.#utc = init.utc ?? new UtcSteps();
    this.capacity = capacityOf(init.rule);
    this.#reachMillis = reachMillisOf(init.rule, init.effectiveWindowMillis);
    this.#nearEpochMillis = nearEpochMillis(init.createdMillis);
    this.shared = init.shared;
    this.#names = init.names;
    this.#nameEnd = `\n${init.rule.id}`;
    this.meter = init.shared?.meter ?? meterOf(init.rule, init.size, this.#utc);
    this.keys = init.shared?.keys ?? new Keys(init.size, this.meter.rows);
  }

  get size(): number {
    return this.keys.size;
  }

  /** By how much the time that its keys are judged at is ahead of group time: fixed windows go by UTC, all else by group time. */
  get aheadMillis(): number {
    return this.meterKind === 'fixed window' ? this.#utc.aheadMillis : 0;
  }

  /** Can it keep what `rule`, of the same id, grants? */
  keeps(rule: Rule): boolean {
    return meterKindOf(rule) === this.meterKind;
  }

  /** The rule in force is this one from entry `index` on, and was granted what it has. */
  follow(rule: Rule, effectiveWindowMillis: number, index: number): void {
    if (!areSameRule(rule, this.rule)) this.ruledIndex = index;
    this.rule = rule;
    this.effectiveWindowMillis = effectiveWindowMillis;
    this.capacity = capacityOf(this.rule);
    this.#reachMillis = reachMillisOf(this.rule, this.effectiveWindowMillis);
  }

  /**
   * From when on nothing counts of what may have been forgotten of a key; 0 if nothing that overlaps was. Who asks for an
   * earlier time may have been granted something around it.
   *
   * @param newestMillis of the key; `-Infinity` if it is not known
   */
  forgottenMillis(newestMillis: number, askedMillis: number): number {
    // As far below the near epoch as a grant reaches it still overlaps what was forgotten inside it.
    if (askedMillis <= this.#nearEpochMillis - this.#reachMillis) return 0;
    // Grants of a far epoch say nothing of what was forgotten in the near one.
    const isKnown = newestMillis >= this.#nearEpochMillis;
    return isKnown || this.evictedThroughMillis === 0 ? 0 : this.evictedThroughMillis + this.aheadMillis;
  }

  /**
   * The same of what is not known for any reason, for a request to a key of this table.
   *
   * @param now group time
   */
  unknownMillis(newestMillis: number, demand: Asked, now: number): number {
    const forgottenMillis = this.forgottenMillis(newestMillis, demand.asked);
    if (this.#lost.throughIndex === 0) return forgottenMillis;
    return Math.max(forgottenMillis, this.lostMillis(demand, now));
  }

  /** The same of what a restore does not know: see `LostHistory.throughMillis`. */
  lostMillis(demand: Asked, now: number): number {
    if (this.#lost.throughIndex === 0) return 0;
    const reachMillis = reachMillisOf(demand.rule, this.effectiveWindowMillis);
    const isFar = demand.isEvent && demand.asked <= this.#nearEpochMillis - reachMillis;
    return this.#lost.throughMillis(demand, now, reachMillis, isFar);
  }

  /** The slot of the key of this name, or `NONE`. */
  find(name: TextBytes): number {
    return this.keys.find(this.#stored(name));
  }

  /** The bytes that the name of a key takes. */
  nameBytes(name: TextBytes): number {
    return this.#stored(name).length;
  }

  /** As the name is stored: see `stated-tables.ts`. */
  #stored(name: TextBytes): TextBytes {
    if (this.#names === undefined) return name;
    this.#names.setBehind(name, this.#nameEnd);
    return this.#names;
  }

  /** Records a grant made at `groupMillis`, in entry `index`, to the key of this name, and returns its slot. */
  grant(granted: Granted, name: TextBytes, groupMillis: number, index = 0): number {
    const { t, newestMillis, isEvent } = granted;
    const isNew = granted.slot === NONE;
    const slot = isNew ? this.add(this.#stored(name), groupMillis, index) : granted.slot;
    this.#watcher?.beforeChange(slot);
    const leavesFarEpoch = !isNew && newestMillis < this.#nearEpochMillis && t >= this.#nearEpochMillis;
    this.meter.grant(slot, granted);
    const madeMillis = leavesFarEpoch ? groupMillis + this.#farHorizonMillis : groupMillis;
    this.keys.setMadeMillis(slot, Math.max(madeMillis, this.keys.madeMillisAt(slot)));
    if (isEvent) this.eventTimed = true;
    return slot;
  }

  /**
   * Adds a key that is not known here, with the cost that an operator says it has used, perhaps 0. The key counts as made no
   * earlier than its window came into force, so it inherits nothing, not even if both happen in one millisecond.
   */
  setUsed(demand: Demand, name: TextBytes, applied: { timeMillis: number; index: number }): void {
    const slot = this.add(this.#stored(name), Math.max(applied.timeMillis, this.sinceMillis), applied.index);
    this.#watcher?.beforeChange(slot);
    this.meter.grant(slot, demand);
  }

  /**
   * Takes back what was granted to the key in `slot`. Of what was granted before its rule changed, only a log can tell; of what
   * was granted before the key was reset, or before a bucket had another limit, nobody can.
   *
   * @param rule as it is for this key
   * @param groupMillis of the entry that takes it back
   */
  refund(
    slot: number,
    { decidedIndex, decidedMillis, cost }: GrantView,
    rule: Rule,
    groupMillis: number,
  ): void {
    if (decidedIndex <= this.ruledIndex && this.meterKind !== 'log') return;
    if (decidedIndex < this.keys.sinceIndexAt(slot)) return;
    this.#watcher?.beforeChange(slot);
    const nowMillis = Math.max(groupMillis + this.aheadMillis, decidedMillis - AHEAD_MILLIS_MAX);
    this.meter.refund(slot, decidedMillis, cost, rule, nowMillis);
  }

  get #farHorizonMillis(): number {
    return Math.max(FAR_EPOCH_HORIZON_MILLIS, this.#reachMillis);
  }

  get #watcher(): SlotWatcher | undefined {
    return (this.shared ?? this).watcher;
  }

  /** Nothing was granted here to the key in `slot` (or `NONE`) since the window came into force, and other windows may know of it. */
  isNewTo(slot: number): boolean {
    if (this.siblings.length === 0) return false;
    return slot === NONE || this.keys.madeMillisAt(slot) < this.sinceMillis;
  }

  /**
   * The slot of a key in `sibling`, if what that knows is news here; else `NONE`. It is not where this window may have forgotten the
   * key since it came into force: then it knew all of it.
   */
  slotToInherit(sibling: KeyTable, name: TextBytes, groupMillis: number): number {
    const slot = sibling.keys.find(name);
    if (slot === NONE || groupMillis < this.sinceMillis + this.#reachMillis) return slot;
    return sibling.keys.madeMillisAt(slot) < this.sinceMillis ? slot : NONE;
  }

  /** Adds a key that was not there, last granted something at `madeMillis`, at the end of the sweep order. */
  add(name: TextBytes, madeMillis: number, sinceIndex: number): number {
    this.meter.add();
    return this.keys.add(name, madeMillis, sinceIndex);
  }

  /**
   * Forgets the key in `slot` if it is idle at `groupMillis`, and says whether it did. The last key of the order
   * then takes the slot.
   *
   * @param rule as it is for this key: what flows out of a bucket depends on its limit
   * @param windowMillis its window, in group time
   */
  evictIfIdle(
    slot: number,
    groupMillis: number,
    rule = this.rule,
    windowMillis = this.effectiveWindowMillis,
  ): boolean {
    // Most often this is enough, and nothing of the meter is looked at.
    if (this.keys.madeMillisAt(slot) + this.#reachOf(rule, windowMillis) > groupMillis) return false;
    if (this.idleFromMillis(slot, rule, windowMillis) > groupMillis) return false;
    this.forget(slot, rule, windowMillis);
    return true;
  }

  /** Group time from which on the key in `slot` may be forgotten, if it is granted nothing until then. See `evictIfIdle`. */
  idleFromMillis(slot: number, rule: Rule, windowMillis: number): number {
    const madeMillis = this.keys.madeMillisAt(slot);
    const reachMillis = this.#reachOf(rule, windowMillis);
    if (this.meter.newestMillis(slot) < this.#nearEpochMillis)
      return madeMillis + Math.max(FAR_EPOCH_HORIZON_MILLIS, reachMillis);
    const goneMillis = this.meter.idleAtMillis(slot, windowMillis, rule) - this.aheadMillis;
    const idleMillis = Math.max(goneMillis, madeMillis + reachMillis);
    return idleMillis + (this.eventTimed ? LATE_MILLIS : 0);
  }

  #reachOf(rule: Rule, windowMillis: number): number {
    const isOwn = rule !== this.rule || windowMillis !== this.effectiveWindowMillis;
    return isOwn ? reachMillisOf(rule, windowMillis) : this.#reachMillis;
  }

  /** Forgets the key in `slot`, of which nothing counts any more. The last key of the order takes the slot. */
  forget(slot: number, rule = this.rule, windowMillis = this.effectiveWindowMillis): void {
    if (this.meter.newestMillis(slot) >= this.#nearEpochMillis) {
      const goneMillis = this.meter.idleAtMillis(slot, windowMillis, rule) - this.aheadMillis;
      this.evictedThroughMillis = Math.max(this.evictedThroughMillis, goneMillis);
    }
    this.reset(slot);
  }

  /** Forgets the key in `slot`, whatever counts of it: as if it had never been granted anything. The last key takes the slot. */
  reset(slot: number): void {
    this.watcher?.beforeChange(slot);
    this.watcher?.beforeChange(this.size - 1);
    this.keys.remove(slot);
    this.meter.remove(slot);
  }

  /** From entry `index` on the key in `slot` has another limit. Of what a bucket was granted before, no refund can tell any more. */
  followOwn(slot: number, index: number): void {
    if (this.meterKind !== 'bucket' && this.meterKind !== 'arrival time') return;
    this.#watcher?.beforeChange(slot);
    this.keys.setSinceIndex(slot, index);
  }
}
