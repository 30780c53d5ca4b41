/** A column of a batch while it is written: a value a row, which is 0 for rows that say nothing. */
import { ByteWriter } from '../../bytes/byte-writer.ts';

export class BatchColumn {
  readonly #out = new ByteWriter();
  #rows = 0;
  #markedRows = 0;
  #markedLength = 0;

  /** Where the value of `row` is to be written: a later one than all before. */
  at(row: number): ByteWriter {
    for (; this.#rows < row; this.#rows += 1) this.#out.byte(0);
    this.#rows = row + 1;
    return this.#out;
  }

  /** Ends it after so many rows, and returns its length in bytes: 0 if no row says anything. */
  filled(rows: number): number {
    if (this.#rows > 0) for (; this.#rows < rows; this.#rows += 1) this.#out.byte(0);
    return this.#out.length;
  }

  copyTo(target: Uint8Array, at: number): number {
    return this.#out.copyTo(target, at);
  }

  /** What `reset` goes back to. */
  mark(): void {
    this.#markedRows = this.#rows;
    this.#markedLength = this.#out.length;
  }

  reset(): void {
    this.#rows = this.#markedRows;
    this.#out.truncate(this.#markedLength);
  }

  clear(): void {
    this.#rows = 0;
    this.#out.clear();
  }
}
