/**
 * The meter of sliding logs: one log of grants per key, in rows and blocks of memory. It answers and records; rules,
 * key lookup and forgetting are the business of its callers.
 */

import { assert } from '../assert.ts';
import { BlockPool, roomOf, wordOf } from '../state/block-pool.ts';
import type { Rule } from '../../api/rule.ts';
import type { ByteReader } from '../../bytes/byte-reader.ts';
import { newKeyRows } from '../state/keys.ts';
import { NONE, type Rows } from '../state/rows.ts';
import { RUN_BYTES, type StateSize } from '../state/state-size.ts';
import { COST_SUM_MAX, LOG_WINDOW_MILLIS_MAX, LogRuns, NARROW, WIDE } from './log-runs.ts';
import { LogReader, LogView } from './log-snapshot.ts';
import type { Demand, KeyRun, Meter } from './meter.ts';

/** The words of a row. The first two are the base, as one float; the others, up to `METER_WORDS`, are these. */
const BLOCK = 2;
/** The head, shifted left by 1; the lowest bit is the form. */
const HEAD = 3;
const COUNT = 4;
const SPENT = 5;
/**
 * Copies of the oldest and newest offset. Most decisions need nothing else of the runs and do not touch the block.
 */
const OLDEST = 6;
const NEWEST = 7;

/** Below this many runs a block is not worth shrinking. */
const SHRINK_CAPACITY_MIN = 4;

/**
 * Exact to the millisecond. Only `grant` and `refund` change what a key recorded, and a grant forgets only what was
 * outside the window *it was given*. Therefore:
 *
 * - While the window stays the same or shrinks, every total is exact.
 * - After the window grew, everything that is still recorded counts under the longer window, and every later grant
 *   counts in full. Grants that had left the shorter window by the time of the newest grant may be forgotten: a rolling
 *   window that reaches back before the change can hold what the old rule granted there on top of the new limit. A
 *   window that starts at or after the change never exceeds the limit.
 * - After the limit fell, recorded cost may exceed it. Nothing fits until enough of it has left the window.
 */
