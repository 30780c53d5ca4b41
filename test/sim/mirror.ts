/** The certain disk contents of one replica, rebuilt from its writes alone, without any store. */
import { decodeConfig } from '../../raft/membership.ts';
import type { GroupWrite } from '../../raft/driver/store.ts';
import type { Entry, EntryKind } from '../../raft/types.ts';
import { check } from './story.ts';

const KINDS: readonly EntryKind[] = ['command', 'noop', 'config'];

/** A digest of everything in an entry. */
export function digestOf(entry: Entry): number {
  let hash = 0x811c9dc5 ^ entry.index;
  hash = Math.imul(hash ^ entry.term, 0x01000193);
  hash = Math.imul(hash ^ (entry.timeMillis >>> 0), 0x01000193);
  hash = Math.imul(hash ^ Math.floor(entry.timeMillis / 2 ** 32), 0x01000193);
  hash = Math.imul(hash ^ KINDS.indexOf(entry.kind), 0x01000193);
  for (const byte of entry.data) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

export class DiskMirror {
  readonly name: string;
  term = 0;
  vote = 0;
  /** The commit index that it certainly knows. */
  commit = 0;
  baseIndex = 0;
  baseTerm = 0;
  /** The placement version of the last offer or removal, and of the last removal; 0: never. */
  placement = 0;
  removedAt = 0;
  /** The parts of a snapshot that is not in effect. */
  #staged = { index: 0, chunks: 0, bytes: 0 };
  /** Terms of the entries after the base. */
  readonly #terms: number[] = [];
  /** The epochs of all configurations that it has, by index, compacted or not. */
  readonly #epochs = new Map<number, number>();

  constructor(name: string) {
    this.name = name;
  }

  /** Nothing but a tombstone. */
  get isRemoved(): boolean {
    return this.removedAt > 0 && this.placement === this.removedAt;
  }

  /**
   * A removed replica has forgotten its votes and acknowledgements: it may neither vote nor campaign before it has a
   * configuration newer than its removal.
   */
  get takesPart(): boolean {
    if (this.removedAt === 0) return true;
    return [...this.#epochs.values()].some((epoch) => epoch > this.removedAt);
  }

  get lastIndex(): number {
    return this.baseIndex + this.#terms.length;
  }

  get lastTerm(): number {
    return this.#terms.at(-1) ?? this.baseTerm;
  }

  /** The current contents, for a disk that may go back to them. */
  copy(): DiskMirror {
    const copy = new DiskMirror(this.name);
    copy.become(this);
    return copy;
  }

  become(other: DiskMirror): void {
    this.term = other.term;
    this.vote = other.vote;
    this.commit = other.commit;
    this.baseIndex = other.baseIndex;
    this.baseTerm = other.baseTerm;
    this.placement = other.placement;
    this.removedAt = other.removedAt;
    this.#terms.splice(0, Infinity, ...other.#terms);
    this.#epochs.clear();
    for (const [index, epoch] of other.#epochs) this.#epochs.set(index, epoch);
    this.restarted();
  }

  /** Undefined for compacted and missing entries. */
  termAt(index: number): number | undefined {
    return this.#terms[index - this.baseIndex - 1];
  }

  /** Whether this replica would vote for `candidate`, by their logs. */
  wouldElect(candidate: DiskMirror): boolean {
    const { lastTerm, lastIndex } = candidate;
    return lastTerm > this.lastTerm || (lastTerm === this.lastTerm && lastIndex >= this.lastIndex);
  }

  /** The term at `index`. Entries covered by a snapshot count as held. */
  holds(index: number, term: number): boolean {
    if (index < this.baseIndex) return true;
    if (index === this.baseIndex) return index === 0 || this.baseTerm === term;
    return this.#terms[index - this.baseIndex - 1] === term;
  }

  apply(write: GroupWrite): void {
    const { install, entries, compactTo, hardState } = write;
    this.#place(write);
    this.#stage(write);
    if (install !== undefined) {
      this.baseIndex = install.index;
      this.baseTerm = install.term;
      this.#terms.length = 0;
      this.#epochs.clear();
      this.#epochs.set(install.index, install.epoch ?? 0);
    }
    const first = entries[0];
    if (first !== undefined) {
      check(
        first.index > this.baseIndex && first.index <= this.lastIndex + 1,
        () => `${this.name} writes entry ${first.index} behind ${this.lastIndex}`,
      );
      this.#terms.length = first.index - this.baseIndex - 1;
      for (const index of this.#epochs.keys()) if (index >= first.index) this.#epochs.delete(index);
      for (const entry of entries) {
        this.#terms.push(entry.term);
        if (entry.kind === 'config') this.#epochs.set(entry.index, decodeConfig(entry.data)?.epoch ?? 0);
      }
    }
    if (compactTo !== undefined && compactTo.index > this.baseIndex) {
      this.#terms.splice(0, compactTo.index - this.baseIndex);
      this.baseIndex = compactTo.index;
      this.baseTerm = compactTo.term;
    }
    if (install !== undefined) this.commit = Math.max(this.commit, install.index);
    if (hardState === undefined) return;
    this.#keepPromises(hardState.term, hardState.vote);
    this.commit = Math.max(this.commit, hardState.commit);
  }

  /** A snapshot takes effect when all of it was staged before, or is in the same write. */
  #stage({ stage, install, snapshot, remove }: GroupWrite): void {
    if (stage !== undefined) {
      const before = stage.first === 0 ? { chunks: 0, bytes: 0 } : this.#staged;
      check(
        stage.first === 0 || (stage.index === this.#staged.index && stage.first === this.#staged.chunks),
        () =>
          `${this.name} stages chunk ${stage.first} of ${stage.index} after ${JSON.stringify(this.#staged)}`,
      );
      const bytes = stage.chunks.reduce((sum, chunk) => sum + chunk.length, before.bytes);
      this.#staged = { index: stage.index, chunks: before.chunks + stage.chunks.length, bytes };
    }
    const meta = install ?? snapshot;
    if (meta !== undefined) {
      const { index, chunks, bytes } = this.#staged;
      check(
        meta.index === index && meta.chunkCount === chunks && meta.byteLength === bytes,
        () => `${this.name} has ${chunks} chunks of ${index} on disk, but installs ${JSON.stringify(meta)}`,
      );
    }
    if (meta !== undefined || remove === true) this.restarted();
  }

  /** Chunks of a snapshot are on disk, and it is not in effect. */
  get isStaging(): boolean {
    return this.#staged.chunks > 0;
  }

  /** A new process does not know about staged chunks. */
  restarted(): void {
    this.#staged = { index: 0, chunks: 0, bytes: 0 };
  }

  #place({ placement = this.placement, remove }: GroupWrite): void {
    check(
      placement >= this.placement && !(this.isRemoved && placement === this.placement),
      () => `${this.name} records placement ${placement} after ${this.placement}`,
    );
    this.placement = placement;
    if (remove !== true) return;
    const newest = Math.max(0, ...this.#epochs.values());
    check(
      newest <= placement,
      () => `${this.name} is removed under placement ${placement}, but is a member in ${newest} by its log`,
    );
    this.removedAt = placement;
    this.baseIndex = 0;
    this.baseTerm = 0;
    this.commit = 0;
    this.#terms.length = 0;
    this.#epochs.clear();
  }

  #keepPromises(term: number, vote: number): void {
    check(term >= this.term, () => `the term of ${this.name} on disk fell from ${this.term} to ${term}`);
    check(
      term > this.term || this.vote === 0 || this.vote === vote,
      () => `the vote of ${this.name} in term ${term} changed from ${this.vote} to ${vote}`,
    );
    this.term = term;
    this.vote = vote;
  }
}
