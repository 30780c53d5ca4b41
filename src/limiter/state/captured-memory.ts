/**
 * The remembered grants as they were when a snapshot began. The memory drops its oldest grants; a grant that the
 * snapshot has not written yet is copied just before it is dropped. A refund is the only other change; refunds after
 * the start are noted here and hidden.
 */

import { BlockPool, wordOf } from './block-pool.ts';
import { GRANT_WORDS, GrantView } from './remembered-grant.ts';
import type { MemoryWatcher, RequestMemory } from './request-memory.ts';
import { idBehind, Rows, rowsBetween } from './rows.ts';
import { unitsOfText } from './text-bytes.ts';

const COPIES_PER_SEGMENT = 2_048;

/** A frozen view of a `RequestMemory`. */
export class CapturedMemory implements MemoryWatcher {
  readonly size: number;
  readonly #memory: RequestMemory;
  readonly #first: number;
  /**
   * The addresses of the copies, in the order in which they will be written. A copy is a grant's row followed by its
   * texts.
   */
  readonly #dropped = new Rows(1, COPIES_PER_SEGMENT);
  readonly #copies = new BlockPool((row, address) => {
    this.#dropped.words(row)[this.#dropped.at(row)] = address;
  });
  /** Grants that were refunded since the start, one bit per grant. Created with the first refund. */
  #refunded: Uint8Array | undefined;
  /** How many grants have been written. */
  #next = 0;
  readonly #view = new GrantView();

  constructor(memory: RequestMemory) {
    this.#memory = memory;
    this.#first = memory.first;
    this.size = memory.size;
  }

  /** From now on the memory may change. */
  watch(): void {
    if (this.size > 0) this.#memory.watcher = this;
  }

  release(): void {
    if (this.#memory.watcher === this) this.#memory.watcher = undefined;
  }

  /** The next grant to write. Nothing may change until `close`. */
  open(): GrantView {
    const view = this.#view;
    if (this.#dropped.size === 0) this.#memory.view(idBehind(this.#first, this.#next), view);
    else this.#showCopy(this.#oldestCopy);
    view.hidesRefund = this.#isRefundedSince(this.#next);
    return view;
  }

  close(): void {
    if (this.#dropped.size > 0) {
      this.#copies.free(this.#oldestCopy, unitsOf(this.#view));
      this.#dropped.dropFirst();
    }
    this.#next += 1;
    if (this.#next === this.size) this.release();
  }

  beforeDrop(id: number): void {
    const place = rowsBetween(this.#first, id);
    if (place < this.#next || place >= this.size) return;
    const source = this.#memory.view(id, this.#view);
    const row = this.#dropped.append();
    const address = this.#copies.allocate(unitsOf(source), row);
    const { words, bytes } = this.#copies.slab(address);
    const at = wordOf(address);
    for (let i = 0; i < GRANT_WORDS; i += 1) words[at + i] = source.words[source.at + i]!;
    const textsFrom = (at + GRANT_WORDS) * 4;
    for (let i = 0; i < source.textBytes; i += 1) bytes[textsFrom + i] = source.bytes[source.bytesAt + i]!;
    this.#dropped.words(row)[this.#dropped.at(row)] = address;
  }

  beforeRefund(id: number): void {
    const place = rowsBetween(this.#first, id);
    if (place < this.#next || place >= this.size) return;
    this.#refunded ??= new Uint8Array(Math.ceil(this.size / 8));
    this.#refunded[place >>> 3]! |= 1 << (place & 7);
  }

  #isRefundedSince(place: number): boolean {
    return this.#refunded !== undefined && (this.#refunded[place >>> 3]! & (1 << (place & 7))) !== 0;
  }

  get #oldestCopy(): number {
    const { first } = this.#dropped;
    return this.#dropped.words(first)[this.#dropped.at(first)]!;
  }

  #showCopy(address: number): void {
    const { words, bytes, doubles } = this.#copies.slab(address);
    const view = this.#view;
    view.words = words;
    view.doubles = doubles;
    view.at = wordOf(address);
    view.bytes = bytes;
    view.bytesAt = (view.at + GRANT_WORDS) * 4;
  }
}

function unitsOf({ textBytes }: GrantView): number {
  return GRANT_WORDS / 2 + unitsOfText(textBytes);
}
