/**
 * The disk's side of a turn: collects what the groups want written into one synced batch, and lets out what waited
 * for it once it is done. One write is in flight at a time; what comes meanwhile goes into the next.
 */
import { assert } from './assert.ts';
import type { Ready } from './core.ts';
import type { Group } from './group.ts';
import { restoreFrom } from './local-snapshots.ts';
import type { MultiRaftOptions } from './multi-raft-options.ts';
import type { GroupWrite, LogStore } from './store.ts';
import type { LogPosition, Message, Snapshot, SnapshotMeta } from './types.ts';

interface PendingWrite {
  readonly group: Group;
  readonly ready: Ready | undefined;
  /** Set when this write completes a local snapshot. */
  readonly snapshot: { readonly meta: SnapshotMeta; readonly compactTo: LogPosition } | undefined;
}

interface GroupCommitInit {
  readonly store: LogStore;
  readonly options: MultiRaftOptions;
  /** A message may leave. */
  readonly send: (group: Group, message: Message) => void;
  /** The group has more to do. */
  readonly activate: (group: Group) => void;
  /** The disk does not answer, or does again. */
  readonly stalled: (isStalled: boolean) => void;
  /** A write is done, and everything that waited for it is out. */
  readonly written: () => void;
  readonly failed: (error: unknown) => void;
}

export class GroupCommit {
  readonly #init: GroupCommitInit;
  #isWriting = false;
  /** Ticks since the write in flight began. */
  #writeTicks = 0;
  #isStalled = false;
  #isStopped = false;

  constructor(init: GroupCommitInit) {
    this.#init = init;
  }

  get isWriting(): boolean {
    return this.#isWriting;
  }

  /** Nothing leaves any more, whatever becomes of the write in flight. */
  stop(): void {
    this.#isStopped = true;
  }

  tick(): void {
    const { diskStallTicksMax, raft } = this.#init.options;
    if (!this.#isWriting || this.#isStalled) return;
    this.#writeTicks += 1;
    if (this.#writeTicks > (diskStallTicksMax ?? 2 * raft.electionTicks)) this.#setStalled(true);
  }

  #setStalled(isStalled: boolean): void {
    this.#isStalled = isStalled;
    this.#init.stalled(isStalled);
  }

  /** Writes what these groups want on disk. Lets out at once what waits for nothing. */
  write(groups: readonly Group[]): void {
    assert(!this.#isWriting, 'one write at a time');
    const { options, store } = this.#init;
    const writes: GroupWrite[] = [];
    const pending: PendingWrite[] = [];
    let chunkBytesLeft = options.snapshotWriteBytesMax;
    for (const group of groups) {
      const { core, snapshots } = group;
      const ready = core.ready();
      if (ready?.install !== undefined) snapshots.abandon();
      if (ready !== undefined && !ready.mustWrite) this.#release({ group, ready, snapshot: undefined });
      const toWrite = ready?.mustWrite === true ? ready : undefined;
      const next = snapshots.nextChunk;
      const chunk = chunkBytesLeft > 0 ? next : undefined;
      // More than a turn's worth to apply, or a snapshot chunk that did not fit: another turn.
      if (core.hasApplicable || next !== chunk) this.#init.activate(group);
      const meta = snapshots.complete;
      if (toWrite === undefined && chunk === undefined && meta === undefined) continue;
      const snapshot = meta && { meta, compactTo: core.compactionPoint(meta.index, options.keepLogBytes) };
      writes.push({
        group: group.id,
        entries: toWrite?.entries ?? [],
        ...(toWrite !== undefined && { hardState: toWrite.hardState }),
        ...(toWrite?.install !== undefined && { install: installOf(toWrite) }),
        ...(chunk !== undefined && { snapshotChunk: chunk }),
        ...(snapshot !== undefined && { snapshot: snapshot.meta, compactTo: snapshot.compactTo }),
      });
      if (chunk !== undefined) {
        chunkBytesLeft -= chunk.data.byteLength;
        snapshots.chunkTaken(chunk.data);
      }
      pending.push({ group, ready: toWrite, snapshot });
    }
    if (writes.length === 0) return;
    this.#isWriting = true;
    this.#writeTicks = 0;
    store.write(writes, (error) => this.#written(pending, error));
  }

  #written(pending: readonly PendingWrite[], error: Error | undefined): void {
    this.#isWriting = false;
    if (this.#isStopped) return;
    if (error !== undefined) {
      // What the disk holds now is unknown: not a word more (P6).
      this.#init.failed(error);
      return;
    }
    if (this.#isStalled) this.#setStalled(false);
    try {
      for (const write of pending) this.#release(write);
    } catch (caught) {
      this.#init.failed(caught);
      return;
    }
    this.#init.written();
  }

  /** A group's write is on disk: what waited for it may leave. */
  #release({ group, ready, snapshot }: PendingWrite): void {
    const { core, app, snapshots } = group;
    if (snapshot !== undefined) {
      snapshots.completed(snapshot.meta);
      core.compact(snapshot.compactTo.index);
    }
    if (ready !== undefined) {
      if (ready.install !== undefined) {
        const installed = installOf(ready);
        snapshots.installed(installed.meta);
        restoreFrom(app, installed);
        app.configChanged?.(core.config);
      }
      core.advance(ready);
      // What this node promised itself was counted by `advance`.
      for (const message of ready.afterSync) if (message.to !== core.id) this.#init.send(group, message);
    }
    this.#init.activate(group);
  }
}

function installOf(ready: Ready): Snapshot {
  const { install } = ready;
  assert(install?.chunks !== undefined, 'a snapshot to install has its chunks');
  return { meta: install.meta, chunks: install.chunks };
}
