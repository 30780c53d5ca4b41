/**
 * The operators' records of keys, by entry. Written again from docs/internals/limiter.md; it uses no code of the
 * product.
 */
import { type CustomerRecord, NO_RECORD } from '../../src/api/customer-record.ts';
import type { StateItem } from '../../src/limiter/state/inspection.ts';
import type { SaidOfKey } from './logged-entries.ts';
import { blockWaitAt, reportedAt } from './naive-record.ts';
import { type Since, type Tally, valueAt } from './naive-state.ts';

/** The model of sizes: src/limiter/state/state-size.ts. */
const CUSTOMER_BYTES = 320;
const OVERRIDE_BYTES = 96;

/** The result of a change of a record. `same`: it named another version, or there is nothing to change. */
export type RecordChange =
  | { readonly kind: 'same'; readonly isDone: boolean; readonly record: CustomerRecord }
  | { readonly kind: 'full' }
  /** `hasOwn`: the key's own limits were added or removed. */
  | { readonly kind: 'changed'; readonly record: CustomerRecord; readonly hasOwn: boolean };

export class NaiveRecords {
  readonly #records = new Map<string, Since<CustomerRecord>[]>();
  readonly #tally: Tally;

  constructor(tally: Tally) {
    this.#tally = tally;
  }

  /** After entry `index`. */
  at(userId: string, index: number): CustomerRecord {
    return valueAt(this.#records.get(userId) ?? [], index) ?? NO_RECORD;
  }

  /** See `blockWaitAt`. */
  blockWaitAt(userId: string, index: number, nowMillis: number): number | undefined {
    return blockWaitAt(this.at(userId, index), nowMillis);
  }

  /**
   * The sweep of entry `index`: returns the keys whose records it forgets, since they hold only a block that has ended.
   * One sweep covers all records: no world has as many as a sweep visits.
   */
  sweep(index: number, nowMillis: number): readonly string[] {
    const forgotten = [...this.#records.keys()].filter((userId) => {
      const { version, tier, overrides, isBlocked } = reportedAt(this.at(userId, Infinity), nowMillis);
      return version > 0 && tier === undefined && overrides.length === 0 && !isBlocked;
    });
    for (const userId of forgotten) {
      const record = this.at(userId, Infinity);
      this.#tally.bytes -= bytesOf(userId, record);
      this.#tally.count(recordItem(userId, record), -1);
      this.#records.get(userId)?.push({ index, value: NO_RECORD });
    }
    return forgotten;
  }

  /**
   * Applies a change in entry `index`, at group time `nowMillis`.
   *
   * @param capBytes the most bytes that the state may hold
   */
  change(
    { userId, said }: SaidOfKey,
    {
      index,
      nowMillis,
      capBytes,
    }: { readonly index: number; readonly nowMillis: number; readonly capBytes: number },
  ): RecordChange {
    const stored = this.at(userId, Infinity);
    const before = reportedAt(stored, nowMillis);
    const isOther = 'ifVersion' in said && said.ifVersion !== undefined && said.ifVersion !== before.version;
    const wanted = isOther ? undefined : wantedBy(before, said, nowMillis);
    if (wanted === undefined) return { kind: 'same', isDone: !isOther, record: before };
    const isNone = wanted.tier === undefined && wanted.overrides.length === 0 && !wanted.isBlocked;
    if (isNone && before.version === 0) return { kind: 'same', isDone: true, record: NO_RECORD };
    const record = isNone ? NO_RECORD : { ...wanted, version: index };
    const bytes = bytesOf(userId, record) - bytesOf(userId, before);
    const capped = capBytes + 2 * Math.floor(capBytes / 8);
    if (!isNone && bytes > 0 && this.#tally.bytes + bytes > capped) return { kind: 'full' };
    this.#tally.bytes += bytes;
    if (before.version > 0) this.#tally.count(recordItem(userId, stored), -1);
    if (!isNone) this.#tally.count(recordItem(userId, record), 1);
    const all = this.#records.get(userId) ?? [];
    this.#records.set(userId, [...all, { index, value: record }]);
    return { kind: 'changed', record, hasOwn: before.overrides.length + record.overrides.length > 0 };
  }
}

function wantedBy(
  before: CustomerRecord,
  said: SaidOfKey['said'],
  nowMillis: number,
): CustomerRecord | undefined {
  const { blockedUntilMillis: end, ...unsaid } = before;
  switch (said.type) {
    case 'put': {
      const { tier, overrides } = said;
      const terms = { version: 0, ...(tier !== undefined && { tier }), overrides };
      if (said.isBlocked !== undefined)
        return { ...terms, ...blockOf(said.isBlocked, said.durationMillis, nowMillis) };
      return { ...terms, isBlocked: before.isBlocked, ...(end !== undefined && { blockedUntilMillis: end }) };
    }
    case 'delete':
      return NO_RECORD;
    case 'block':
      return { ...unsaid, ...blockOf(said.isBlocked, said.durationMillis, nowMillis) };
    default:
      return undefined;
  }
}

function blockOf(isBlocked: boolean, durationMillis: number | undefined, nowMillis: number) {
  return durationMillis === undefined
    ? { isBlocked }
    : { isBlocked, blockedUntilMillis: nowMillis + durationMillis };
}

function bytesOf(userId: string, { version, tier = '', overrides }: CustomerRecord): number {
  if (version === 0) return 0;
  const texts = 2 * userId.length + 3 * tier.length;
  return overrides.reduce(
    (sum, { ruleId }) => sum + OVERRIDE_BYTES + 3 * ruleId.length,
    CUSTOMER_BYTES + texts,
  );
}

function recordItem(userId: string, record: CustomerRecord): StateItem {
  return { kind: 'record', userId, record };
}
