/**
 * The meter of sliding logs for long windows: a grant counts as made at the next multiple of the rule's
 * `granularityMillis`. A key then remembers one run per granule with grants, not one per grant.
 */

import { GRANULARITY_MILLIS_MAX, type Rule } from '../../api/rule.ts';
import type { Slab } from '../state/block-pool.ts';
import type { ByteReader } from '../../bytes/byte-reader.ts';
import type { ByteWriter } from '../../bytes/byte-writer.ts';
import { InvalidSnapshotError } from '../state/snapshot-bytes.ts';
import { NONE, Rows } from '../state/rows.ts';
import type { StateSize } from '../state/state-size.ts';
import type { Demand, KeyRun, Meter, MeterView } from './meter.ts';
import { SlidingLogs } from './sliding-logs.ts';

/** A row: the time of the newest grant, as one float. */
const WORDS_PER_ROW = 2;
const ROWS_PER_SEGMENT = 2_048;
/** That row, in addition to the row of the log, which `KEY_BYTES` covers. */
const ROW_BYTES = 8;

const INTEGER_MAX = Number.MAX_SAFE_INTEGER;
const NO_RULE: Rule = { id: '', limit: 0, windowMillis: 1, clock: 'request' };

/**
 * Only the stamps of grants are rounded up. A request is judged at its own time `t`, and `newestMillis` is the time of
 * a grant, not its stamp, so a stamp may lie after `t`, by less than a granule. If the stamp were taken for the newest
 * time, the next request would be judged ahead of its time, and a request in group time would be held back until then.
 * The log below counts everything newer than `t - windowMillis`, stamps after `t` included, and forgets what is not
 * newer than that at the time of the grant: both use `t`.
 *
 * **Guarantee.** That of `SlidingLogs`: no rolling window holds more than the limit, because a stamp is never before
 * its grant. A grant counts longer than necessary, by less than `granularityMillis`.
 *
 * **A refund** gives back all of a grant while its granule counts, out of the run of that granule. If stamps of a
 * coarser granularity lay ahead of it, it may find less there.
 *
 * **Bytes per key.** `ROW_BYTES` beyond `KEY_BYTES`, and `RUN_BYTES` per granule with a grant in it: at most
 * `windowMillis / granularityMillis + 2` granules, however much is granted.
 *
 * **After a change** of the granularity, existing stamps stay, and later stamps are not before them.
 */
export class GranularLogs implements Meter {
  readonly #size: StateSize;
  readonly #logs: SlidingLogs;
  readonly #rows = new Rows(WORDS_PER_ROW, ROWS_PER_SEGMENT);
  /** Reused for all demands. */
  readonly #demand = { rule: NO_RULE, t: 0, cost: 0, windowMillis: 0, keptMillis: 0 };

  constructor(size: StateSize) {
    this.#size = size;
    this.#logs = new SlidingLogs(size);
  }

  get rows(): Rows {
    return this.#logs.rows;
  }

  add(): void {
    this.#logs.add();
    this.#setNewestMillis(this.#rows.append(), 0);
    this.#size.meterBytes += ROW_BYTES;
  }

  remove(slot: number): void {
    this.#logs.remove(slot);
    const last = this.#rows.size - 1;
    if (slot !== last) this.#rows.copy(last, slot);
    this.#rows.dropLast();
    this.#size.meterBytes -= ROW_BYTES;
  }

  newestMillis(slot: number): number {
    return this.#rows.doubles(slot)[this.#rows.at(slot) >>> 1]!;
  }

  liveCost(slot: number, demand: Demand): number {
    return this.#logs.liveCost(slot, demand);
  }

  millisUntilAvailable(slot: number, demand: Demand, cost: number): number {
    return this.#logs.millisUntilAvailable(slot, demand, cost);
  }

  millisUntilEmpty(slot: number, demand: Demand): number {
    return this.#logs.millisUntilEmpty(slot, demand);
  }

  idleAtMillis(slot: number, windowMillis: number): number {
    return this.#logs.idleAtMillis(slot, windowMillis);
  }

