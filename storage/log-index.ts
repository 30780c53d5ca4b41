/**
 * The store's index of a log in memory: term, group time and chain value of each entry, in columns (20 bytes per
 * entry). No payloads and no I/O.
 */
import { assert } from '../raft/assert.ts';
import type { LogPosition } from '../raft/types.ts';

const INITIAL_CAPACITY = 64;

/** The index of one log. Methods throw InvariantError for an index outside of the log. */
export class LogIndex {
  // Row 0 is the base; row i is the entry at baseIndex + i. Rows start at `head`, which grows when the log is compacted
  // and returns to 0 when the columns are next copied.
  private terms = new Float64Array(INITIAL_CAPACITY);
  private times = new Float64Array(INITIAL_CAPACITY);
  private chains = new Uint32Array(INITIAL_CAPACITY);
  private head = 0;
  private rows = 1;
  private firstIndex = 0;

  get baseIndex(): number {
    return this.firstIndex;
  }

  get lastIndex(): number {
    return this.firstIndex + this.rows - 1;
  }

  /** Drops everything: the log is empty and starts after `base`. */
  reset(base: LogPosition, chain: number): void {
    this.head = 0;
    this.rows = 1;
    this.firstIndex = base.index;
    this.set(0, base.term, base.timeMillis, chain);
  }

  append(term: number, timeMillis: number, chain: number): void {
    if (this.head + this.rows === this.terms.length) this.makeRoom();
    this.rows += 1;
    this.set(this.rows - 1, term, timeMillis, chain);
  }

  /** Drops every entry above `lastIndex`. */
  truncateTo(lastIndex: number): void {
    this.row(lastIndex);
    this.rows = lastIndex - this.firstIndex + 1;
  }

  /** Makes the entry at `index` the base. */
  compactTo(index: number): void {
    const row = this.row(index);
    this.head += row;
    this.rows -= row;
    this.firstIndex = index;
  }

  /** The position at `index`, from the base to the last entry. */
  positionAt(index: number): LogPosition {
    const at = this.head + this.row(index);
    return { index, term: this.terms[at] ?? 0, timeMillis: this.times[at] ?? 0 };
  }

  chainAt(index: number): number {
    return this.chains[this.head + this.row(index)] ?? 0;
  }

  private row(index: number): number {
    const row = index - this.firstIndex;
    assert(
      row >= 0 && row < this.rows,
      'index {} must be within {}..{}',
      index,
      this.firstIndex,
      this.lastIndex,
    );
    return row;
  }

  private set(row: number, term: number, timeMillis: number, chain: number): void {
    const at = this.head + row;
    this.terms[at] = term;
    this.times[at] = timeMillis;
    this.chains[at] = chain;
  }

  /** Copies the rows to the front of new columns, which are twice as large if more than half would still be in use. */
  private makeRoom(): void {
    const capacity = this.rows * 2 > this.terms.length ? this.terms.length * 2 : this.terms.length;
    const end = this.head + this.rows;
    const terms = new Float64Array(capacity);
    const times = new Float64Array(capacity);
    const chains = new Uint32Array(capacity);
    terms.set(this.terms.subarray(this.head, end));
    times.set(this.times.subarray(this.head, end));
    chains.set(this.chains.subarray(this.head, end));
    this.terms = terms;
    this.times = times;
    this.chains = chains;
    this.head = 0;
  }
}
