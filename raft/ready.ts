/**
 * What a replica wants on disk next (`nextWrite`), and what counts once it is there (`writeDone`). The driver does
 * the write in between. `waitsForDisk` decides which messages wait for it.
 */
import type { CoreState } from './core-state.ts';
import { ownLogIsStable } from './leader.ts';
import { advanceReads } from './read-index.ts';
import { step } from './step.ts';
import type { Entry, HardState, InstallSnapshot, Message } from './types.ts';

/** Data that must reach the disk in one atomic write, and the messages that may leave after it. */
export interface Ready {
  /**
   * False if there is nothing to write: then `afterSync` may leave at once, because the disk has all that it
   * promises.
   */
  readonly mustWrite: boolean;
  readonly hardState: HardState;
  readonly entries: readonly Entry[];
  /** A snapshot from the leader, whose staged chunks replace the log. */
  readonly install: InstallSnapshot | undefined;
  readonly afterSync: readonly Message[];
}

/**
 * Collects the next write: entries until their `writeCost` reaches `costMax`. Undefined if there is nothing to
 * write and no message waits. Messages stay queued if not all entries fit.
 */
export function nextWrite(state: CoreState, costMax: number): Ready | undefined {
  const { log, term, vote, written, pendingInstall, afterSync } = state;
  log.checkConfigs();
  const entries = log.unstable(costMax);
  const lastWritten = log.stable + entries.length;
  const isPartial = lastWritten < log.lastIndex;
  const votedOrMoved = term !== written.term || vote !== written.vote;
  const mustWrite = votedOrMoved || entries.length > 0 || pendingInstall !== undefined;
  if (!mustWrite && (isPartial || afterSync.length === 0)) return undefined;
  return {
    mustWrite,
    hardState: { term, vote, commit: Math.min(log.committed, lastWritten) },
    entries,
    install: pendingInstall,
    afterSync: isPartial ? [] : afterSync.splice(0),
  };
}

/** `ready` is on disk, so this node's own vote and acknowledgement count from now on. */
export function writeDone(state: CoreState, ready: Ready): void {
  if (ready.mustWrite) {
    state.written = ready.hardState;
    if (state.pendingInstall === ready.install) state.pendingInstall = undefined;
    // A snapshot that arrived meanwhile will delete these entries from the disk, so they are not stable.
    if (state.pendingInstall === undefined) state.log.stableTo(ready.entries);
    if (state.leadership !== undefined) ownLogIsStable(state, state.leadership);
  }
  for (const message of ready.afterSync) {
    if (message.to === state.id) step(state, message);
  }
  advanceReads(state);
}
