/**
 * What a replica wants on disk next, and what it counts once that is there. Between the two the write is the driver's;
 * which messages wait for it is decided where they are sent (`waitsForDisk`).
 */
import type { CoreState } from './core-state.ts';
import { ownLogIsStable } from './leader.ts';
import { advanceReads } from './read-index.ts';
import { step } from './step.ts';
import type { Entry, HardState, InstallSnapshot, Message } from './types.ts';

/** What must reach the disk together, and the messages that may leave only after it has. */
export interface Ready {
  /** False: nothing to write; `afterSync` may leave at once, because all it promises is on disk already. */
  readonly mustWrite: boolean;
  readonly hardState: HardState;
  readonly entries: readonly Entry[];
  readonly install: InstallSnapshot | undefined;
  readonly afterSync: readonly Message[];
}

/** Takes entries until they cost `costMax`. Undefined if there is neither anything to write nor anything that waits. */
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

/** `ready` is on disk: this node's own vote and acknowledgement count from now on. */
export function writeDone(state: CoreState, ready: Ready): void {
  if (ready.mustWrite) {
    state.written = ready.hardState;
    if (state.pendingInstall === ready.install) state.pendingInstall = undefined;
    // A snapshot that came meanwhile will wipe these entries from the disk: they are to be written again after it.
    if (state.pendingInstall === undefined) state.log.stableTo(ready.entries);
    if (state.leadership !== undefined) ownLogIsStable(state, state.leadership);
  }
  for (const message of ready.afterSync) {
    if (message.to === state.id) step(state, message);
  }
  advanceReads(state);
}
