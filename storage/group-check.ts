/**
 * The rules for writes to a group, as assertions that are checked before anything changes. Pure. A violation is a bug
 * in the caller and must stop the process before it reaches the disk.
 */
import { assert } from '../raft/assert.ts';
import type { GroupWrite, StagedChunks } from '../raft/driver/store.ts';
import { NO_NODE, type Entry, type HardState, type LogPosition, type SnapshotMeta } from '../raft/types.ts';
import { type GroupState, type StagedSnapshot, stagedWith } from './group-state.ts';
import { CHUNK_MAX, assertGroup, assertIndex } from './keys.ts';

/** The state of the group after the fields checked so far. */
interface Outlook {
  readonly base: LogPosition;
  readonly last: LogPosition;
  /** The index of the snapshot; undefined if there is none. */
  readonly snapshotIndex: number | undefined;
  readonly staged: StagedSnapshot | undefined;
}

/**
 * Checks that `write` may follow `state`, and changes nothing.
 *
 * @throws InvariantError
 */
export function checkGroupWrite(state: GroupState, write: GroupWrite): void {
  assertGroup(write.group);
  const where = `group ${write.group}`;
  checkPlacement(state, write, where);
  if (write.remove === true) {
    checkRemoval(state, write, where);
    return;
  }
  const { base: baseNow, last, staged } = state;
  let outlook: Outlook = { base: baseNow, last, snapshotIndex: state.snapshot?.index, staged };
  if (write.stage !== undefined) outlook = checkStage(outlook, write.stage, where);
  if (write.install !== undefined) outlook = checkInstall(state, outlook, write.install, where);
  if (write.entries.length > 0) outlook = checkEntries(state, outlook, write, where);
  if (write.compactTo !== undefined) outlook = checkCompactTo(state, outlook, write, write.compactTo, where);
  checkHardState(state.hardState, write.hardState ?? state.hardState, outlook, where);
  if (write.snapshot !== undefined) outlook = checkSnapshot(state, outlook, write, where);
  const { base, snapshotIndex } = outlook;
  assert(
    base.index === 0 || (snapshotIndex !== undefined && snapshotIndex >= base.index),
    '{}: a snapshot (now {}) must cover the log up to its base {}',
    where,
    snapshotIndex,
    base.index,
  );
}

function checkPlacement(state: GroupState, { placement }: GroupWrite, where: string): void {
  const before = state.placement;
  if (placement !== undefined) {
    assert(isCount(placement), '{}: placement {} must be a safe integer >= 0', where, placement);
    assert(placement >= before, '{}: placement {} must not go back from {}', where, placement, before);
  }
  assert(
    !state.isRemoved || (placement !== undefined && placement > before),
    '{}: it was removed by placement {}, so only a higher one may bring it back, not {}',
    where,
    before,
    placement,
  );
}

function checkRemoval(state: GroupState, write: GroupWrite, where: string): void {
  const { placement, hardState, entries, install, compactTo, stage, snapshot } = write;
  assert(!state.isRemoved, '{}: it was removed already, by placement {}', where, state.placement);
  assert(
    placement !== undefined && placement > state.placement,
    '{}: placement {} may only remove a group that was last offered under an older one, not {}',
    where,
    placement,
    state.placement,
  );
  assert(
    entries.length === 0 && [install, compactTo, stage, snapshot].every((field) => field === undefined),
    '{}: a write that removes a group must contain nothing else',
    where,
  );
  assert(
    hardState !== undefined && isCount(hardState.term) && hardState.term > state.hardState.term,
    '{}: the term of a tombstone, {}, must be above {}, in which the replica may have voted',
    where,
    hardState?.term,
    state.hardState.term,
  );
  assert(
    hardState.vote === NO_NODE && hardState.commit === 0,
    '{}: a tombstone must have no vote and no log, not vote {} and commit {}',
    where,
    hardState.vote,
    hardState.commit,
  );
}

function checkStage(outlook: Outlook, stage: StagedChunks, where: string): Outlook {
  const { index, first, chunks } = stage;
  assertIndex(index);
  const { snapshotIndex, staged } = outlook;
  assert(
    snapshotIndex === undefined || index > snapshotIndex,
    '{}: the staged snapshot {} must be newer than the current one, {}',
    where,
    index,
    snapshotIndex,
  );
  const before = staged?.index === index ? staged.chunkCount : 0;
  assert(
    chunks.length > 0 && (first === 0 || first === before) && first + chunks.length - 1 <= CHUNK_MAX,
    '{}: chunk {} of snapshot {} must be the first or follow the {} staged ones',
    where,
    first,
    index,
    before,
  );
  return { ...outlook, staged: stagedWith(staged, stage) };
}

function checkInstall(state: GroupState, outlook: Outlook, meta: SnapshotMeta, where: string): Outlook {
  checkPosition(meta, where);
  const { snapshotIndex } = outlook;
  assert(
    snapshotIndex === undefined || meta.index > snapshotIndex,
    '{}: the installed snapshot {} must be newer than {}',
    where,
    meta.index,
    snapshotIndex,
  );
  assert(
    meta.index >= state.hardState.commit,
    '{}: the installed snapshot {} must reach the stored commit {}',
    where,
    meta.index,
    state.hardState.commit,
  );
  checkStaged(meta, outlook, where);
  return { base: meta, last: meta, snapshotIndex: meta.index, staged: undefined };
}

