/** Applies committed entries to the state machine of a group, and begins a snapshot when one is due. */
import { assert } from '../assert.ts';
import { endChange, type Group } from './group.ts';
import type { Entry, LogPosition } from '../types.ts';

/**
 * Applies the next committed entries: about `bytesMax` bytes, and nothing after an entry that is slow to apply. Returns
 * the last one, or undefined if there was none.
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
  // A leader that lost its leadership has reported that already. Here only a leader that removed itself stops leading.
  if (group.change !== undefined && !group.core.isChanging) {
    endChange(group, { ok: true, config: group.core.config });
  }
  return last;
}

function applyConfig(group: Group, entry: Entry): void {
  group.core.appliedTo(entry.index);
  group.app.configChanged?.(group.core.config);
  const { change } = group;
  assert(change?.index !== entry.index || change.term === entry.term, 'a leader must keep its log');
}

/**
 * Begins a snapshot of the state after `applied`, if one was requested or is due.
 *
 * @param patience take a snapshot only after this many times the usual number of applied bytes.
 */
export function takeSnapshotIfDue(
  group: Group,
  applied: LogPosition,
  everyBytes: number,
  patience: number,
): void {
  const { core, snapshots, app } = group;
  if (snapshots.wantedAt === undefined && !snapshots.isDue(everyBytes, patience)) return;
  // A snapshot from the leader is arriving, and it will be newer.
  if (group.incoming !== undefined) return;
  // A node that joined and has not applied the first configuration does not know the members that belong in the
  // snapshot.
  if (core.voters.length === 0) return;
  const { index, term, timeMillis } = applied;
  snapshots.begin({ index, term, timeMillis, ...core.config }, app.snapshot());
}
