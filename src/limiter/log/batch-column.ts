/** One column of a batch while it is being written: one value per row, 0 for rows without a value. */
import { ByteWriter } from '../../bytes/byte-writer.ts';

/** Rows are written in order. A row without a value takes one byte as soon as a later row has one. */
export class BatchColumn {
  readonly #out = new ByteWriter();
  #rows = 0;
  #markedRows = 0;
  #markedLength = 0;

  /** Where to write the value of `row`, which must be greater than all rows before. */
  at(row: number): ByteWriter {
    for (; this.#rows < row; this.#rows += 1) this.#out.byte(0);
    this.#rows = row + 1;
    return this.#out;
  }

  /** Pads the column to `rows` rows and returns its length in bytes; 0 if no row has a value. */
  filled(rows: number): number {
    if (this.#rows > 0) for (; this.#rows < rows; this.#rows += 1) this.#out.byte(0);
    return this.#out.length;
  }

  /** Copies the column to `target` and returns the index after its last byte. */
  copyTo(target: Uint8Array, at: number): number {
    return this.#out.copyTo(target, at);
  }

  /** Remembers the present length, to which `reset` goes back. */
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
