/**
 * The records of keys: what operators said of them, found by the key's bytes. It decides nothing, and knows no grants. Records
 * stay until they are deleted, but for those that say nothing but that a block has ended: a sweep forgets them.
 *
 * A record is an object, other than a key: there are as many as operators made, and `CUSTOMER_BYTES` counts it. It is never
 * changed but replaced, so a snapshot holds on to those that were there when it began.
 */

import type { CustomerRecord, LimitOverride } from '../../api/customer-record.ts';
import { LIMIT_MAX, type Rule } from '../../api/rule.ts';
import type { AppliedPosition } from '../decision.ts';
import { Keys } from './keys.ts';
import type { KeyTable } from './key-table.ts';
import { NONE } from './rows.ts';
import { CUSTOMER_BYTES, OVERRIDE_BYTES, StateSize } from './state-size.ts';
import { TextBytes } from './text-bytes.ts';

export interface NamedRecord {
  readonly userId: string;
  readonly record: CustomerRecord;
}

/** In the order in which they are written: the last one takes the place of one that is removed. */
export class CustomerTable {
  readonly #size: StateSize;
  /** Their size is counted in one go. */
  readonly #keys = new Keys(new StateSize());
  readonly #records: NamedRecord[] = [];

  /** The name of a key that is asked for by its slot. */
  readonly #name: TextBytes;
  readonly #view = { bytes: new Uint8Array(0), nameFrom: 0, nameBytes: 0 };

  constructor(size: StateSize, hashSeed: number) {
    this.#size = size;
    this.#name = new TextBytes(hashSeed);
  }

  get size(): number {
    return this.#records.length;
  }

  /** As they are now, whatever is changed later. One copy of their addresses. */
  get all(): readonly NamedRecord[] {
    return this.#records.slice();
  }

  /** The record of the key of this name. */
  find(name: TextBytes): CustomerRecord | undefined {
    // Most states have none, and every request asks.
    if (this.#records.length === 0) return undefined;
    const slot = this.#keys.find(name);
    return slot === NONE ? undefined : this.#records[slot]!.record;
  }

  /** The rule as it is for the key in `slot`, where that says how long the key must be known: the rate of a bucket does. */
  ruleToForget({ rule, keys, meterKind }: KeyTable, slot: number): Rule {
    if (this.#records.length === 0 || meterKind !== 'bucket') return rule;
    const { bytes, nameFrom, nameBytes } = keys.readName(slot, this.#view);
    this.#name.setBytes(bytes, nameFrom, nameFrom + nameBytes);
    return ruleFor(this.find(this.#name), rule);
  }

  /** Takes the place of the key's record, if it has one. @param name `userId` in bytes */
  put(name: TextBytes, userId: string, record: CustomerRecord): void {
    const before = this.#keys.find(name);
    if (before === NONE) this.#size.customers += 1;
    else this.#size.customerBytes -= bytesOf(this.#records[before]!.record, name.length);
    this.#size.customerBytes += bytesOf(record, name.length);
    const slot = before === NONE ? this.#keys.add(name, 0) : before;
    this.#records[slot] = { userId, record };
  }

  /** There must be one. */
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
   * Looks at up to `looks` records, and forgets those that say nothing at group time `timeMillis`. Where there are more, the index of the
   * sweeping entry says where it begins, so that each sweep looks elsewhere and none keeps where the one before stood.
   */
  sweep(looks: number, { index, timeMillis }: AppliedPosition): void {
    const { size } = this;
    const from = (index % Math.max(1, Math.ceil(size / looks))) * looks;
    // Downwards: the last one, which takes the place of one that goes, was looked at before, or is none of these.
    for (let slot = Math.min(size, from + looks) - 1; slot >= from; slot -= 1) {
      if (!saysNothing(recordAt(this.#records[slot]!.record, timeMillis))) continue;
      this.#removeAt(slot, this.#keys.readName(slot, this.#view).nameBytes);
    }
  }

  /** Group time from which on a sweep forgets the record in `slot`; `Infinity`: it says something until an operator changes it. */
  endedFromMillis(slot: number): number {
    const { record } = this.#records[slot]!;
    return saysNothing({ ...record, isBlocked: false }) ? (record.blockedUntilMillis ?? Infinity) : Infinity;
  }

  /** The bytes that `put` would add, by the model of `StateSize`; fewer than 0 where the record gets smaller. */
  bytesToPut(name: TextBytes, record: CustomerRecord): number {
    const before = this.find(name);
    return bytesOf(record, name.length) - (before === undefined ? 0 : bytesOf(before, name.length));
  }
}

function bytesOf({ tier = '', overrides }: CustomerRecord, nameBytes: number): number {
  // Three bytes for a character are as many as UTF-8 takes for a unit of UTF-16, and the model errs on the large side.
  let bytes = CUSTOMER_BYTES + 2 * nameBytes + 3 * tier.length;
  for (const { ruleId } of overrides) bytes += OVERRIDE_BYTES + 3 * ruleId.length;
  return bytes;
}

/** It is as if there were none. */
export function saysNothing({ tier, overrides, isBlocked }: CustomerRecord): boolean {
  return tier === undefined && overrides.length === 0 && !isBlocked;
}

/** Is its key blocked at this group time? */
export function isBlockedAt(record: CustomerRecord | undefined, timeMillis: number): boolean {
  return record?.isBlocked === true && timeMillis < (record.blockedUntilMillis ?? Infinity);
}

/** The record as it is at this group time: a block that has ended is none. */
export function recordAt(record: CustomerRecord, timeMillis: number): CustomerRecord {
  if (!record.isBlocked || isBlockedAt(record, timeMillis)) return record;
  const { blockedUntilMillis: _, ...others } = record;
  return { ...others, isBlocked: false };
}

/** The rule as it is for the key of `record`: itself, unless the record has a limit of its own under it. */
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
