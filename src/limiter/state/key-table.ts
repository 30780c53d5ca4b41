/**
 * All keys of one rule: their grants, and when an idle key may be forgotten. The order of the keys is defined, so that
 * a sweep over them is the same on every replica.
 */

import { capacityOf, type Rule, WINDOW_MILLIS_MAX } from '../../api/rule.ts';
import { type MeterKind, meterKindOf, meterOf, reachMillisOf } from '../meters/meter-of.ts';
import type { Demand, Meter } from '../meters/meter.ts';
import { areSameRule } from '../rule-form.ts';
import { statedRule } from '../rules.ts';
import { Keys } from './keys.ts';
import { FAR_EPOCH_HORIZON_MILLIS, LATE_MILLIS, LostHistory } from './lost-history.ts';
import type { GrantView } from './remembered-grant.ts';
import { NONE } from './rows.ts';
import { type StateSize } from './state-size.ts';
import type { TextBytes } from './text-bytes.ts';
import { UtcSteps } from './utc-steps.ts';

/** How far ahead of group time a key may be and still come back after a refund: see `Demand.keptMillis`. */
export const AHEAD_MILLIS_MAX = 604_800_000;

/**
 * Event time and group time are comparable only if callers use the same epoch. A key is of the *near* epoch if its
 * newest grant is at most 31 days older than the group. Anything older (logical clocks, seconds mistaken for
 * milliseconds, replays of old data) is of a *far* epoch.
 */
export function nearEpochMillis(createdMillis: number): number {
  return createdMillis - WINDOW_MILLIS_MAX;
}

const NO_TABLES: readonly KeyTable[] = [];
const NOTHING_LOST = new LostHistory();

/** Notified before the content of a slot is changed, moved or forgotten. */
export interface SlotWatcher {
  beforeChange(slot: number): void;
}

/** A demand that fits. */
interface Granted extends Demand {
  /** The slot of its key, or `NONE`. */
  readonly slot: number;
  /** The time of its key's newest grant so far. */
  readonly newestMillis: number;
  /** It was judged at a caller's timestamp. */
  readonly isEvent: boolean;
}

/** A request, and the rule with the overrides of its key. */
interface Asked {
  readonly asked: number;
  readonly isEvent: boolean;
  readonly rule: Rule;
}

/** All tables of one window of a rule, one per meter that the window has had. */
export type Sibling = readonly KeyTable[];

/**
 * The keys of one rule. What forgetting costs:
 * - A near key is forgotten only if its grants are out of every window at the current group time and none was made for
 *   as long as a grant counts, in group time, plus `LATE_MILLIS` once callers send their own timestamps.
 *   `evictedThroughMillis` keeps the time at which all forgotten grants are out; an unknown key, or one known only from
 *   a far epoch, that asks for an earlier time is denied, because its history may have been forgotten. So no lag,
 *   however long, gets a request around a forgotten grant, but a new user whose timestamps are more than `LATE_MILLIS`
 *   late may be denied.
 * - A far key is forgotten after `FAR_EPOCH_HORIZON_MILLIS` of group time without a grant, or after as long as a grant
 *   counts if that is longer. Within that time the promise holds in the caller's time; a replay that pauses longer
 *   starts afresh. A far key with a grant in the near epoch is kept as long, although it is near now: while it is
 *   known, requests that its caller stamps with the far epoch again are judged at its newest grant.
 */
