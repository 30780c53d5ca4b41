/**
 * The operators' changes of keys in the committed logs, and what follows from them. A request made after a change was
 * answered is decided by that change or a later one. The answer to an operator is the result in the log, committed
 * while the operator waited.
 */
import type { CustomerOutcome } from '../../src/api/customer.ts';
import { type CustomerRecord, NO_RECORD } from '../../src/api/customer-record.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import type { SaidOfKey } from './logged-entries.ts';
import { wordsOfRecord } from './naive-record.ts';
import { check } from './story.ts';

interface Said extends SaidOfKey {
  readonly decision: Decision;
  /** When its leader stamped it, in real time; undefined if unknown. */
  readonly stampedMillis: number | undefined;
}

/** A record in force, in real time, from when it was known to be committed until the next one was. */
interface PlacedRecord {
  readonly record: CustomerRecord;
  readonly fromMillis: number;
  untilMillis: number;
}

/** The place of a key's change in a log. */
interface LogPlace {
  readonly index: number;
  readonly position?: number | undefined;
}

export class CustomerLedger {
  /** By group, entry and place. */
  readonly #said = new Map<string, Said>();
  /** By key, oldest first. */
  readonly #records = new Map<string, PlacedRecord[]>();
  /** By key: changes and resets that an operator has an answer for. */
  readonly #answered = new Map<string, { readonly index: number; readonly atMillis: number }[]>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Entry `index` of `group` is committed with this decision. */
  logged(group: number, index: number, i: number, said: Said): void {
    this.#said.set(`${group}/${index}/${i}`, said);
    const { record } = said.decision.customer ?? {};
    const last = this.#recordsOf(said.userId).at(-1)!;
    if (record === undefined || wordsOfRecord(record) === wordsOfRecord(last.record)) return;
    this.#place(said.userId, record);
  }

  /** A committed sweep forgot the record, which had no content any more. */
  forgotten(userId: string): void {
    this.#place(userId, NO_RECORD);
  }

  #place(userId: string, record: CustomerRecord): void {
    const all = this.#recordsOf(userId);
    all.at(-1)!.untilMillis = this.#now();
    all.push({ record, fromMillis: this.#now(), untilMillis: Infinity });
  }

  /** The records in force at some time since; no record counts as one. */
  recordsSince(userId: string, sinceMillis: number): readonly CustomerRecord[] {
    const all = this.#recordsOf(userId).filter(({ untilMillis }) => untilMillis >= sinceMillis);
    return all.map(({ record }) => record);
  }

  /** An operator who asked at `askedMillis` gets an answer. */
  reported(
    group: number,
    { userId, type }: { readonly userId: string; readonly type: string },
    { isDone, record, decided }: CustomerOutcome,
    askedMillis: number,
  ): void {
    const where = `${type} of ${userId}, entry ${decided.index} of group ${group}`;
    const said = this.#said.get(`${group}/${decided.index}/${decided.position}`);
    check(said?.userId === userId && said.said.type === type, () => `the log has no such change: ${where}`);
    const { customer, decided: logged } = said.decision;
    const isSame = customer?.isDone === isDone && wordsOfRecord(customer.record) === wordsOfRecord(record);
    check(
      isSame && logged.term === decided.term && logged.timeMillis === decided.timeMillis,
      () => `an operator must get ${JSON.stringify(customer)}, not ${wordsOfRecord(record)}: ${where}`,
    );
    // The answer was true while the operator waited.
    const { stampedMillis = Infinity } = said;
    check(stampedMillis >= askedMillis, () => `an operator gets a record from before the question: ${where}`);
    this.binds(userId, decided, askedMillis, where);
    if (type === 'read' || !isDone) return;
    const answered = this.#answered.get(userId) ?? [];
    this.#answered.set(userId, [...answered, { index: decided.index, atMillis: this.#now() }]);
  }

  /** A request made at `invokedMillis` is decided after all changes of its key that were answered before. */
  binds(userId: string, { index }: LogPlace, invokedMillis: number, where: string): void {
    const before = this.#answered.get(userId)?.filter(({ atMillis }) => atMillis < invokedMillis) ?? [];
    const newest = Math.max(0, ...before.map((one) => one.index));
    check(
      index >= newest,
      () => `decided before entry ${newest}, a change that was already answered: ${where}`,
    );
  }

  #recordsOf(userId: string): PlacedRecord[] {
    let all = this.#records.get(userId);
    if (all === undefined) {
      all = [{ record: NO_RECORD, fromMillis: -Infinity, untilMillis: Infinity }];
      this.#records.set(userId, all);
    }
    return all;
  }
}
