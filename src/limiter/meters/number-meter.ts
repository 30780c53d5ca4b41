/**
 * What all meters of a few numbers have in common: a row per key, nothing beyond `KEY_BYTES`, one part in a snapshot. What
 * the numbers mean is the meter's.
 */
import type { Rule } from '../../api/rule.ts';
import type { ByteReader } from '../../bytes/byte-reader.ts';
import type { Demand, KeyRun, Meter, MeterView } from './meter.ts';
import { type NumberBound, NumberRows } from './number-rows.ts';

/** One row of a `NumberRows` per key. */
export abstract class NumberMeter implements Meter {
  protected readonly rows: NumberRows;

  /** @param bounds of its numbers, see `NumberRows` */
  protected constructor(bounds: readonly NumberBound[]) {
    this.rows = new NumberRows(bounds);
  }

  get size(): number {
    return this.rows.size;
  }

  add(): void {
    this.rows.add();
  }

  remove(slot: number): void {
    this.rows.remove(slot);
  }

  newestMillis(slot: number): number {
    return this.rows.newestMillis(slot);
  }

  /** Its row is there already. */
  bytesToGrant(): number {
    return 0;
  }

  view(): MeterView {
    return this.rows.view();
  }

  read(slot: number, input: ByteReader, madeMillis: number): number {
    this.rows.read(slot, input, madeMillis);
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
