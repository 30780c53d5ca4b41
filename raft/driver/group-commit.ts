/**
 * The disk side of a turn: collects the writes of all groups into one synced batch of bounded size, and releases the
 * messages that waited for it. Only one write is in flight. Data that arrives meanwhile or does not fit goes into the
 * next.
 */
import { assert } from '../assert.ts';
import type { Group } from './group.ts';
import type { IncomingSnapshot } from './incoming-snapshot.ts';
import type { MultiRaftOptions } from './multi-raft-options.ts';
import { LOG_START, writeCost } from '../log.ts';
import type { Ready } from '../ready.ts';
import type { GroupWrite, LogStore, StagedChunks } from './store.ts';
import {
  NO_NODE,
  type GroupId,
  type LogPosition,
  type Message,
  type SnapshotMeta,
  type StoredGroup,
} from '../types.ts';

interface PendingWrite {
  readonly group: Group;
  readonly ready: Ready | undefined;
  /** The number of the group's offers that this write records. */
  readonly offers: number;
  /** Set if this write stages a chunk of it. */
  readonly incoming: IncomingSnapshot | undefined;
  /** Set when this write completes a local snapshot. */
  readonly snapshot: { readonly meta: SnapshotMeta; readonly compactTo: LogPosition } | undefined;
}

interface Removal {
  readonly write: GroupWrite;
  readonly done: () => void;
}

/** Ticks between two checks for garbage in an idle store. */
const GARBAGE_CHECK_TICKS = 10;

/** The space left in a write. */
interface Room {
  entryCost: number;
  chunkBytes: number;
}

interface GroupCommitInit {
  readonly store: LogStore;
  readonly options: MultiRaftOptions;
  /** A message may leave now. */
  readonly send: (group: Group, message: Message) => void;
  /** The group has more work: put it into the next turn. */
  readonly activate: (group: Group) => void;
  /** A chunk of the leader's snapshot is on disk. */
  readonly staged: (group: Group, incoming: IncomingSnapshot) => void;
  /** The leader's snapshot is in effect on disk. */
  readonly installed: (group: Group) => void;
  /** The disk stopped answering (true), or answers again (false). */
  readonly stalled: (isStalled: boolean) => void;
  /** A write is done, and all messages that waited for it were sent. */
  readonly written: () => void;
  /** A write failed. Nothing may leave after this. */
  readonly failed: (error: unknown) => void;
}

/** Writes for all groups of a node. */
export class GroupCommit {
  readonly #init: GroupCommitInit;
  #isWriting = false;
  /** Ticks since the write in flight began. */
  #writeTicks = 0;
  #isStalled = false;
  #isStopped = false;
  /**
   * Ticks until the next check for garbage, which costs time per group. While there is garbage, deleting goes on at
   * once.
   */
  #untilCheckTicks = 0;
  /** A write has ended since the last tick. */
  #isBusy = false;
  /** Removals that are not on disk yet. */
  readonly #removals = new Map<GroupId, Removal>();

  constructor(init: GroupCommitInit) {
    this.#init = init;
  }

  get isWriting(): boolean {
    return this.#isWriting;
  }

  /** Releases nothing any more, even if the write in flight succeeds. */
  stop(): void {
    this.#isStopped = true;
  }

  isRemoving(group: GroupId): boolean {
    return this.#removals.has(group);
  }

  /** Deletes the group with the next write. Its tombstone has a term that the replica never was in. */
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
      // While there are other writes, garbage is deleted along with them.
      if (!this.#isBusy && this.#findsGarbage()) this.#begin([], []);
      this.#isBusy = false;
    }
    if (!this.#isWriting || this.#isStalled) return;
    this.#writeTicks += 1;
    if (this.#writeTicks > (diskStallTicksMax ?? 2 * raft.electionTicks)) this.#setStalled(true);
  }

  #findsGarbage(): boolean {
    this.#untilCheckTicks -= 1;
    if (this.#untilCheckTicks > 0) return false;
    const { hasGarbage } = this.#init.store;
    if (!hasGarbage) this.#untilCheckTicks = GARBAGE_CHECK_TICKS;
    return hasGarbage;
  }

  #setStalled(isStalled: boolean): void {
    this.#isStalled = isStalled;
    this.#init.stalled(isStalled);
  }

