/**
 * Where one group stands, as both stores keep it in memory. The methods apply one field of a GroupWrite each, in
 * the order raft/store.ts gives; they trust group-check.ts to have refused what must not happen. No I/O.
 */
import { NO_NODE, type HardState, type LogPosition, type SnapshotMeta } from '../raft/types.ts';
import { LogIndex } from './log-index.ts';

/** Chunks of a snapshot of the local state machine that is not complete yet. */
export interface StagedSnapshot {
  readonly index: number;
  readonly chunkCount: number;
  readonly byteLength: number;
}

export class GroupState {
  hardState: HardState = { term: 0, vote: NO_NODE, commit: 0 };
  /** Invariant: snapshot.index >= log.baseIndex, or nothing could rebuild the state up to the base. */
  snapshot: SnapshotMeta | undefined = undefined;
  /** Lives only as long as the process: what a crash leaves of it is garbage. */
  staged: StagedSnapshot | undefined = undefined;
  readonly log = new LogIndex();

  get base(): LogPosition {
    return this.log.positionAt(this.log.baseIndex);
  }

  get last(): LogPosition {
    return this.log.positionAt(this.log.lastIndex);
  }

  install(meta: SnapshotMeta, chain: number): void {
    this.log.reset(meta, chain);
    this.snapshot = meta;
    this.staged = undefined;
  }

  /** Adds a chunk to the staged snapshot; chunk 0 or another index begins a new one. */
  stage(index: number, chunk: number, byteLength: number): void {
    const { staged } = this;
    const before = chunk === 0 || staged?.index !== index ? undefined : staged;
    this.staged = { index, chunkCount: chunk + 1, byteLength: (before?.byteLength ?? 0) + byteLength };
  }

  publish(meta: SnapshotMeta): void {
    this.snapshot = meta;
    this.staged = undefined;
  }
}
