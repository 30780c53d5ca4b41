/**
 * The customer records of operators, found by the bytes of the key. Records stay until they are deleted, except those
 * that say only that a block has ended: a sweep forgets these.
 *
 * Unlike a key, a record is an object, because there are only as many as operators made; `CUSTOMER_BYTES` counts it.
 * Records are replaced, never changed, so a snapshot can keep those that existed when it began.
 */

import type { CustomerRecord, LimitOverride } from '../../api/customer-record.ts';
import { LIMIT_MAX, type Rule } from '../../api/rule.ts';
import type { AppliedPosition } from '../decision.ts';
import { Keys } from './keys.ts';
import type { KeyTable } from './key-table.ts';
import { NONE } from './rows.ts';
import { CUSTOMER_BYTES, OVERRIDE_BYTES, StateSize } from './state-size.ts';
import { TextBytes } from './text-bytes.ts';

/** A record and the key it belongs to. */
export interface NamedRecord {
  readonly userId: string;
  readonly record: CustomerRecord;
}

/** In the order of the snapshot. When a record is removed, the last one takes its place. */
export class CustomerTable {
  readonly #size: StateSize;
  /** A throwaway size: the bytes of records are counted in `customerBytes`. */
  readonly #keys = new Keys(new StateSize());
  readonly #records: NamedRecord[] = [];

  /** The name of a key that is looked up by its slot. */
  readonly #name: TextBytes;
  readonly #view = { bytes: new Uint8Array(0), nameFrom: 0, nameBytes: 0 };

  constructor(size: StateSize, hashSeed: number) {
    this.#size = size;
    this.#name = new TextBytes(hashSeed);
  }

  get size(): number {
    return this.#records.length;
  }

  /** All records as they are now, unaffected by later changes. Copies references only. */
  get all(): readonly NamedRecord[] {
    return this.#records.slice();
  }

  /** The record of the key with this name. */
  find(name: TextBytes): CustomerRecord | undefined {
    // Most states have no records, and every request asks.
    if (this.#records.length === 0) return undefined;
    const slot = this.#keys.find(name);
    return slot === NONE ? undefined : this.#records[slot]!.record;
  }

  /**
   * The rule with the overrides of the key in `slot`, if that affects how long the key must be remembered: only the
   * rate of a bucket does.
   */
  ruleToForget({ rule, keys, meterKind }: KeyTable, slot: number): Rule {
    if (this.#records.length === 0 || meterKind !== 'bucket') return rule;
    const { bytes, nameFrom, nameBytes } = keys.readName(slot, this.#view);
    this.#name.setBytes(bytes, nameFrom, nameFrom + nameBytes);
    return ruleFor(this.find(this.#name), rule);
  }

  /** Stores or replaces the record of a key. @param name `userId` in bytes */
  put(name: TextBytes, userId: string, record: CustomerRecord): void {
    const before = this.#keys.find(name);
    if (before === NONE) this.#size.customers += 1;
    else this.#size.customerBytes -= bytesOf(this.#records[before]!.record, name.length);
    this.#size.customerBytes += bytesOf(record, name.length);
    const slot = before === NONE ? this.#keys.add(name, 0) : before;
    this.#records[slot] = { userId, record };
  }

  /** Deletes the record of a key, which must have one. */
  remove(name: TextBytes): void {
    this.#removeAt(this.#keys.find(name), name.length);
  }

  #removeAt(slot: number, nameBytes: number): void {
    this.#size.customers -= 1;
    this.#size.customerBytes -= bytesOf(this.#records[slot]!.record, nameBytes);
    this.#keys.remove(slot);
    const last = this.#records.pop()!;
    if (slot < this.#records.length) this.#records[slot] = last;
  }

  /**
   * Visits up to `visits` records and forgets those that say nothing at group time `timeMillis`. If there are more
   * records, the index of the sweeping entry selects where to begin. So successive sweeps visit different records
   * without remembering a position.
   */
  sweep(visits: number, { index, timeMillis }: AppliedPosition): void {
    const { size } = this;
    const from = (index % Math.max(1, Math.ceil(size / visits))) * visits;
    // Downwards, because removing a record moves the last one into its slot: that one was visited already or is not
    // among these.
    for (let slot = Math.min(size, from + visits) - 1; slot >= from; slot -= 1) {
      if (!saysNothing(recordAt(this.#records[slot]!.record, timeMillis))) continue;
      this.#removeAt(slot, this.#keys.readName(slot, this.#view).nameBytes);
    }
  }

  /**
   * The group time from which on a sweep forgets the record in `slot`; `Infinity` if it stays until an operator changes
   * it.
   */
  endedFromMillis(slot: number): number {
    const { record } = this.#records[slot]!;
    return saysNothing({ ...record, isBlocked: false }) ? (record.blockedUntilMillis ?? Infinity) : Infinity;
  }

  /** The bytes that `put` would add, by the model of `StateSize`; negative if the record gets smaller. */
  bytesToPut(name: TextBytes, record: CustomerRecord): number {
    const before = this.find(name);
    return bytesOf(record, name.length) - (before === undefined ? 0 : bytesOf(before, name.length));
  }
}

function bytesOf({ tier = '', overrides }: CustomerRecord, nameBytes: number): number {
  // A UTF-16 code unit takes at most three bytes in UTF-8. The model errs on the large side.
  let bytes = CUSTOMER_BYTES + 2 * nameBytes + 3 * tier.length;
  for (const { ruleId } of overrides) bytes += OVERRIDE_BYTES + 3 * ruleId.length;
  return bytes;
}

/** The record has no effect, as if there were none. */
export function saysNothing({ tier, overrides, isBlocked }: CustomerRecord): boolean {
  return tier === undefined && overrides.length === 0 && !isBlocked;
}

/** Is the key of the record blocked at this group time? */
export function isBlockedAt(record: CustomerRecord | undefined, timeMillis: number): boolean {
  return record?.isBlocked === true && timeMillis < (record.blockedUntilMillis ?? Infinity);
}

/** The record as it is at this group time, without a block that has ended. */
export function recordAt(record: CustomerRecord, timeMillis: number): CustomerRecord {
  if (!record.isBlocked || isBlockedAt(record, timeMillis)) return record;
  const { blockedUntilMillis: _, ...others } = record;
  return { ...others, isBlocked: false };
}

/** The rule for the key of `record`: with its override if the record has one, otherwise unchanged. */
export function ruleFor(record: CustomerRecord | undefined, rule: Rule): Rule {
  const override = record?.overrides.find(({ ruleId }) => ruleId === rule.id);
  return override === undefined ? rule : overridden(rule, override);
}

function overridden(rule: Rule, { limit, burst }: LimitOverride): Rule {
  const isBucket = rule.meter === 'tokenBucket' || rule.meter === 'leakyBucket';
  if (!isBucket) return { ...rule, limit };
  const { burst: _, queue, ...others } = rule;
  return {
    ...others,
    limit,
    ...(burst !== undefined && { burst }),
    // No bucket holds more than its arithmetic allows.
    ...(queue !== undefined && { queue: Math.min(queue, LIMIT_MAX - (burst ?? limit)) }),
  };
}
