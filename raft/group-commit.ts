/**
 * The disk's side of a turn: collects what the groups want written into one synced batch, and lets out what waited
 * for it once it is done. One write is in flight at a time; what comes meanwhile goes into the next.
 */
import { assert } from './assert.ts';
import type { Ready } from './core.ts';
import type { Group } from './group.ts';
import { restoreFrom } from './local-snapshots.ts';
import type { MultiRaftOptions } from './multi-raft-options.ts';
import { LOG_START } from './log.ts';
import type { GroupWrite, LogStore, StoredGroup } from './store.ts';
import {
  NO_NODE,
  type GroupId,
  type LogPosition,
  type Message,
  type Snapshot,
  type SnapshotMeta,
} from './types.ts';

interface PendingWrite {
  readonly group: Group;
  readonly ready: Ready | undefined;
  /** How many of the group's offers this write records. */
  readonly offers: number;
  /** Set when this write completes a local snapshot. */
  readonly snapshot: { readonly meta: SnapshotMeta; readonly compactTo: LogPosition } | undefined;
}

interface Removal {
  readonly write: GroupWrite;
  readonly done: () => void;
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
  /** A write has ended since the last tick. */
  #isBusy = false;
  /** Not on disk yet. */
  readonly #removals = new Map<GroupId, Removal>();

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

  isRemoving(group: GroupId): boolean {
    return this.#removals.has(group);
  }

  /** The next write deletes the group. Its tombstone has a term that the replica never was in. */
  remove({ id, core }: Group, placement: number, done: (tombstone: StoredGroup) => void): void {
    const hardState = { term: core.term + 1, vote: NO_NODE, commit: 0 };
    this.#removals.set(id, {
      write: { group: id, placement, remove: true, hardState, entries: [] },
      done: () =>
        done({ placement, removedAt: placement, removed: true, hardState, base: LOG_START, entries: [] }),
    });
  }

  tick(): void {
    const { diskStallTicksMax, raft } = this.#init.options;
    if (!this.#isWriting) {
      // What is deleted rides along with other writes, while there are any.
      if (!this.#isBusy && this.#init.store.hasGarbage) this.#begin([], []);
      this.#isBusy = false;
    }
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
    const { options } = this.#init;
    const writes: GroupWrite[] = [];
    const pending: PendingWrite[] = [];
    let chunkBytesLeft = options.snapshotWriteBytesMax;
    for (const group of groups) {
      const { core, snapshots } = group;
      const ready = core.ready();
      if (ready?.install !== undefined) snapshots.abandon();
      if (ready !== undefined && !ready.mustWrite)
        this.#release({ group, ready, offers: 0, snapshot: undefined });
      const toWrite = ready?.mustWrite === true ? ready : undefined;
      const next = snapshots.nextChunk;
      const chunk = chunkBytesLeft > 0 ? next : undefined;
      // More than a turn's worth to apply, or a snapshot chunk that did not fit: another turn.
      if (core.hasApplicable || next !== chunk) this.#init.activate(group);
      const meta = snapshots.complete;
      const offers = group.offers.length;
      const placement = group.offers.at(-1)?.placement;
      if (toWrite === undefined && chunk === undefined && meta === undefined && placement === undefined)
        continue;
      const snapshot = meta && { meta, compactTo: core.compactionPoint(meta.index, options.keepLogBytes) };
      writes.push({
        group: group.id,
        entries: toWrite?.entries ?? [],
        ...(placement !== undefined && { placement }),
        ...(toWrite !== undefined && { hardState: toWrite.hardState }),
        ...(toWrite?.install !== undefined && { install: installOf(toWrite) }),
        ...(chunk !== undefined && { snapshotChunk: chunk }),
        ...(snapshot !== undefined && { snapshot: snapshot.meta, compactTo: snapshot.compactTo }),
      });
      if (chunk !== undefined) {
        chunkBytesLeft -= chunk.data.byteLength;
        snapshots.chunkTaken(chunk.data);
      }
      pending.push({ group, ready: toWrite, offers, snapshot });
    }
    for (const { write } of this.#removals.values()) writes.push(write);
    if (writes.length > 0) this.#begin(writes, pending);
  }

  #begin(writes: readonly GroupWrite[], pending: readonly PendingWrite[]): void {
    this.#isWriting = true;
    this.#writeTicks = 0;
    const removed = writes.filter(({ remove }) => remove === true).map(({ group }) => group);
    this.#init.store.write(writes, (error) => this.#written(pending, removed, error));
  }

  #written(pending: readonly PendingWrite[], removed: readonly GroupId[], error: Error | undefined): void {
    this.#isWriting = false;
    this.#isBusy = true;
    if (this.#isStopped) return;
    if (error !== undefined) {
      // What the disk holds now is unknown: not a word more (P6).
      this.#init.failed(error);
      return;
    }
    if (this.#isStalled) this.#setStalled(false);
    try {
      for (const write of pending) if (!write.group.isRemoved) this.#release(write);
      for (const group of removed) {
        const removal = this.#removals.get(group);
        this.#removals.delete(group);
        removal?.done();
      }
    } catch (caught) {
      this.#init.failed(caught);
      return;
    }
    this.#init.written();
  }

  /** A group's write is on disk: what waited for it may leave. */
  #release({ group, ready, offers, snapshot }: PendingWrite): void {
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
    for (const { done } of group.offers.splice(0, offers)) done();
  }
}

function installOf(ready: Ready): Snapshot {
  const { install } = ready;
  assert(install?.chunks !== undefined, 'a snapshot to install has its chunks');
  return { meta: install.meta, chunks: install.chunks };
}
