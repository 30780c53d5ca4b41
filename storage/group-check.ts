/**
 * What a write may do to a group: every rule as an assertion, checked before anything is changed.
 * Pure; a violation is a bug in the caller and must stop the process before it reaches the disk.
 */
import { assert } from '../raft/assert.ts';
import type { GroupWrite, StagedChunks } from '../raft/driver/store.ts';
import { NO_NODE, type Entry, type HardState, type LogPosition, type SnapshotMeta } from '../raft/types.ts';
import { type GroupState, type StagedSnapshot, stagedWith } from './group-state.ts';
import { CHUNK_MAX, assertGroup, assertIndex } from './keys.ts';

/** The group as it will be after the fields checked so far. */
interface Outlook {
  readonly base: LogPosition;
  readonly last: LogPosition;
  /** Index of the snapshot, or undefined if there is none. */
  readonly snapshotIndex: number | undefined;
  readonly staged: StagedSnapshot | undefined;
}

/** Throws InvariantError unless `write` may follow `state`. Changes nothing. */
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
    `${where}: a snapshot (${snapshotIndex}) covers the log up to its base ${base.index}`,
  );
}

function checkPlacement(state: GroupState, { placement }: GroupWrite, where: string): void {
  const before = state.placement;
  if (placement !== undefined) {
    assert(isCount(placement), `${where}: placement ${placement} is a safe integer >= 0`);
    assert(placement >= before, `${where}: placement ${placement} does not go back from ${before}`);
  }
  assert(
    !state.isRemoved || (placement !== undefined && placement > before),
    `${where}: it was removed by placement ${before} and comes back by a higher one, not by ${placement}`,
  );
}

function checkRemoval(state: GroupState, write: GroupWrite, where: string): void {
  const { placement, hardState, entries, install, compactTo, stage, snapshot } = write;
  assert(!state.isRemoved, `${where}: it was removed already, by placement ${state.placement}`);
  assert(
    placement !== undefined && placement > state.placement,
    `${where}: placement ${placement} removes only what was last offered under an older one, not ${state.placement}`,
  );
  assert(
    entries.length === 0 && [install, compactTo, stage, snapshot].every((field) => field === undefined),
    `${where}: a removal leaves nothing else to write`,
  );
  assert(
    hardState !== undefined && isCount(hardState.term) && hardState.term > state.hardState.term,
    `${where}: the term of a tombstone, ${hardState?.term}, is above ${state.hardState.term}, which may be promised away`,
  );
  assert(
    hardState.vote === NO_NODE && hardState.commit === 0,
    `${where}: a tombstone has no vote and no log, not vote ${hardState.vote} and commit ${hardState.commit}`,
  );
}

function checkStage(outlook: Outlook, stage: StagedChunks, where: string): Outlook {
  const { index, first, chunks } = stage;
  assertIndex(index);
  const { snapshotIndex, staged } = outlook;
  assert(
    snapshotIndex === undefined || index > snapshotIndex,
    `${where}: the staged snapshot ${index} is newer than the current one, ${snapshotIndex}`,
  );
  const before = staged?.index === index ? staged.chunkCount : 0;
  assert(
    chunks.length > 0 && (first === 0 || first === before) && first + chunks.length - 1 <= CHUNK_MAX,
    `${where}: chunk ${first} of snapshot ${index} is the first, or follows the ${before} staged ones`,
  );
  return { ...outlook, staged: stagedWith(staged, stage) };
}

function checkInstall(state: GroupState, outlook: Outlook, meta: SnapshotMeta, where: string): Outlook {
  checkPosition(meta, where);
  const { snapshotIndex } = outlook;
  assert(
    snapshotIndex === undefined || meta.index > snapshotIndex,
    `${where}: the installed snapshot ${meta.index} is newer than ${snapshotIndex}`,
  );
  assert(
    meta.index >= state.hardState.commit,
    `${where}: the installed snapshot ${meta.index} reaches the stored commit ${state.hardState.commit}`,
  );
  checkStaged(meta, outlook, where);
  return { base: meta, last: meta, snapshotIndex: meta.index, staged: undefined };
}

