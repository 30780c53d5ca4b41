/**
 * Writes a state as a snapshot, chunk by chunk, as it was at the beginning: the state may change between two chunks.
 * The format is canonical: equal states give equal bytes, and the state hash is computed from them. So it must not
 * contain anything that is not a function of the applied log: no capacities, bases, addresses or hashes of keys.
 */

import type { AppliedPosition } from '../decision.ts';
import { writeBlockOf, writeOverride, writeTermsHead } from '../record-form.ts';
import { ruleValues, tableValues } from '../rule-form.ts';
import type { RuleTable } from '../rules.ts';
import { Digest, snapshotWriter, takeChunk } from './snapshot-bytes.ts';
import { CapturedKeys } from './captured-keys.ts';
import { CapturedMemory } from './captured-memory.ts';
import type { NamedRecord } from './customer-table.ts';
import type { LimiterState } from './limiter-state.ts';
import type { LostHistoryFields } from './lost-history.ts';
import type { GrantView } from './remembered-grant.ts';
import type { UtcStep } from './utc-steps.ts';
import type { Rule } from '../../api/rule.ts';

/** The first integer of every snapshot. A different format needs a different number. */
export const SNAPSHOT_FORMAT = 0x51_4c_0d;

/** The state as it was when the snapshot was requested, in chunks. Each chunk is a small amount of work. */
export interface StateSnapshot {
  /** The next chunk, or undefined at the end. */
  next(): Uint8Array | undefined;
  /** Nobody needs the rest, so the old state need not be preserved. */
  abandon(): void;
}

/** Writes one snapshot. */
export class StateWriter {
  readonly #out = snapshotWriter();
  readonly #digest = new Digest();
  readonly #applied: AppliedPosition;
  readonly #createdMillis: number;
  readonly #changedMillis: number;
  readonly #droppedThroughMillis: number;
  readonly #lost: LostHistoryFields;
  readonly #utcSteps: readonly UtcStep[];
  readonly #rules: RuleTable | undefined;
  readonly #sweepTable: number;
  readonly #sweepSlot: number;
  readonly #tables: readonly CapturedKeys[];
  readonly #memory: CapturedMemory;
  readonly #records: readonly NamedRecord[];
  /** Each step writes up to one full chunk. */
  readonly #steps: Iterator<undefined, undefined>;
  #stage: 'body' | 'position' | 'digest' | 'over' = 'body';

  constructor(state: LimiterState) {
    this.#applied = state.applied;
    this.#createdMillis = state.createdMillis;
    this.#changedMillis = state.changedMillis;
    this.#droppedThroughMillis = state.droppedThroughMillis;
    this.#lost = state.lost.fields;
    this.#utcSteps = [...state.utc.all];
    this.#rules = state.table;
    this.#sweepTable = state.sweepTable;
    this.#sweepSlot = state.sweepSlot;
    this.#tables = state.keyTables.map((keys) => new CapturedKeys(keys));
    this.#memory = new CapturedMemory(state.memory);
    this.#records = state.customers.all;
    this.#steps = this.#body();
  }