  /** Writes the data of these groups, as far as it fits. Sends at once the messages that need no write. */
  write(groups: readonly Group[]): void {
    assert(!this.#isWriting, 'only one write may be in flight');
    const { writeBytesMax, snapshotWriteBytesMax } = this.#init.options;
    const room: Room = { entryCost: writeBytesMax, chunkBytes: snapshotWriteBytesMax };
    const writes: GroupWrite[] = [];
    const pending: PendingWrite[] = [];
    const served = groups.filter((group) => this.#collect(group, room, writes, pending));
    // Groups that found no room were activated first, so they come first in the next write.
    for (const group of served) this.#init.activate(group);
    for (const { write } of this.#removals.values()) writes.push(write);
    if (writes.length > 0) this.#begin(writes, pending);
  }

  /**
   * Collects the data of one group. Activates the group if it found no room. Returns true if the group found room and
   * has more to do.
   */
  #collect(group: Group, room: Room, writes: GroupWrite[], pending: PendingWrite[]): boolean {
    const { core, snapshots } = group;
    const ready = core.ready(room.entryCost);
    for (const entry of ready?.entries ?? []) room.entryCost -= writeCost(entry);
    const toWrite = ready?.mustWrite === true ? ready : undefined;
    if (ready !== undefined && toWrite === undefined) {
      this.#release({ group, ready, offers: 0, incoming: undefined, snapshot: undefined });
    }
    const isInstalling = toWrite?.install !== undefined;
    const stage = isInstalling ? undefined : takeChunks(group, room);
    const hasChunks = group.incoming?.toStage !== undefined || snapshots.hasMore;
    const isWaiting =
      (hasChunks && stage === undefined) || (core.hasUnstable && (ready?.entries ?? []).length === 0);
    // More to apply than fits in a turn, or data that did not fit: needs another turn.
    const hasMore = core.hasApplicable || core.hasUnstable || hasChunks;
    if (isWaiting) this.#init.activate(group);
    const isServed = hasMore && !isWaiting;
    const meta = snapshots.complete;
    const placement = group.offers.at(-1)?.placement;
    const isIdle = [toWrite, stage, meta, placement].every((part) => part === undefined);
    if (isIdle) return isServed;
    const { keepLogBytes } = this.#init.options;
    const snapshot = meta && { meta, compactTo: core.compactionPoint(meta.index, keepLogBytes) };
    writes.push({
      group: group.id,
      entries: toWrite?.entries ?? [],
      ...(placement !== undefined && { placement }),
      ...(toWrite !== undefined && { hardState: toWrite.hardState }),
      ...(toWrite?.install !== undefined && { install: toWrite.install.meta }),
      ...(stage !== undefined && { stage }),
      ...(snapshot !== undefined && { snapshot: snapshot.meta, compactTo: snapshot.compactTo }),
    });
    const incoming = stage === undefined ? undefined : group.incoming;
    pending.push({ group, ready: toWrite, offers: group.offers.length, incoming, snapshot });
    return isServed;
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
      // The contents of the disk are unknown now: send nothing more (promise P6).
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

  /** The group's write is on disk: send what waited for it. */
  #release({ group, ready, offers, incoming, snapshot }: PendingWrite): void {
    const { core, app, snapshots } = group;
    if (snapshot !== undefined) {
      snapshots.completed(snapshot.meta);
      core.compact(snapshot.compactTo.index);
    }
    if (incoming !== undefined) this.#init.staged(group, incoming);
    if (ready !== undefined) {
      if (ready.install !== undefined) {
        this.#init.installed(group);
        app.configChanged?.(core.config);
      }
      core.advance(ready);
      // `advance` has counted the messages from this node to itself.
      for (const message of ready.afterSync) if (message.to !== core.id) this.#init.send(group, message);
    }
    this.#init.activate(group);
    for (const { done } of group.offers.splice(0, offers)) done();
  }
}

/** The next chunks to write: the one that arrived from the leader, else chunks of the group's own snapshot. */
function takeChunks({ incoming, snapshots }: Group, room: Room): StagedChunks | undefined {
  if (room.chunkBytes <= 0) return undefined;
  const stage = incoming?.toStage ?? snapshots.take(room.chunkBytes);
  for (const chunk of stage?.chunks ?? []) room.chunkBytes -= chunk.byteLength;
  return stage;
}