function checkEntries(state: GroupState, outlook: Outlook, write: GroupWrite, where: string): Outlook {
  const first = write.entries[0]?.index ?? 0;
  const { base, last } = outlook;
  const { commit } = state.hardState;
  assert(first <= last.index + 1, `${where}: first entry ${first} leaves no gap after ${last.index}`);
  assert(first > base.index, `${where}: first entry ${first} is above the base ${base.index}`);
  assert(first > commit, `${where}: first entry ${first} replaces nothing up to the stored commit ${commit}`);
  // What a snapshot covers is committed, also if the stored commit lags behind.
  const { snapshotIndex = 0 } = outlook;
  assert(
    first > snapshotIndex,
    `${where}: first entry ${first} replaces nothing up to snapshot ${snapshotIndex}`,
  );
  let previous = first === last.index + 1 ? last : state.log.positionAt(first - 1);
  for (const entry of write.entries) {
    assert(entry.index === previous.index + 1, `${where}: entry ${entry.index} follows ${previous.index}`);
    checkPosition(entry, where);
    assert(
      entry.term >= previous.term && entry.timeMillis >= previous.timeMillis,
      `${where}: entry ${entry.index} (term ${entry.term}, time ${entry.timeMillis}) is not below the one before ` +
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
  assert(to.index >= base.index, `${where}: compaction to ${to.index} does not go back from ${base.index}`);
  assert(to.index <= last.index, `${where}: compaction to ${to.index} stays within the log, ${last.index}`);
  checkSamePosition(to, positionAfter(state, outlook, write, to.index), `${where}: compaction`);
  return { ...outlook, base: to };
}

/** What the log will hold at an index between base and last, once this write is done. */
function positionAfter(state: GroupState, outlook: Outlook, write: GroupWrite, index: number): LogPosition {
  if (index === outlook.base.index) return outlook.base;
  const first = write.entries[0]?.index;
  const entry: Entry | undefined = first === undefined ? undefined : write.entries[index - first];
  return entry ?? state.log.positionAt(index);
}

function checkHardState(before: HardState, after: HardState, outlook: Outlook, where: string): void {
  const { term, vote, commit } = after;
  assert(isCount(term) && isCount(vote) && isCount(commit), `${where}: hard state is of safe integers >= 0`);
  assert(term >= before.term, `${where}: term ${term} does not go back from ${before.term}`);
  assert(
    term > before.term || before.vote === NO_NODE || vote === before.vote,
    `${where}: the vote of term ${term} stays ${before.vote}, not ${vote}`,
  );
  assert(commit >= before.commit, `${where}: commit ${commit} does not go back from ${before.commit}`);
  assert(commit <= outlook.last.index, `${where}: commit ${commit} is within the log, ${outlook.last.index}`);
  assert(term >= outlook.last.term, `${where}: term ${term} reaches the last entry's, ${outlook.last.term}`);
}

function checkSnapshot(state: GroupState, outlook: Outlook, write: GroupWrite, where: string): Outlook {
  const meta = write.snapshot;
  if (meta === undefined) return outlook;
  checkPosition(meta, where);
  const { base, last, snapshotIndex } = outlook;
  assert(
    snapshotIndex === undefined || meta.index > snapshotIndex,
    `${where}: the snapshot ${meta.index} is newer than the current one, ${snapshotIndex}`,
  );
  assert(
    meta.index >= base.index && meta.index <= last.index,
    `${where}: the snapshot ${meta.index} is within the log, ${base.index}..${last.index}`,
  );
  checkSamePosition(meta, positionAfter(state, outlook, write, meta.index), `${where}: snapshot`);
  checkStaged(meta, outlook, where);
  return { ...outlook, snapshotIndex: meta.index };
}

/** A snapshot takes effect with all of its chunks staged. */
function checkStaged(meta: SnapshotMeta, { staged }: Outlook, where: string): void {
  const { chunkCount, byteLength } = staged?.index === meta.index ? staged : { chunkCount: 0, byteLength: 0 };
  assert(
    meta.chunkCount === chunkCount && meta.byteLength === byteLength,
    `${where}: snapshot ${meta.index} has its ${meta.chunkCount} chunks of ${meta.byteLength} bytes, ` +
      `not ${chunkCount} of ${byteLength}`,
  );
}

function checkPosition(position: LogPosition, where: string): void {
  assertIndex(position.index);
  assert(isCount(position.term), `${where}: term ${position.term} at ${position.index} is a safe integer`);
  assert(
    isCount(position.timeMillis),
    `${where}: time ${position.timeMillis} at ${position.index} is one too`,
  );
}

function checkSamePosition(given: LogPosition, actual: LogPosition, what: string): void {
  assert(
    given.term === actual.term && given.timeMillis === actual.timeMillis,
    `${what} to ${given.index} names what the log holds there (term ${actual.term}, time ${actual.timeMillis}), ` +
      `not (term ${given.term}, time ${given.timeMillis})`,
  );
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
