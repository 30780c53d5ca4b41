/** What is committed reaches the state machine, entry by entry, and now and then a snapshot of it is begun. */
import { assert } from '../assert.ts';
import { endChange, type Group } from './group.ts';
import type { Entry, LogPosition } from '../types.ts';

/**
 * Applies the next committed entries: about `bytesMax` bytes of them, and up to the first that is slow to apply. Returns the
 * last, or undefined if there was none.
 */
export function applyCommitted(group: Group, bytesMax: number): LogPosition | undefined {
  const entries = group.core.applicable(bytesMax);
  const slow = entries.findIndex((entry) => group.app.isSlowToApply?.(entry) === true);
  if (slow !== -1) entries.splice(slow + 1);
  const last = entries.at(-1);
  if (last === undefined) return undefined;
  for (const entry of entries) {
    group.app.apply(entry);
    group.snapshots.applied(entry);
    if (entry.kind === 'config') applyConfig(group, entry);
  }
  if (group.core.applied < last.index) group.core.appliedTo(last.index);
  // Whoever lost the lead was told so before; only a leader that removed itself leads no more just now.
  if (group.change !== undefined && !group.core.isChanging) {
    endChange(group, { ok: true, config: group.core.config });
  }
  return last;
}

function applyConfig(group: Group, entry: Entry): void {
  group.core.appliedTo(entry.index);
  group.app.configChanged?.(group.core.config);
  const { change } = group;
  assert(change?.index !== entry.index || change.term === entry.term, 'a leader keeps its log');
}

/**
 * Begins to write down the state after `applied`, if `patience` times as much was applied as makes it worth it, or somebody
 * wants it.
 */
export function takeSnapshotIfDue(
  group: Group,
  applied: LogPosition,
  everyBytes: number,
  patience: number,
): void {
  const { core, snapshots, app } = group;
  if (snapshots.wantedAt === undefined && !snapshots.isDue(everyBytes, patience)) return;
  // One of the leader is on its way: it will be newer.
  if (group.incoming !== undefined) return;
  // A node that joined, and has not come to the entry that says so, does not know whose snapshot it would be.
  if (core.voters.length === 0) return;
  const { index, term, timeMillis } = applied;
  snapshots.begin({ index, term, timeMillis, ...core.config }, app.snapshot());
}