export class SlidingLogs implements Meter {
  readonly #size: StateSize;
  readonly #rows = newKeyRows();
  /** The blocks of runs; the owner of a block is its slot. */
  readonly #pool = new BlockPool((slot, address) => {
    this.#rows.words(slot)[this.#rows.at(slot) + BLOCK] = address;
  });
  /** The log that is being processed. It has no meaning between two calls. */
  readonly #log = new LogRuns();
  readonly #reader = new LogReader(this);

  constructor(size: StateSize) {
    this.#size = size;
  }

  get rows(): Rows {
    return this.#rows;
  }

  /** Adds an empty log in the next slot. */
  add(): void {
    const slot = this.#rows.append();
    const row = this.#rows.words(slot);
    const at = this.#rows.at(slot);
    row[at + BLOCK] = NONE;
    row[at + HEAD] = NARROW;
    row[at + COUNT] = 0;
    row[at + SPENT] = 0;
    row[at + OLDEST] = 0;
    row[at + NEWEST] = 0;
  }

  /** Forgets the log in `slot` and moves the log of the last slot there. */
  remove(slot: number): void {
    const row = this.#rows.words(slot);
    const at = this.#rows.at(slot);
    this.#size.runs -= row[at + COUNT]!;
    const block = row[at + BLOCK]!;
    if (block !== NONE) this.#pool.free(block, this.#pool.slab(block).blockUnits);
    const last = this.#rows.size - 1;
    if (slot !== last) {
      this.#rows.copy(last, slot);
      if (row[at + BLOCK] !== NONE) this.#pool.setOwner(row[at + BLOCK]!, slot);
    }
    this.#rows.dropLast();
  }

  /** Makes `into` point to the log in `slot`. Valid until anything is changed. */
  open(slot: number, into: LogRuns): LogRuns {
    this.#openRow(slot, into);
    const block = this.#rows.words(slot)[this.#rows.at(slot) + BLOCK]!;
    into.capacity = 0;
    if (block === NONE) return into;
    const { words, blockUnits } = this.#pool.slab(block);
    into.words = words;
    into.start = wordOf(block);
    into.capacity = (blockUnits * 2) >>> into.form;
    return into;
  }

  /**
   * Like `open`, but reads only the row, not the block: `words`, `start` and `capacity` still belong to the log
   * opened last, so read no run.
   */
  #openRow(slot: number, into: LogRuns): LogRuns {
    const row = this.#rows.words(slot);
    const at = this.#rows.at(slot);
    into.baseMillis = this.#rows.doubles(slot)[at >>> 1]!;
    into.head = row[at + HEAD]! >>> 1;
    into.form = row[at + HEAD]! & 1;
    into.count = row[at + COUNT]!;
    into.spentBeforeHead = row[at + SPENT]!;
    into.oldestOffset = row[at + OLDEST]!;
    into.newestOffset = row[at + NEWEST]!;
    return into;
  }

  newestMillis(slot: number): number {
    return this.#openRow(slot, this.#log).newestMillis;
  }

  liveCost(slot: number, { t, windowMillis }: Demand): number {
    const log = this.#openRow(slot, this.#log);
    const isCount = log.form === NARROW && log.isAllAfter(t - windowMillis);
    return isCount ? log.count : this.open(slot, log).liveCost(t, windowMillis);
  }

  millisUntilAvailable(slot: number, { t, rule, windowMillis }: Demand, cost: number): number {
    return this.open(slot, this.#log).millisUntilAvailable(t, cost, rule.limit, windowMillis);
  }

  millisUntilEmpty(slot: number, { t, windowMillis }: Demand): number {
    const log = this.#openRow(slot, this.#log);
    return (log.form === NARROW ? log : this.open(slot, log)).millisUntilEmpty(t, windowMillis);
  }

  idleAtMillis(slot: number, windowMillis: number): number {
    return this.newestMillis(slot) + windowMillis;
  }

  /** A grant takes no memory if it joins the newest run or makes the log forget an older one. */
  bytesToGrant(slot: number, { t, cost, keptMillis }: Demand): number {
    if (slot === NONE) return cost > COST_SUM_MAX ? Infinity : RUN_BYTES;
    const log = this.#openRow(slot, this.#log);
    if (log.form === WIDE) this.open(slot, log);
    // Assume that everything counts; what the grant would forget is computed only if that matters.
    const isTooMuch = log.recordedCost + cost > COST_SUM_MAX;
    if (isTooMuch && this.open(slot, log).liveCost(t, keptMillis) + cost > COST_SUM_MAX) return Infinity;
    if (log.count === 0) return RUN_BYTES;
    const isJoined = log.newestMillis === t || log.isNewestTakenBack;
    const isLonger = !isJoined && log.isAllAfter(t - keptMillis);
    return isLonger ? RUN_BYTES : 0;
  }

  grant(slot: number, { t, cost, keptMillis }: Demand): void {
    this.record(slot, t, cost, keptMillis);
  }

  /**
   * Removes a run that has no cost left. If it was the newest, the time of the key goes back to the run before it,
   * or to `nowMillis`. No grant has forgotten anything that counts at that time: see `Demand.keptMillis`. Runs are
   * moved, and cumulative costs changed, on the shorter side of the removed run.
   */
  refund(slot: number, timeMillis: number, cost: number, _: Rule, nowMillis: number): void {
    const log = this.open(slot, this.#log);
    const run = log.firstLive(timeMillis - 1);
    if (run === log.count || log.millis(run) !== timeMillis) return;
    const spent = log.cost(run);
    if (spent === 0) return;
    const left = spent - cost;
    const before = log.count;
    if (left > 0) {
      if (log.form === NARROW) assert(false, 'a refund of a narrow log leaves nothing in its run');
      log.takeFrom(run, cost);
    } else if (run < log.count - 1) log.removeRun(run);
    else this.#takeBackNewest(slot, log, Math.min(timeMillis, nowMillis));
    this.#size.runs += log.count - before;
    log.readEnds();
    this.#keep(slot, log);
  }

  /** @param millis the time that the key goes back to, unless the run before is newer */
  #takeBackNewest(slot: number, log: LogRuns, millis: number): void {
    const newest = log.count - 1;
    if (newest > 0 && log.millis(newest - 1) >= millis) {
      log.count = newest;
      return;
    }
    if (log.form === NARROW) this.#resize(slot, log, log.count, WIDE);
    if (newest === 0) this.#setBase(slot, log, millis);
    const word = log.word(newest);
    log.words[word] = millis - log.baseMillis;
    log.words[word + log.capacity] = newest === 0 ? log.spentBeforeHead : log.cumulative(newest - 1);
  }

  /** How many runs of the key have a cost and are newer than `horizonMillis`. */
  countAfter(slot: number, horizonMillis: number): number {
    const log = this.open(slot, this.#log);
    return Math.max(0, log.spentCount - log.firstLive(horizonMillis));
  }

  /** The cost of all recorded runs of the key. */
  recordedCost(slot: number): number {
    return this.open(slot, this.#log).recordedCost;
  }

  /** How many runs the key takes. */
  runCount(slot: number): number {
    return this.open(slot, this.#log).count;
  }

  /** The newest run was refunded completely. */
  isNewestTakenBack(slot: number): boolean {
    return this.open(slot, this.#log).isNewestTakenBack;
  }

  /** Time of the newest grant that was not refunded completely; -Infinity without one. */
  newestSpentMillis(slot: number): number {
    const log = this.open(slot, this.#log);
    const last = log.spentCount - 1;
    return last < 0 ? -Infinity : log.millis(last);
  }

  /** The recorded runs newer than `horizonMillis`, oldest first. */
  runsAfter(slot: number, horizonMillis: number): readonly KeyRun[] {
    const log = this.open(slot, this.#log);
    const first = log.firstLive(horizonMillis);
    return Array.from({ length: log.count - first }, (_, i) => {
      return { timeMillis: log.millis(first + i), cost: log.cost(first + i) };
    });
  }

  view(): LogView {
    return new LogView(this);
  }

  read(slot: number, input: ByteReader, madeMillis: number, part: number): number {
    return this.#reader.read(slot, input, madeMillis, part);
  }

  inspect(slot: number): readonly KeyRun[] {
    return this.runsAfter(slot, -Infinity);
  }

  /**
   * Records a grant and forgets what is outside the window at `t`. Amortised O(1).
   *
   * @param t milliseconds, not before the newest grant
   * @param cost >= 1; or 0, if a snapshot or another log has a newest run that was refunded completely
   * @param keptMillis 1 to `LOG_WINDOW_MILLIS_MAX`: the longest window that any later request may ask about
   */
  record(slot: number, t: number, cost: number, keptMillis: number): void {
    const log = this.open(slot, this.#log);
    const newest = log.newestMillis;
    if (t < newest) assert(false, `a grant at ${t} is older than the newest at ${newest}`);
    if (cost < 0 || keptMillis > LOG_WINDOW_MILLIS_MAX) {
      assert(false, `a grant of cost ${cost} in a window of ${keptMillis} ms`);
    }
    const before = log.count;
    this.#prune(log, t - keptMillis);
    if (log.isNewestTakenBack && newest !== t) log.count -= 1;
    const recorded = log.recordedCost;
    if (recorded + cost > COST_SUM_MAX) assert(false, `recorded cost ${recorded} + ${cost} does not fit`);
    const spent = log.spentBeforeHead + recorded + cost;
    const joins = log.count > 0 && newest === t;
    const runs = joins ? log.count : log.count + 1;
    // Every run costs at least 1, so if the sum equals the number of runs, all cost exactly 1.
    const form = cost > 0 && recorded + cost === runs ? NARROW : WIDE;
    const isRoomy = runs * 2 < log.capacity && log.capacity >= SHRINK_CAPACITY_MIN;
    // A quarter more than needed; that always fits a smaller block size.
    if (isRoomy) this.#resize(slot, log, runs + (runs >>> 2), form);
    else if (runs > log.capacity || form !== log.form) this.#resize(slot, log, runs, form);
    if (log.count === 0) this.#setBase(slot, log, t);
    else if (t - log.baseMillis > LOG_WINDOW_MILLIS_MAX) this.#rebase(slot, log);
    const word = log.word(runs - 1);
    log.newestOffset = t - log.baseMillis;
    log.words[word] = log.newestOffset;
    if (log.form === WIDE) log.words[word + log.capacity] = spent;
    log.count = runs;
    this.#size.runs += log.count - before;
    this.#keep(slot, log);
  }

  #keep(slot: number, log: LogRuns): void {
    const row = this.#rows.words(slot);
    const at = this.#rows.at(slot);
    row[at + HEAD] = headWord(log);
    row[at + COUNT] = log.count;
    row[at + SPENT] = log.spentBeforeHead;
    row[at + OLDEST] = log.oldestOffset;
    row[at + NEWEST] = log.newestOffset;
  }

  #prune(log: LogRuns, horizonMillis: number): void {
    const first = log.firstLive(horizonMillis);
    if (first === 0) return;
    log.spentBeforeHead = log.cumulative(first - 1);
    log.head = (log.head + first) % log.capacity;
    log.count -= first;
    log.oldestOffset = log.count === 0 ? 0 : log.offset(0);
  }

  /** Makes the time of the oldest run the base. */
  #setBase(slot: number, log: LogRuns, millis: number): void {
    log.baseMillis = millis;
    log.oldestOffset = 0;
    this.#rows.doubles(slot)[this.#rows.at(slot) >>> 1] = millis;
  }

  /**
   * Moves the base to the oldest run. Rare for any one run, because a window is much shorter than the range of the
   * offsets.
   */
  #rebase(slot: number, log: LogRuns): void {
    const shift = log.offset(0);
    for (let i = 0; i < log.count; i += 1) log.words[log.word(i)]! -= shift;
    this.#setBase(slot, log, log.baseMillis + shift);
  }

  #resize(slot: number, log: LogRuns, runs: number, form: number): void {
    const units = roomOf(unitsFor(runs, form));
    const capacity = (units * 2) >>> form;
    const row = this.#rows.words(slot);
    const at = this.#rows.at(slot);
    const former = row[at + BLOCK]!;
    const block = this.#pool.allocate(units, slot);
    log.copyTo(this.#pool.words(block), wordOf(block), capacity, form);
    row[at + BLOCK] = block;
    // If both blocks have the same size, freeing the former moves the new one into its place.
    if (former !== NONE) this.#pool.free(former, unitsFor(log.capacity, log.form));
    const address = row[at + BLOCK]!;
    log.words = this.#pool.words(address);
    log.start = wordOf(address);
    log.capacity = capacity;
    log.head = 0;
    log.form = form;
    row[at + HEAD] = headWord(log);
  }
}

function headWord({ head, form }: LogRuns): number {
  return ((head << 1) | form) >>> 0;
}

function unitsFor(runs: number, form: number): number {
  return ((runs << form) + 1) >>> 1;
}
