/**
 * The keys of one table as they were when a snapshot began, while grants and sweeps continue. A slot that the snapshot
 * has not written yet is copied just before it changes. So a snapshot costs memory only for what changes while it is
 * written.
 */

import { assert } from '../assert.ts';
import type { MeterView } from '../meters/meter.ts';
import type { Rule } from '../../api/rule.ts';
import { BlockPool, wordOf } from './block-pool.ts';
import type { KeyTable, SlotWatcher } from './key-table.ts';
import { unitsOfText } from './text-bytes.ts';

/**
 * Layout of a copy: `madeMillis` and `sinceIndex` as floats, then these words, then the name, then, at the start of a
 * unit, the meter.
 */
const SINCE_INDEX = 1;
const NAME_BYTES = 4;
const HEAD_WORDS = 6;

/** Each page leads to the copies of this many slots. */
const PAGE_SLOTS = 4_096;
const PAGE_SHIFT = 12;

/** One key, either in its slot or in a copy. */
export class KeyView {
  bytes: Uint8Array = new Uint8Array(0);
  nameFrom = 0;
  nameBytes = 0;
  madeMillis = 0;
  sinceIndex = 0;
  readonly meter: MeterView;

  constructor(meter: MeterView) {
    this.meter = meter;
  }
}

/** A frozen view of a `KeyTable`. */
export class CapturedKeys implements SlotWatcher {
  readonly rule: Rule;
  readonly effectiveWindowMillis: number;
  readonly active: boolean;
  readonly eventTimed: boolean;
  readonly evictedThroughMillis: number;
  readonly ruledIndex: number;
  readonly sinceMillis: number;
  readonly size: number;
  readonly #table: KeyTable;
  /** 1 + the address of the copy of each slot, page by page; 0 if there is none. */
  readonly #pages: (Uint32Array | undefined)[] = [];
  readonly #copies = new BlockPool((slot, address) => {
    this.#pages[slot >>> PAGE_SHIFT]![slot % PAGE_SLOTS] = address + 1;
  });
  /** Slots below this one have been written. */
  #next = 0;
  readonly #open: KeyView;
  readonly #changing: KeyView;

  constructor(table: KeyTable) {
    this.rule = table.rule;
    this.effectiveWindowMillis = table.effectiveWindowMillis;
    this.active = table.active;
    this.eventTimed = table.eventTimed;
    this.evictedThroughMillis = table.evictedThroughMillis;
    this.ruledIndex = table.ruledIndex;
    this.sinceMillis = table.sinceMillis;
    this.size = table.size;
    this.#table = table;
    this.#open = new KeyView(table.meter.view());
    this.#changing = new KeyView(table.meter.view());
  }

  /** From now on the table may change. */
  watch(): void {
    if (this.size > 0) this.#table.watcher = this;
  }

  release(): void {
    if (this.#table.watcher === this) this.#table.watcher = undefined;
  }

  /**
   * The key of the next slot to write, until `close`. Call it again whenever the table may have changed, because the
   * key may have moved.
   */
  open(): KeyView {
    assert(this.#next < this.size, 'all keys were given out');
    const copy = this.#copyOf(this.#next);
    if (copy === undefined) this.#showInTable(this.#next, this.#open);
    else this.#showCopy(copy, this.#open);
    return this.#open;
  }

  close(): void {
    const copy = this.#copyOf(this.#next);
    if (copy !== undefined) this.#copies.free(copy, unitsOf(this.#open));
    this.#next += 1;
    if (this.#next % PAGE_SLOTS === 0) this.#pages[(this.#next >>> PAGE_SHIFT) - 1] = undefined;
    if (this.#next === this.size) this.release();
  }

  beforeChange(slot: number): void {
    if (slot < this.#next || slot >= this.size) return;
    const page = (this.#pages[slot >>> PAGE_SHIFT] ??= new Uint32Array(PAGE_SLOTS));
    // A copy exists already. What is in the slot now came after the snapshot began.
    if (page[slot % PAGE_SLOTS] !== 0) return;
    this.#showInTable(slot, this.#changing);
    page[slot % PAGE_SLOTS] = 1 + this.#copy(slot, this.#changing);
  }

  #copyOf(slot: number): number | undefined {
    const found = this.#pages[slot >>> PAGE_SHIFT]?.[slot % PAGE_SLOTS] ?? 0;
    return found === 0 ? undefined : found - 1;
  }

  #showInTable(slot: number, view: KeyView): void {
    const { keys } = this.#table;
    keys.readName(slot, view);
    view.madeMillis = keys.madeMillisAt(slot);
    view.sinceIndex = keys.sinceIndexAt(slot);
    view.meter.show(slot);
  }

  #copy(slot: number, view: KeyView): number {
    const { meter, nameBytes } = view;
    const address = this.#copies.allocate(unitsOf(view), slot);
    const slab = this.#copies.slab(address);
    const at = wordOf(address);
    slab.doubles[at >>> 1] = view.madeMillis;
    slab.doubles[(at >>> 1) + SINCE_INDEX] = view.sinceIndex;
    slab.words[at + NAME_BYTES] = nameBytes;
    const nameFrom = (at + HEAD_WORDS) * 4;
    for (let i = 0; i < nameBytes; i += 1) slab.bytes[nameFrom + i] = view.bytes[view.nameFrom + i]!;
    meter.copyTo(slab, meterFrom(at, nameBytes));
    return address;
  }

  #showCopy(address: number, view: KeyView): void {
    const slab = this.#copies.slab(address);
    const at = wordOf(address);
    view.madeMillis = slab.doubles[at >>> 1]!;
    view.sinceIndex = slab.doubles[(at >>> 1) + SINCE_INDEX]!;
    view.nameBytes = slab.words[at + NAME_BYTES]!;
    view.bytes = slab.bytes;
    view.nameFrom = (at + HEAD_WORDS) * 4;
    view.meter.showCopy(slab, meterFrom(at, view.nameBytes));
  }
}

function meterFrom(at: number, nameBytes: number): number {
  return at + HEAD_WORDS + unitsOfText(nameBytes) * 2;
}

function unitsOf({ nameBytes, meter }: KeyView): number {
  return HEAD_WORDS / 2 + unitsOfText(nameBytes) + meter.units;
}