  /** From now on the state may change before the last chunk is taken. */
  watch(): this {
    for (const table of this.#tables) table.watch();
    this.#memory.watch();
    return this;
  }

  /** The next chunk, or undefined at the end. */
  next(): Uint8Array | undefined {
    switch (this.#stage) {
      case 'body':
        if (this.#steps.next().done === true) this.#stage = 'position';
        return this.#digested().slice();
      case 'position':
        this.#stage = 'digest';
        this.#out.integer(this.#applied.index);
        this.#out.integer(this.#applied.term);
        this.#out.integer(this.#applied.timeMillis);
        return this.#digested().slice();
      case 'digest':
        this.#stage = 'over';
        for (const word of this.#digest.words()) this.#out.word(word);
        return this.#out.take();
      case 'over':
        return undefined;
      default: {
        const never: never = this.#stage;
        return never;
      }
    }
  }

  /** No more chunks are needed, so the old state need not be preserved. */
  abandon(): void {
    this.#stage = 'over';
    for (const table of this.#tables) table.release();
    this.#memory.release();
  }

  /** The hash of the whole state except its applied position: 16 hexadecimal digits. Call it instead of `next`. */
  hash(): string {
    while (this.#stage === 'body') {
      if (this.#steps.next().done === true) this.#stage = 'over';
      this.#digested();
    }
    return this.#digest.toString();
  }

  #digested(): Uint8Array {
    const chunk = takeChunk(this.#out);
    this.#digest.update(chunk);
    return chunk;
  }

  *#body(): Generator<undefined, undefined> {
    const out = this.#out;
    out.integer(SNAPSHOT_FORMAT);
    out.integer(this.#createdMillis);
    out.integer(this.#changedMillis);
    out.integer(this.#droppedThroughMillis);
    this.#writeLost();
    yield* this.#writeUtcSteps();
    yield* this.#writeRules();
    out.integer(this.#tables.length);
    for (const table of this.#tables) yield* this.#writeTable(table);
    if (out.isFull) yield;
    out.integer(this.#sweepTable);
    out.integer(this.#sweepSlot);
    out.integer(this.#memory.size);
    out.integer(this.#records.length);
    for (let i = 0; i < this.#memory.size; i += 1) {
      if (out.isFull) yield;
      this.#writeGrant(this.#memory.open());
      this.#memory.close();
    }
    for (const record of this.#records) yield* this.#writeRecord(record);
  }

  #writeLost(): void {
    const { throughIndex, sinceMillis, stampsMillis } = this.#lost;
    for (const value of [throughIndex, sinceMillis, stampsMillis]) this.#out.integer(value);
  }

  *#writeUtcSteps(): Generator<undefined, undefined> {
    const out = this.#out;
    out.integer(this.#utcSteps.length);
    for (const { fromMillis, aheadMillis } of this.#utcSteps) {
      if (out.isFull) yield;
      out.integer(fromMillis);
      out.integer(aheadMillis);
    }
  }

  *#writeRecord({ userId, record }: NamedRecord): Generator<undefined, undefined> {
    const out = this.#out;
    if (out.isFull) yield;
    out.text(userId);
    out.integer(record.version);
    writeBlockOf(out, record);
    writeTermsHead(out, record);
    for (const override of record.overrides) {
      if (out.isFull) yield;
      writeOverride(out, override);
    }
  }

  *#writeRules(): Generator<undefined, undefined> {
    const out = this.#out;
    const table = this.#rules;
    if (table === undefined) {
      // Means no rule table: versions start at 1.
      out.integer(0);
      return;
    }
    for (const value of tableValues(table)) out.integer(value);
    out.integer(table.rules.length);
    for (const rule of table.rules) {
      if (out.isFull) yield;
      this.#writeRule(rule);
    }
  }

  *#writeTable(table: CapturedKeys): Generator<undefined, undefined> {
    const out = this.#out;
    if (out.isFull) yield;
    this.#writeRule(table.rule);
    out.integer(table.effectiveWindowMillis);
    out.byte(table.active ? 1 : 0);
    out.byte(table.eventTimed ? 1 : 0);
    out.integer(table.evictedThroughMillis);
    out.integer(table.ruledIndex);
    out.integer(table.sinceMillis);
    out.integer(table.size);
    for (let slot = 0; slot < table.size; slot += 1) {
      if (out.isFull) yield;
      const key = table.open();
      const { madeMillis } = key;
      out.byteString(key.bytes, key.nameFrom, key.nameBytes);
      // An age, or for a future time the time itself, which is greater than any age.
      const isAge = madeMillis <= this.#changedMillis;
      out.integer(isAge ? this.#changedMillis - madeMillis : madeMillis);
      out.integer(key.sinceIndex);
      let part = key.meter.write(out, madeMillis, 0);
      while (part !== 0) {
        yield;
        part = table.open().meter.write(out, madeMillis, part);
      }
      table.close();
    }
  }

  #writeRule(rule: Rule): void {
    const [id, ...integers] = ruleValues(rule);
    this.#out.text(id);
    for (const value of integers) this.#out.integer(value);
  }

  #writeGrant(view: GrantView): void {
    const out = this.#out;
    const { bytes, bytesAt, userBytes, requestIdBytes, ruleIdFrom, ruleIdBytes } = view;
    out.byteString(bytes, bytesAt, userBytes);
    out.byteString(bytes, bytesAt + userBytes, requestIdBytes);
    out.byteString(bytes, bytesAt + ruleIdFrom, ruleIdBytes);
    view.writeTo(out);
  }
}