export class KeyTable {
  /** The keys by slot, in sweep order. */
  readonly keys: Keys;
  readonly meter: Meter;
  readonly meterKind: MeterKind;
  /** The rule as last seen in a rule table. */
  rule: Rule;
  /** The most that the rule may grant at once. */
  capacity: number;
  /**
   * The rule's window for timestamps of group time: widened by the clock drift. It is longer than `rule.windowMillis`, so
   * it also says what may be pruned.
   */
  effectiveWindowMillis: number;
  /** How long its grants count, between timestamps of group time. */
  #reachMillis: number;
  /** False if the current rule table lacks the rule or keeps it by another meter. The grants stay. */
  active = true;
  /** Tables of the same rule id under other meters. Their grants count on top until they are out. */
  retired: readonly KeyTable[];
  /** The other windows of its rule, in force or not. */
  siblings: readonly Sibling[] = [];
  /** The first millisecond of group time after its window last came into force, even if its meter changed since. */
  sinceMillis = 0;
  /** It is part of the state. The keys of stated rules are only from the first grant on. */
  isKept = false;
  /** For a stated rule: the table with the keys of all stated rules of its kind. */
  readonly shared: KeyTable | undefined;
  /** Builds the names of keys in that table: the key, followed by the rule id. */
  readonly #names: TextBytes | undefined;
  readonly #nameEnd: string;
  /** The id of its rule states the rule. */
  readonly isStated: boolean;
  /** True once a grant was recorded with a caller's timestamp. */
  eventTimed = false;
  /** At this group time every forgotten near-epoch grant is out of the window. Never above the present group time. */
  evictedThroughMillis = 0;
  /** The entry in which its rule last changed; 0 if it never did. */
  ruledIndex = 0;
  /** Set while a snapshot is still reading this table. */
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

  /** How far the time of its keys is ahead of group time: fixed windows use UTC, everything else group time. */
  get aheadMillis(): number {
    return this.meterKind === 'fixed window' ? this.#utc.aheadMillis : 0;
  }

  /** Can this table keep the grants of `rule`, which has the same id? */
  keeps(rule: Rule): boolean {
    return meterKindOf(rule) === this.meterKind;
  }

  /** From entry `index` on the rule is this one; recorded grants stay. */
  follow(rule: Rule, effectiveWindowMillis: number, index: number): void {
    if (!areSameRule(rule, this.rule)) this.ruledIndex = index;
    this.rule = rule;
    this.effectiveWindowMillis = effectiveWindowMillis;
    this.capacity = capacityOf(this.rule);
    this.#reachMillis = reachMillisOf(this.rule, this.effectiveWindowMillis);
  }

