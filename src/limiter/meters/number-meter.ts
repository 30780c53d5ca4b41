/**
 * The base class of meters that keep a few numbers per key, and the rows that hold these numbers. There is one row per
 * key, included in `KEY_BYTES`, always one part in a snapshot.
 */
import type { Rule } from '../../api/rule.ts';
import type { ByteReader } from '../../bytes/byte-reader.ts';
import type { Rows } from '../state/rows.ts';
import type { Demand, KeyRun, Meter, MeterView } from './meter.ts';
import type { Slab } from '../state/block-pool.ts';
import type { ByteWriter } from '../../bytes/byte-writer.ts';
import { InvalidSnapshotError } from '../state/snapshot-bytes.ts';
import { newKeyRows } from '../state/keys.ts';

/** The `METER_WORDS` of a row as floats with integer values: the newest time, then the numbers. */
const NEWEST = 0;
const FIRST_NUMBER = 1;
const NUMBERS = 3;
const DOUBLES_PER_ROW = FIRST_NUMBER + NUMBERS;

const INTEGER_MAX = Number.MAX_SAFE_INTEGER;

/** The range of one of the numbers, and its name in errors. */
interface NumberBound {
  readonly name: string;
  readonly min: number;
  readonly max: number;
}

/**
 * The rows of all keys of one meter: the time of the newest grant and up to three integers. Stores, copies, writes and
 * reads them.
 */
class NumberRows {
  readonly #rows = newKeyRows();
  readonly #bounds: readonly NumberBound[];

  /** @param bounds of each number in use, for a key that was granted something */
  constructor(bounds: readonly NumberBound[]) {
    this.#bounds = bounds;
  }

  get rows(): Rows {
    return this.#rows;
  }

  /** Adds a row of zeros. */
  add(): void {
    const slot = this.#rows.append();
    const from = this.#rows.at(slot) >>> 1;
    this.#rows.doubles(slot).fill(0, from, from + DOUBLES_PER_ROW);
  }

  /** Drops the row in `slot` and moves the last row there. */
  remove(slot: number): void {
    const last = this.#rows.size - 1;
    if (slot !== last) this.#rows.copy(last, slot);
    this.#rows.dropLast();
  }

  newestMillis(slot: number): number {
    return this.#rows.doubles(slot)[this.#rows.at(slot) >>> 1]!;
  }

  setNewestMillis(slot: number, millis: number): void {
    this.#rows.doubles(slot)[this.#rows.at(slot) >>> 1] = millis;
  }

  /** Number `i`, 0 to 2. */
  number(slot: number, i: number): number {
    return this.#rows.doubles(slot)[(this.#rows.at(slot) >>> 1) + FIRST_NUMBER + i]!;
  }

  setNumber(slot: number, i: number, value: number): void {
    this.#rows.doubles(slot)[(this.#rows.at(slot) >>> 1) + FIRST_NUMBER + i] = value;
  }

  view(): MeterView {
    return new RowView(this.#rows, this.#bounds.length);
  }

  /** See `Meter.read`. Always one part. */
  read(slot: number, input: ByteReader, madeMillis: number): void {
    const newestMillis = madeMillis + input.signed('newest grant', INTEGER_MAX);
    if (newestMillis < 0 || newestMillis > INTEGER_MAX) {
      throw new InvalidSnapshotError('a grant time out of range');
    }
    this.setNewestMillis(slot, newestMillis);
    for (const [i, { name, min, max }] of this.#bounds.entries()) {
      this.setNumber(slot, i, input.integer(name, min, max));
    }
  }
}

class RowView implements MeterView {
  readonly units = DOUBLES_PER_ROW;
  readonly #rows: Rows;
  readonly #numbers: number;
  #doubles: Float64Array = new Float64Array(DOUBLES_PER_ROW);
  #from = 0;

  constructor(rows: Rows, numbers: number) {
    this.#rows = rows;
    this.#numbers = numbers;
  }

  show(slot: number): void {
    this.#doubles = this.#rows.doubles(slot);
    this.#from = this.#rows.at(slot) >>> 1;
  }

  copyTo({ doubles }: Slab, at: number): void {
    for (let i = 0; i < DOUBLES_PER_ROW; i += 1) doubles[(at >>> 1) + i] = this.#doubles[this.#from + i]!;
  }

  showCopy({ doubles }: Slab, at: number): void {
    this.#doubles = doubles;
    this.#from = at >>> 1;
  }

  write(out: ByteWriter, madeMillis: number): number {
    out.signed(this.#doubles[this.#from + NEWEST]! - madeMillis);
    for (let i = 0; i < this.#numbers; i += 1) out.integer(this.#doubles[this.#from + FIRST_NUMBER + i]!);
    return 0;
  }
}

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
