/** Copies, writes and reads a sliding log for a snapshot, run by run. It does not interpret the runs. */

import type { Slab } from '../state/block-pool.ts';
import type { ByteReader } from '../../bytes/byte-reader.ts';
import type { ByteWriter } from '../../bytes/byte-writer.ts';
import { InvalidSnapshotError } from '../state/snapshot-bytes.ts';
import { LOG_WINDOW_MILLIS_MAX, LogRuns } from './log-runs.ts';
import type { MeterView } from './meter.ts';

/** Layout of a copy: the base as one float, then these words, then the runs in the form of the log. */
const COUNT = 2;
const SPENT = 3;
const FORM = 4;
const HEAD_WORDS = 6;

const U32_MAX = 0xffff_ffff;
const INTEGER_MAX = Number.MAX_SAFE_INTEGER;

/** The logs of all slots. */
interface Logs {
  open(slot: number, into: LogRuns): LogRuns;
  record(slot: number, t: number, cost: number, keptMillis: number): void;
}

/** The view of a sliding log: see `MeterView`. */
export class LogView implements MeterView {
  readonly #logs: Logs;
  readonly #log = new LogRuns();

  constructor(logs: Logs) {
    this.#logs = logs;
  }

  show(slot: number): void {
    this.#logs.open(slot, this.#log);
  }

  get units(): number {
    const { count, form } = this.#log;
    return (HEAD_WORDS + (count << form) + 1) >>> 1;
  }

  copyTo({ words, doubles }: Slab, at: number): void {
    const log = this.#log;
    doubles[at >>> 1] = log.baseMillis;
    words[at + COUNT] = log.count;
    words[at + SPENT] = log.spentBeforeHead;
    words[at + FORM] = log.form;
    log.copyTo(words, at + HEAD_WORDS, log.count, log.form);
  }

  showCopy({ words, doubles }: Slab, at: number): void {
    const log = this.#log;
    log.baseMillis = doubles[at >>> 1]!;
    log.count = words[at + COUNT]!;
    log.spentBeforeHead = words[at + SPENT]!;
    log.form = words[at + FORM]!;
    log.words = words;
    log.start = at + HEAD_WORDS;
    log.capacity = log.count;
    log.head = 0;
    log.readEnds();
  }

  /** `part` is the run to continue with. */
  write(out: ByteWriter, madeMillis: number, part: number): number {
    const log = this.#log;
    if (part === 0) {
      out.integer(log.count);
      out.signed(log.millis(0) - madeMillis);
      out.integer(log.cost(0));
    }
    for (let run = Math.max(part, 1); run < log.count; run += 1) {
      if (out.isFull) return run;
      out.integer(log.offset(run) - log.offset(run - 1));
      out.integer(log.cost(run));
    }
    return 0;
  }
}

/** Reads what `LogView` wrote. */
export class LogReader {
  readonly #logs: Logs;
  readonly #log = new LogRuns();

  constructor(logs: Logs) {
    this.#logs = logs;
  }

  /** See `Meter.read`. `part` is the number of runs still to come. */
  read(slot: number, input: ByteReader, madeMillis: number, part: number): number {
    const left = part === 0 ? this.#readFirst(slot, input, madeMillis) : part;
    const log = this.#logs.open(slot, this.#log);
    const firstMillis = log.millis(0);
    let millis = log.newestMillis;
    let recorded = log.recordedCost;
    let isEmpty = log.isNewestTakenBack;
    for (let run = 0; run < left; run += 1) {
      if (input.isAtEnd) return left - run;
      if (isEmpty) throw new InvalidSnapshotError('a run without cost that is not the newest');
      millis += input.integer('time between grants', 1, LOG_WINDOW_MILLIS_MAX);
      if (millis - firstMillis >= LOG_WINDOW_MILLIS_MAX) {
        throw new InvalidSnapshotError('runs further apart than any window');
      }
      const cost = this.#readCost(slot, input, millis, recorded);
      recorded += cost;
      isEmpty = cost === 0;
    }
    return 0;
  }

  /** Returns how many runs follow. */
  #readFirst(slot: number, input: ByteReader, madeMillis: number): number {
    const runs = input.integer('runs', 1, U32_MAX);
    const millis = madeMillis + input.signed('first grant', INTEGER_MAX);
    if (millis < 0 || millis > INTEGER_MAX) throw new InvalidSnapshotError('a grant time out of range');
    this.#readCost(slot, input, millis, 0);
    return runs - 1;
  }

  #readCost(slot: number, input: ByteReader, millis: number, recorded: number): number {
    const cost = input.integer('cost', 0, U32_MAX - recorded);
    // The longest window prunes nothing, so all recorded runs are restored.
    this.#logs.record(slot, millis, cost, LOG_WINDOW_MILLIS_MAX);
    return cost;
  }
}
