/**
 * The part of a group's log that is held in memory: everything after the last compaction. It does no I/O; it
 * knows which of its entries are on disk only because it is told (`stableTo`).
 */
import { assert } from './assert.ts';
import type { Entry, LogPosition } from './types.ts';

export const LOG_START: LogPosition = { index: 0, term: 0, timeMillis: 0 };

const ENTRY_OVERHEAD_BYTES = 32;
const ENTRY_WRITE_BYTES = 512;

/** Bytes an entry is charged with in every budget: its payload and a share for what surrounds it. */
export function entryBytes(entry: Entry): number {
  return entry.data.byteLength + ENTRY_OVERHEAD_BYTES;
}

/** What writing an entry holds the thread up for, in bytes copied: putting a key and its checksum costs as much as many. */
export function writeCost(entry: Entry): number {
  return entry.data.byteLength + ENTRY_WRITE_BYTES;
}

export class RaftLog {
  /** The position just before `entries[0]`. Invariant: base.index <= applied. */
  #base: LogPosition;
  /** Contiguous: `entries[i].index === base.index + 1 + i`. */
  #entries: Entry[];
  /** Invariant: applied <= committed <= lastIndex. */
  #committed: number;
  #applied: number;
  /** Entries up to here are on disk. Invariant: base.index <= stable <= lastIndex. */
  #stable: number;
  /** Indexes of the `config` entries in memory, ascending. */
  #configs: number[] = [];

  /** Restores a log from disk. `entries` follow `base`; `committed` and `applied` lie within them. */
  constructor(base: LogPosition, entries: readonly Entry[], committed: number, applied: number) {
    this.#base = base;
    this.#entries = [...entries];
    for (const { kind, index } of entries) if (kind === 'config') this.#configs.push(index);
    this.#committed = committed;
    this.#applied = applied;
    this.#stable = this.lastIndex;
    assert(base.index <= applied, "applied {} is below the log's base {}", applied, base.index);
    assert(applied <= committed, 'applied {} is above commit {}', applied, committed);
    assert(committed <= this.lastIndex, 'commit {} is above the last index {}', committed, this.lastIndex);
    let previous = base;
    for (const entry of entries) previous = checkFollows(previous, entry);
  }

  get base(): LogPosition {
    return this.#base;
  }
  get lastIndex(): number {
    return this.#base.index + this.#entries.length;
  }
  get last(): LogPosition {
    return this.#entries.at(-1) ?? this.#base;
  }
  get committed(): number {
    return this.#committed;
  }
  get applied(): number {
    return this.#applied;
  }
  get stable(): number {
    return this.#stable;
  }

  /** A change of the configuration is committed and not in effect here yet. */
  get hasUnappliedConfig(): boolean {
    return this.#configs.some((index) => index > this.#applied && index <= this.#committed);
  }

  /** The `config` entries from `from` to `to`, both included. */
  configEntries(from: number, to: number): Entry[] {
    return this.#configs
      .filter((index) => index >= from && index <= to)
      .flatMap((index) => this.slice(index, index, 0));
  }

  /**
   * A leader appends a `config` entry only after it has applied the one before, so whoever holds two knows that
   * the first is committed. All safety of changes rests on it: a replica cannot act by a configuration that is
   * two changes old. It must be true of what is on disk, too, which is why `commit` is written along with entries.
   */
  checkConfigs(): void {
    const before = this.#configs.at(-2) ?? 0;
    assert(
      before <= this.#committed,
      'config entry {} has a successor and is not committed ({})',
      before,
      this.#committed,
    );
  }

  /** The term at `index`, or undefined if the log does not reach there or no longer does. */
  termAt(index: number): number | undefined {
    return this.positionAt(index)?.term;
  }

