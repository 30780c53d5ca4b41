/**
 * The part of a group's log that is in memory: everything after the last compaction. It does no I/O. `stableTo`
 * reports which entries have reached the disk.
 */
import { assert } from './assert.ts';
import type { Entry, LogPosition } from './types.ts';

/** The position before the first entry of a log that was never compacted. */
export const LOG_START: LogPosition = { index: 0, term: 0, timeMillis: 0 };

const ENTRY_OVERHEAD_BYTES = 32;
const ENTRY_WRITE_BYTES = 512;

/** The bytes that an entry counts for in every budget: its payload and a fixed overhead. */
export function entryBytes(entry: Entry): number {
  return entry.data.byteLength + ENTRY_OVERHEAD_BYTES;
}

/**
 * How long writing an entry blocks the thread, in bytes copied: a key and its checksum cost as much as copying 512
 * bytes.
 */
export function writeCost(entry: Entry): number {
  return entry.data.byteLength + ENTRY_WRITE_BYTES;
}

/** The log of one replica. Its methods throw `InvariantError` for anything that would break an invariant. */
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

  /**
   * Restores a log from disk.
   *
   * @param base the position just before the first of `entries`.
   * @param committed at least `applied`, at most the last index.
   * @param applied at least `base.index`.
   */
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

  /** Whether a change of the configuration is committed but not applied here yet. */
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
   * Asserts that every `config` entry but the last is committed. A leader appends one only after it has applied the
   * previous one, so a replica with two knows that the first is committed. The safety of changes depends on it: no
   * replica acts on a configuration that is two changes old. It must hold on disk as well, so `commit` is written
   * together with entries.
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

  /** The term at `index`; undefined if that is past the end or was compacted. */
  termAt(index: number): number | undefined {
    return this.positionAt(index)?.term;
  }

  /** The position at `index`; undefined if that is past the end or was compacted. */
  positionAt(index: number): LogPosition | undefined {
    if (index === this.#base.index) return this.#base;
    return this.#entries[index - this.#base.index - 1];
  }

  /**
   * The entries from `from` to `to`, both included. Stops before `bytesMax` is exceeded, but returns at least one.
   */
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

  /** Whether a log that ends at (lastIndex, lastTerm) is at least as up to date as this one (Raft paper, 5.4.1). */
  isUpToDate(lastIndex: number, lastTerm: number): boolean {
    const own = this.last;
    return lastTerm > own.term || (lastTerm === own.term && lastIndex >= own.index);
  }

  /** Appends entries. The first must directly follow the last entry. */
  append(entries: readonly Entry[]): void {
    for (const entry of entries) {
      checkFollows(this.last, entry);
      this.#entries.push(entry);
      if (entry.kind === 'config') this.#configs.push(entry.index);
    }
  }

  /**
   * Appends what is new of a leader's entries (Raft paper, figure 2, AppendEntries, receiver rules 2 to 4). Returns
   * the index up to which this log now agrees with the sender. Returns undefined, and changes nothing, if the term
   * at `prevIndex` is not `prevTerm`. Entries that are already present stay: only a conflicting term truncates, so
   * a late, short append cannot drop newer entries.
   */
  maybeAppend(prevIndex: number, prevTerm: number, entries: readonly Entry[]): number | undefined {
    if (this.termAt(prevIndex) !== prevTerm) return undefined;
    const lastNew = prevIndex + entries.length;
    const firstNew = entries.findIndex((entry) => this.termAt(entry.index) !== entry.term);
    if (firstNew === -1) return lastNew;
    const fresh = entries.slice(firstNew);
    const first = fresh[0];
    assert(first !== undefined, 'an append that changes the log must have a first entry');
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
   * The largest position at or before `index` whose term is <= `term`: the last place where two logs can still
   * agree, if the other log has `term` at `index`. Both sides use it to skip a whole conflicting term per round
   * trip.
   */
  findConflictByTerm(index: number, term: number): LogPosition {
    let candidate = Math.min(index, this.lastIndex);
    while (candidate > this.#base.index) {
      const position = this.positionAt(candidate);
      assert(position !== undefined, 'position {} must be in the log', candidate);
      if (position.term <= term) return position;
      candidate -= 1;
    }
    return this.#base;
  }

  /** Moves the commit index forward. Returns false if it is that far already. An index past the log is fatal. */
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

  /** The state machine has applied every entry up to `index`. */
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

  /**
   * The entries that are not on disk yet, oldest first, until their `writeCost` reaches `costMax`; none if that is
   * 0.
   */
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
   * The entries `written` are on disk now. If a new leader overwrote part of the log while they were being written,
   * only the part that still agrees counts. Two logs with the same term at an index agree up to it (Log Matching),
   * so the last agreeing entry decides. See the ABA race in docs/internals/raft.md.
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

  /**
   * The last position at or before `index` such that the entries between it and `index` have at least `bytes`
   * bytes.
   */
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

  /** Drops the entries up to `index`, which must be applied and on disk. */
  compact(index: number): void {
    assert(index <= this.#applied, 'cannot compact to {}: applied is {}', index, this.#applied);
    assert(index <= this.#stable, 'cannot compact to {}: stable is {}', index, this.#stable);
    if (index <= this.#base.index) return;
    const position = this.positionAt(index);
    assert(position !== undefined, 'position {} must be in the log', index);
    this.#entries = this.#entries.slice(index - this.#base.index);
    this.#configs = this.#configs.filter((config) => config > index);
    this.#base = { index: position.index, term: position.term, timeMillis: position.timeMillis };
  }

  /** Replaces the whole log with a snapshot that ends at `position`. */
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