  bytesToGrant(slot: number, demand: Demand): number {
    if (slot === NONE) return ROW_BYTES + this.#logs.bytesToGrant(NONE, demand);
    return this.#logs.bytesToGrant(slot, this.#stamped(slot, demand));
  }

  grant(slot: number, demand: Demand): void {
    this.#logs.grant(slot, this.#stamped(slot, demand));
    this.#setNewestMillis(slot, demand.t);
  }

  refund(slot: number, timeMillis: number, cost: number, rule: Rule, nowMillis: number): void {
    const before = this.#logs.newestMillis(slot);
    this.#logs.refund(slot, stampOf(rule, timeMillis), cost, rule, nowMillis);
    const stamp = this.#logs.newestMillis(slot);
    if (stamp === before) return;
    const newestMillis = Math.max(nowMillis, stamp - GRANULARITY_MILLIS_MAX + 1);
    this.#setNewestMillis(slot, Math.min(this.newestMillis(slot), newestMillis));
  }

  view(): MeterView {
    return new GranularView(this.#rows, this.#logs.view());
  }

  read(slot: number, input: ByteReader, madeMillis: number, part: number): number {
    if (part === 0) {
      const newestMillis = madeMillis + input.signed('newest grant', INTEGER_MAX);
      this.#setNewestMillis(slot, newestMillis);
    }
    const next = this.#logs.read(slot, input, madeMillis, part);
    const stamp = this.#logs.newestMillis(slot);
    const newestMillis = this.newestMillis(slot);
    const isSound =
      newestMillis >= 0 && newestMillis <= stamp && stamp - newestMillis < GRANULARITY_MILLIS_MAX;
    if (next === 0 && !isSound)
      throw new InvalidSnapshotError('the stamp does not belong to the newest grant');
    return next;
  }

  /** The runs, then the time of the newest grant with cost 0. */
  inspect(slot: number): readonly KeyRun[] {
    return [...this.#logs.inspect(slot), { timeMillis: this.newestMillis(slot), cost: 0 }];
  }

  /** The demand as the log records it, with its time rounded up. */
  #stamped(slot: number, { rule, t, cost, windowMillis, keptMillis }: Demand): Demand {
    const stamped = this.#demand;
    stamped.rule = rule;
    stamped.t = Math.max(stampOf(rule, t), this.#logs.newestMillis(slot));
    stamped.cost = cost;
    stamped.windowMillis = windowMillis;
    // Forget what is out at `t`, not at the stamp.
    stamped.keptMillis = keptMillis + (stamped.t - t);
    return stamped;
  }

  #setNewestMillis(slot: number, millis: number): void {
    this.#rows.doubles(slot)[this.#rows.at(slot) >>> 1] = millis;
  }
}

/** The next multiple of the granularity. */
function stampOf({ granularityMillis = 1 }: Rule, t: number): number {
  const since = t % granularityMillis;
  return since === 0 ? t : t - since + granularityMillis;
}

/** The time of the newest grant, then the view of the log. */
class GranularView implements MeterView {
  readonly #rows: Rows;
  readonly #log: MeterView;
  #newestMillis = 0;

  constructor(rows: Rows, log: MeterView) {
    this.#rows = rows;
    this.#log = log;
  }

  show(slot: number): void {
    this.#newestMillis = this.#rows.doubles(slot)[this.#rows.at(slot) >>> 1]!;
    this.#log.show(slot);
  }

  get units(): number {
    return 1 + this.#log.units;
  }

  copyTo(target: Slab, at: number): void {
    target.doubles[at >>> 1] = this.#newestMillis;
    this.#log.copyTo(target, at + WORDS_PER_ROW);
  }

  showCopy(source: Slab, at: number): void {
    this.#newestMillis = source.doubles[at >>> 1]!;
    this.#log.showCopy(source, at + WORDS_PER_ROW);
  }

  write(out: ByteWriter, madeMillis: number, part: number): number {
    if (part === 0) out.signed(this.#newestMillis - madeMillis);
    return this.#log.write(out, madeMillis, part);
  }
}
