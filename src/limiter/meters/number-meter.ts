/**
 * The base class of meters that keep a few numbers per key: one row per key, included in `KEY_BYTES`, always one part
 * in a snapshot.
 */
import type { Rule } from '../../api/rule.ts';
import type { ByteReader } from '../../bytes/byte-reader.ts';
import type { Rows } from '../state/rows.ts';
import type { Demand, KeyRun, Meter, MeterView } from './meter.ts';
import { type NumberBound, NumberRows } from './number-rows.ts';

/** A meter with one row of a `NumberRows` per key. Subclasses define what the numbers mean. */
export abstract class NumberMeter implements Meter {
  protected readonly numbers: NumberRows;

  /** @param bounds the range of each number, see `NumberRows` */
  protected constructor(bounds: readonly NumberBound[]) {
    this.numbers = new NumberRows(bounds);
  }

  get rows(): Rows {
    return this.numbers.rows;
  }

  add(): void {
    this.numbers.add();
  }

  remove(slot: number): void {
    this.numbers.remove(slot);
  }

  newestMillis(slot: number): number {
    return this.numbers.newestMillis(slot);
  }

  /** The row of a key exists already. */
  bytesToGrant(): number {
    return 0;
  }

  view(): MeterView {
    return this.numbers.view();
  }

  read(slot: number, input: ByteReader, madeMillis: number): number {
    this.numbers.read(slot, input, madeMillis);
    return 0;
  }

  abstract liveCost(slot: number, demand: Demand): number;
  abstract millisUntilAvailable(slot: number, demand: Demand, cost: number): number;
  abstract millisUntilEmpty(slot: number, demand: Demand): number;
  abstract grant(slot: number, demand: Demand): void;
  abstract refund(slot: number, timeMillis: number, cost: number, rule: Rule, nowMillis: number): void;
  abstract idleAtMillis(slot: number, windowMillis: number, rule: Rule): number;
  abstract inspect(slot: number): readonly KeyRun[];
}