function checkEntries(state: GroupState, outlook: Outlook, write: GroupWrite, where: string): Outlook {
  const first = write.entries[0]?.index ?? 0;
  const { base, last } = outlook;
  const { commit } = state.hardState;
  assert(first <= last.index + 1, '{}: first entry {} must leave no gap after {}', where, first, last.index);
  assert(first > base.index, '{}: first entry {} must be above the base {}', where, first, base.index);
  assert(first > commit, '{}: first entry {} must be above the stored commit {}', where, first, commit);
  // Entries that a snapshot covers are committed, even if the stored commit index lags behind.
  const { snapshotIndex = 0 } = outlook;
  assert(
    first > snapshotIndex,
    '{}: first entry {} must be above the snapshot {}',
    where,
    first,
    snapshotIndex,
  );
  let previous = first === last.index + 1 ? last : state.log.positionAt(first - 1);
  for (const entry of write.entries) {
    assert(
      entry.index === previous.index + 1,
      '{}: entry {} must follow {}',
      where,
      entry.index,
      previous.index,
    );
    checkPosition(entry, where);
    assert(
      entry.term >= previous.term && entry.timeMillis >= previous.timeMillis,
      `${where}: entry ${entry.index} (term ${entry.term}, time ${entry.timeMillis}) must not be below the previous one ` +
        `(term ${previous.term}, time ${previous.timeMillis})`,
    );
    previous = entry;
  }
  return { ...outlook, last: previous };
}

function checkCompactTo(
  state: GroupState,
  outlook: Outlook,
  write: GroupWrite,
  to: LogPosition,
  where: string,
): Outlook {
  const { base, last } = outlook;
  assert(
    to.index >= base.index,
    '{}: compaction to {} must not go back from {}',
    where,
    to.index,
    base.index,
  );
  assert(
    to.index <= last.index,
    '{}: compaction to {} must stay within the log, which ends at {}',
    where,
    to.index,
    last.index,
  );
  checkSamePosition(to, positionAfter(state, outlook, write, to.index), `${where}: compaction`);
  return { ...outlook, base: to };
}

/** The position that the log will have at an index between base and last, once this write is done. */
function positionAfter(state: GroupState, outlook: Outlook, write: GroupWrite, index: number): LogPosition {
  if (index === outlook.base.index) return outlook.base;
  const first = write.entries[0]?.index;
  const entry: Entry | undefined = first === undefined ? undefined : write.entries[index - first];
  return entry ?? state.log.positionAt(index);
}

function checkHardState(before: HardState, after: HardState, outlook: Outlook, where: string): void {
  const { term, vote, commit } = after;
  assert(
    isCount(term) && isCount(vote) && isCount(commit),
    '{}: the hard state must consist of safe integers >= 0',
    where,
  );
  assert(term >= before.term, '{}: term {} must not go back from {}', where, term, before.term);
  assert(
    term > before.term || before.vote === NO_NODE || vote === before.vote,
    '{}: the vote of term {} must stay {}, not {}',
    where,
    term,
    before.vote,
    vote,
  );
  assert(commit >= before.commit, '{}: commit {} must not go back from {}', where, commit, before.commit);
  assert(
    commit <= outlook.last.index,
    '{}: commit {} must be within the log, which ends at {}',
    where,
    commit,
    outlook.last.index,
  );
  assert(
    term >= outlook.last.term,
    '{}: term {} must reach that of the last entry, {}',
    where,
    term,
    outlook.last.term,
  );
}

function checkSnapshot(state: GroupState, outlook: Outlook, write: GroupWrite, where: string): Outlook {
  const meta = write.snapshot;
  if (meta === undefined) return outlook;
  checkPosition(meta, where);
  const { base, last, snapshotIndex } = outlook;
  assert(
    snapshotIndex === undefined || meta.index > snapshotIndex,
    '{}: the snapshot {} must be newer than the current one, {}',
    where,
    meta.index,
    snapshotIndex,
  );
  assert(
    meta.index >= base.index && meta.index <= last.index,
    '{}: the snapshot {} must be within the log, {}..{}',
    where,
    meta.index,
    base.index,
    last.index,
  );
  checkSamePosition(meta, positionAfter(state, outlook, write, meta.index), `${where}: snapshot`);
  checkStaged(meta, outlook, where);
  return { ...outlook, snapshotIndex: meta.index };
}

/** A snapshot may only take effect when all of its chunks are staged. */
function checkStaged(meta: SnapshotMeta, { staged }: Outlook, where: string): void {
  const { chunkCount, byteLength } = staged?.index === meta.index ? staged : { chunkCount: 0, byteLength: 0 };
  assert(
    meta.chunkCount === chunkCount && meta.byteLength === byteLength,
    `${where}: snapshot ${meta.index} must have all of its ${meta.chunkCount} chunks of ${meta.byteLength} bytes, ` +
      `not ${chunkCount} of ${byteLength}`,
  );
}

function checkPosition(position: LogPosition, where: string): void {
  assertIndex(position.index);
  assert(
    isCount(position.term),
    '{}: term {} at {} must be a safe integer',
    where,
    position.term,
    position.index,
  );
  assert(
    isCount(position.timeMillis),
    '{}: time {} at {} must be a safe integer',
    where,
    position.timeMillis,
    position.index,
  );
}

function checkSamePosition(given: LogPosition, actual: LogPosition, what: string): void {
  assert(
    given.term === actual.term && given.timeMillis === actual.timeMillis,
    `${what} to ${given.index} must name the position in the log (term ${actual.term}, time ${actual.timeMillis}), ` +
      `not (term ${given.term}, time ${given.timeMillis})`,
  );
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