  /**
   * From when on no forgotten grant of the key counts; 0 if none can overlap with the time asked for.
   * @param newestMillis of the key; `-Infinity` if it is not known
   */
  forgottenMillis(newestMillis: number, askedMillis: number): number {
    // Slightly below the near epoch, a grant may still overlap with what was forgotten inside it.
    if (askedMillis <= this.#nearEpochMillis - this.#reachMillis) return 0;
    // Grants of a far epoch say nothing about what was forgotten in the near one.
    const isKnown = newestMillis >= this.#nearEpochMillis;
    return isKnown || this.evictedThroughMillis === 0 ? 0 : this.evictedThroughMillis + this.aheadMillis;
  }

  /** Like `forgottenMillis`, but also covers missing history. @param now group time */
  unknownMillis(newestMillis: number, demand: Asked, now: number): number {
    const forgottenMillis = this.forgottenMillis(newestMillis, demand.asked);
    if (this.#lost.throughIndex === 0) return forgottenMillis;
    return Math.max(forgottenMillis, this.lostMillis(demand, now));
  }

  /** Like `forgottenMillis`, but only for missing history: see `LostHistory.throughMillis`. */
  lostMillis(demand: Asked, now: number): number {
    if (this.#lost.throughIndex === 0) return 0;
    const reachMillis = reachMillisOf(demand.rule, this.effectiveWindowMillis);
    const isFar = demand.isEvent && demand.asked <= this.#nearEpochMillis - reachMillis;
    return this.#lost.throughMillis(demand, now, reachMillis, isFar);
  }

  /** The slot of the key with this name, or `NONE`. */
  find(name: TextBytes): number {
    return this.keys.find(this.#stored(name));
  }

  /** The bytes of the stored name of a key. */
  nameBytes(name: TextBytes): number {
    return this.#stored(name).length;
  }

  /** The name in its stored form: see `stated-tables.ts`. */
  #stored(name: TextBytes): TextBytes {
    if (this.#names === undefined) return name;
    this.#names.setBehind(name, this.#nameEnd);
    return this.#names;
  }

  /** Records a grant to the key with this name, made at `groupMillis` in entry `index`. Returns its slot. */
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
   * Adds an unknown key with the usage that an operator set, perhaps 0. It counts as made no earlier than its window
   * came into force, even in the same millisecond, so it inherits nothing.
   */
  setUsed(demand: Demand, name: TextBytes, applied: { timeMillis: number; index: number }): void {
    const slot = this.add(this.#stored(name), Math.max(applied.timeMillis, this.sinceMillis), applied.index);
    this.#watcher?.beforeChange(slot);
    this.meter.grant(slot, demand);
  }

  /**
   * Refunds a grant of the key in `slot`, unless it is older than a reset of the key, a new limit of its bucket, or
   * (for all meters but logs) a change of the rule.
   * @param rule with the overrides of this key
   * @param groupMillis of the refunding entry
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

  /** The key in `slot` (or `NONE`) has no grant since this window came into force; other windows may know it. */
  isNewTo(slot: number): boolean {
    if (this.siblings.length === 0) return false;
    return slot === NONE || this.keys.madeMillisAt(slot) < this.sinceMillis;
  }

  /**
   * The slot of a key in `sibling` if it is news here; else `NONE`. It is no news if this window may have forgotten the
   * key since it came into force: then it knew all of it.
   */
  slotToInherit(sibling: KeyTable, name: TextBytes, groupMillis: number): number {
    const slot = sibling.keys.find(name);
    if (slot === NONE || groupMillis < this.sinceMillis + this.#reachMillis) return slot;
    return sibling.keys.madeMillisAt(slot) < this.sinceMillis ? slot : NONE;
  }

  /** Adds a new key, with its last grant at `madeMillis`, at the end of the sweep order. */
  add(name: TextBytes, madeMillis: number, sinceIndex: number): number {
    this.meter.add();
    return this.keys.add(name, madeMillis, sinceIndex);
  }

  /**
   * Forgets the key in `slot` if it is idle at `groupMillis`; the last key takes the slot. Returns whether it did.
   * @param rule with the overrides of this key, because the drain of a bucket depends on its limit
   * @param windowMillis its window, in group time
   */
  evictIfIdle(
    slot: number,
    groupMillis: number,
    rule = this.rule,
    windowMillis = this.effectiveWindowMillis,
  ): boolean {
    // Usually this is enough, and the meter is not read.
    if (this.keys.madeMillisAt(slot) + this.#reachOf(rule, windowMillis) > groupMillis) return false;
    if (this.idleFromMillis(slot, rule, windowMillis) > groupMillis) return false;
    this.forget(slot, rule, windowMillis);
    return true;
  }

  /** The group time from which on the key in `slot` may be forgotten, if it has no further grant. */
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

  /** Forgets the key in `slot`, none of whose grants counts any more. The last key takes the slot. */
  forget(slot: number, rule = this.rule, windowMillis = this.effectiveWindowMillis): void {
    if (this.meter.newestMillis(slot) >= this.#nearEpochMillis) {
      const goneMillis = this.meter.idleAtMillis(slot, windowMillis, rule) - this.aheadMillis;
      this.evictedThroughMillis = Math.max(this.evictedThroughMillis, goneMillis);
    }
    this.reset(slot);
  }

  /** Forgets the key in `slot` even if its grants still count. The last key takes the slot. */
  reset(slot: number): void {
    this.watcher?.beforeChange(slot);
    this.watcher?.beforeChange(this.size - 1);
    this.keys.remove(slot);
    this.meter.remove(slot);
  }

  /** The key in `slot` has another limit from entry `index` on: its bucket cannot refund earlier grants. */
  followOwn(slot: number, index: number): void {
    if (this.meterKind !== 'bucket' && this.meterKind !== 'arrival time') return;
    this.#watcher?.beforeChange(slot);
    this.keys.setSinceIndex(slot, index);
  }
}