  positionAt(index: number): LogPosition | undefined {
    if (index === this.#base.index) return this.#base;
    return this.#entries[index - this.#base.index - 1];
  }

  /** Entries from `from` to `to`, both included, cut off after `bytesMax` (but never before the first). */
  slice(from: number, to: number, bytesMax: number): Entry[] {
    assert(from > this.#base.index, 'entry {} was compacted (log base {})', from, this.#base.index);
    assert(to <= this.lastIndex, 'entry {} is past the last index {}', to, this.lastIndex);
    const result: Entry[] = [];
    let bytes = 0;
    for (let index = from; index <= to; index += 1) {
      const entry = this.#entries[index - this.#base.index - 1];
      assert(entry !== undefined, 'entry {} is missing', index);
      bytes += entryBytes(entry);
      if (result.length > 0 && bytes > bytesMax) break;
      result.push(entry);
    }
    return result;
  }

  /** Section 5.4.1: is a log that ends at (lastIndex, lastTerm) at least as up to date as this one? */
  isUpToDate(lastIndex: number, lastTerm: number): boolean {
    const own = this.last;
    return lastTerm > own.term || (lastTerm === own.term && lastIndex >= own.index);
  }

  /** Appends entries that continue the log exactly. */
  append(entries: readonly Entry[]): void {
    for (const entry of entries) {
      checkFollows(this.last, entry);
      this.#entries.push(entry);
      if (entry.kind === 'config') this.#configs.push(entry.index);
    }
  }

  /**
   * Section 5.3, the receiver's rules 2 to 4. Returns the index up to which this log now agrees with the sender,
   * or undefined, with nothing changed, if it does not hold (prevIndex, prevTerm). Entries that are already here
   * are left alone: only a real conflict truncates, so that a late, short append cannot drop newer entries.
   */
  maybeAppend(prevIndex: number, prevTerm: number, entries: readonly Entry[]): number | undefined {
    if (this.termAt(prevIndex) !== prevTerm) return undefined;
    const lastNew = prevIndex + entries.length;
    const firstNew = entries.findIndex((entry) => this.termAt(entry.index) !== entry.term);
    if (firstNew === -1) return lastNew;
    const fresh = entries.slice(firstNew);
    const first = fresh[0];
    assert(first !== undefined, 'an append that changes the log has a first entry');
    if (first.index <= this.lastIndex) this.#truncateFrom(first.index);
    this.append(fresh);
    return lastNew;
  }

  #truncateFrom(index: number): void {
    assert(index > this.#committed, 'conflict at {}, which is committed (commit {})', index, this.#committed);
    this.#entries.splice(index - this.#base.index - 1);
    this.#configs = this.#configs.filter((config) => config < index);
    this.#stable = Math.min(this.#stable, index - 1);
  }

  /**
   * The largest index <= `index` whose term is <= `term`: where two logs can still agree, given that the other
   * one has `term` at `index`. Both sides use it to skip a whole conflicting term per round trip.
   */
  findConflictByTerm(index: number, term: number): LogPosition {
    let candidate = Math.min(index, this.lastIndex);
    while (candidate > this.#base.index) {
      const position = this.positionAt(candidate);
      assert(position !== undefined, 'position {} lies inside the log', candidate);
      if (position.term <= term) return position;
      candidate -= 1;
    }
    return this.#base;
  }

  /** Moves the commit index forward; moving it back is a no-op, moving it past the log is fatal. */
  commitTo(index: number): boolean {
    if (index <= this.#committed) return false;
    assert(index <= this.lastIndex, 'commit {} is past the last index {}', index, this.lastIndex);
    this.#committed = index;
    return true;
  }

  /** Committed entries that are on this node's own disk and not applied yet. */
  applicable(bytesMax: number): Entry[] {
    const to = Math.min(this.#committed, this.#stable);
    return to > this.#applied ? this.slice(this.#applied + 1, to, bytesMax) : [];
  }

  appliedTo(index: number): void {
    assert(index > this.#applied, 'applied may not go from {} to {}', this.#applied, index);
    assert(
      index <= Math.min(this.#committed, this.#stable),
      'applied {} is past commit {} or stable {}',
      index,
      this.#committed,
      this.#stable,
    );
    this.#applied = index;
  }

  /** Entries that are not on disk yet, from the first on: until `costMax` is reached, none if that is 0. */
  unstable(costMax: number): Entry[] {
    const entries: Entry[] = [];
    let cost = 0;
    for (let index = this.#stable + 1; index <= this.lastIndex && cost < costMax; index += 1) {
      const entry = this.#entries[index - this.#base.index - 1];
      assert(entry !== undefined, 'entry {} is missing', index);
      entries.push(entry);
      cost += writeCost(entry);
    }
    return entries;
  }

  /**
   * `written` are on disk now. If the log was overwritten while they were being written, only the part that
   * still agrees is stable: two logs with the same term at an index agree up to there (Log Matching), so the
   * last agreeing entry decides. See the ABA race in raft/README.md.
   */
  stableTo(written: readonly Entry[]): void {
    for (let i = written.length - 1; i >= 0; i -= 1) {
      const entry = written[i];
      if (entry !== undefined && entry.index > this.#base.index && this.termAt(entry.index) === entry.term) {
        this.#stable = Math.max(this.#stable, entry.index);
        return;
      }
    }
  }

  /** The last position <= `index` such that the entries after it, up to `index`, amount to `bytes` or more. */
  positionBefore(index: number, bytes: number): LogPosition {
    let remaining = bytes;
    let position = this.positionAt(index);
    while (remaining > 0 && position !== undefined && position.index > this.#base.index) {
      const entry = this.#entries[position.index - this.#base.index - 1];
      remaining -= entry === undefined ? 0 : entryBytes(entry);
      position = this.positionAt(position.index - 1);
    }
    return position ?? this.#base;
  }

  /** Forgets entries up to `index`, which must be applied. */
  compact(index: number): void {
    assert(index <= this.#applied, 'cannot compact to {}: applied is {}', index, this.#applied);
    assert(index <= this.#stable, 'cannot compact to {}: stable is {}', index, this.#stable);
    if (index <= this.#base.index) return;
    const position = this.positionAt(index);
    assert(position !== undefined, 'position {} lies inside the log', index);
    this.#entries = this.#entries.slice(index - this.#base.index);
    this.#configs = this.#configs.filter((config) => config > index);
    this.#base = { index: position.index, term: position.term, timeMillis: position.timeMillis };
  }

  /** Replaces the whole log by a snapshot that ends at `position`. */
  restore(position: LogPosition): void {
    assert(
      position.index > this.#committed,
      'snapshot {} is below commit {}',
      position.index,
      this.#committed,
    );
    this.#base = { index: position.index, term: position.term, timeMillis: position.timeMillis };
    this.#entries = [];
    this.#configs = [];
    this.#committed = position.index;
    this.#applied = position.index;
    this.#stable = position.index;
  }
}

function checkFollows(previous: LogPosition, entry: Entry): LogPosition {
  assert(entry.index === previous.index + 1, 'entry {} does not follow {}', entry.index, previous.index);
  assert(entry.term >= previous.term, 'term {} at {} is below {}', entry.term, entry.index, previous.term);
  assert(
    entry.timeMillis >= previous.timeMillis,
    'time {} at {} is before {}',
    entry.timeMillis,
    entry.index,
    previous.timeMillis,
  );
  return entry;
}
