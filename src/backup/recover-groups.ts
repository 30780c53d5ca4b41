/**
 * Recovers groups that have lost their quorum for good: one surviving node continues with them alone. This happens
 * offline, in the node's database, and is recorded there for good.
 *
 * Everything in this node's log counts as committed, to its end. An entry there may have been answered as a grant
 * by the lost nodes; one that was not errs towards denial. What the lost nodes committed beyond that is lost and
 * unknown. So an entry informs each partition that history was lost, and it denies everybody for one window
 * (src/limiter/state/lost-history.ts). The snapshot makes this node the only voter, in a term far above any that
 * the others can have reached: if one of them returns, it follows, or stops if it has newer entries. Until they
 * learn of that, two of them could still grant by themselves; that is why recovery must be requested explicitly.
 *
 * It recovers all groups or none. Each group is computed, staged as an invisible snapshot and read back; one batch
 * then activates all of them. A failure or crash before that batch changes nothing, and the next attempt starts
 * over.
 */
import { LimiterAssertionError } from '../limiter/assert.ts';
import { CommandDecodeError, decodeCommand, encodeHistoryLost } from '../limiter/log/command.ts';
import { InvalidSnapshotError } from '../limiter/state/snapshot-bytes.ts';
import { LimiterStateMachine } from '../limiter/state-machine.ts';
import { META_GROUP } from '../meta/cluster-placement.ts';
import { decodeMetaCommand, decodeMetaRecord, encodeMeta, MetaDecodeError } from '../meta/meta-form.ts';
import { applyMetaCommand } from '../meta/meta-state.ts';
import type { MetaRecord } from '../meta/cluster-state.ts';
import { loadHash32 } from '../partition/hash.ts';
import type { GroupWrite, LogStore } from '../../raft/driver/store.ts';
import { decodeConfig } from '../../raft/membership.ts';
import type { Entry, LogPosition, NodeId, StoredGroup } from '../../raft/types.ts';
import { BackupError } from './backup-error.ts';
import { contentsReader, metaHash } from './group-contents.ts';
import { recordIntent, settleRecord, RECOVERY_TERMS_AHEAD } from './recovered-record.ts';
import { piecesOf, stageSnapshot, written } from './stage-snapshot.ts';

/** The database of the surviving node. */
export interface SurvivingStore extends LogStore {
  /** All groups that were ever written. */
  groups(): readonly number[];
  termOf(group: number): number;
}

/** What `recoverGroups` needs. */
export interface RecoveryInit {
  readonly store: SurvivingStore;
  /** The data directory of the node; it holds the record of recoveries. */
  readonly directory: string;
  readonly node: NodeId;
  readonly founders: readonly NodeId[];
  readonly groups: readonly number[] | 'all';
  /** Wall clock time, for people. */
  readonly at: string;
}

/** A group that was recovered. */
export interface RecoveredGroup {
  readonly group: number;
  /** The voters before, as far as this node knew. */
  readonly votersBefore: readonly NodeId[];
  /** Where this node's log ended; `index` and `term` are where the group continues. */
  readonly lastIndex: number;
  readonly index: number;
  readonly term: number;
}

/**
 * Recovers groups. Resolves when all are recovered and recorded. If it throws, none is, unless the very last write
 * failed: then the next call, or the next start of the node, completes the record.
 *
 * @throws BackupError if this node does not hold a group, or one cannot be read; also errors of the disk
 */
export async function recoverGroups(init: RecoveryInit): Promise<readonly RecoveredGroup[]> {
  const { store, directory, at } = init;
  const termOf = (group: number): number => store.termOf(group);
  await settleRecord(directory, termOf);
  const held = await heldOf(init);
  const recovered: RecoveredGroup[] = [];
  const writes: GroupWrite[] = [];
  for (const [group, stored] of held) {
    const prepared = await prepare(init, group, stored);
    recovered.push(prepared.recovered);
    writes.push(prepared.write);
  }
  await recordIntent(
    directory,
    recovered.map(({ group, index, term }) => ({ group, index, term, at })),
  );
  await written(store, ...writes);
  await settleRecord(directory, termOf);
  return recovered;
}

/** The replicas of the named groups on this node. With `all`, groups that have moved away are left out. */
async function heldOf({ store, node, groups }: RecoveryInit): Promise<Map<number, StoredGroup>> {
  const held = new Map<number, StoredGroup>();
  for (const group of groups === 'all' ? store.groups() : groups) {
    const stored = await store.load(group);
    if (stored !== undefined && !stored.removed) held.set(group, stored);
    else if (groups !== 'all')
      throw new BackupError('foreign', `node ${node} holds no replica of group ${group}`);
  }
  if (held.size === 0) throw new BackupError('foreign', `node ${node} holds no group`);
  return held;
}

interface PreparedGroup {
  readonly recovered: RecoveredGroup;
  /** Activates what was staged. */
  readonly write: GroupWrite;
}

async function prepare(
  { store, node, founders }: RecoveryInit,
  group: number,
  stored: StoredGroup,
): Promise<PreparedGroup> {
  const { votersBefore, epoch } = configIn(stored, founders);
  const last = stored.entries.at(-1) ?? stored.base;
  const index = last.index + 1;
  const term = Math.max(stored.hardState.term, last.term) + RECOVERY_TERMS_AHEAD;
  const position: LogPosition = { index, term, timeMillis: last.timeMillis };
  const { chunks, hash } = await stateAfter(store, group, stored, position);
  const staged = await stageSnapshot(store, { group, index }, chunks);
  const found = await hashOf(store, group, index, staged.chunkCount);
  if (found !== hash)
    throw new BackupError(
      'damaged',
      `group ${group} was written with hash ${hash}, but reads back as ${found}`,
    );
  const write: GroupWrite = {
    group,
    entries: [],
    install: { ...position, voters: [node], ...staged, ...(epoch > 0 && { epoch }) },
    hardState: { term, vote: 0, commit: index },
  };
  return { recovered: { group, votersBefore, lastIndex: last.index, index, term }, write };
}

/** Voters and epoch by the last configuration in the log, committed or not. */
function configIn(
  { snapshot, entries }: StoredGroup,
  founders: readonly NodeId[],
): { readonly votersBefore: readonly NodeId[]; readonly epoch: number } {
  const configs = entries.filter(({ kind }) => kind === 'config').map(({ data }) => decodeConfig(data));
  const { voters: votersBefore, epoch = 0 } = configs.at(-1) ?? snapshot ?? { voters: founders };
  return { votersBefore: [...votersBefore].sort((a, b) => a - b), epoch };
}

/** The state that the group continues with, and its hash as `contentsReader` computes it. */
interface RecoveredState {
  readonly chunks: Iterable<Uint8Array>;
  readonly hash: string;
}

const UNREADABLE = [CommandDecodeError, InvalidSnapshotError, LimiterAssertionError, MetaDecodeError];

/** @throws BackupError if the log or snapshot cannot be applied */
async function stateAfter(
  store: LogStore,
  group: number,
  stored: StoredGroup,
  position: LogPosition,
): Promise<RecoveredState> {
  try {
    return group === META_GROUP
      ? await metaAfter(store, stored)
      : await partitionAfter(store, group, stored, position);
  } catch (error) {
    if (UNREADABLE.some((kind) => error instanceof kind))
      throw new BackupError('damaged', `group ${group} cannot be recovered: ${(error as Error).message}`);
    throw error;
  }
}

async function partitionAfter(
  store: LogStore,
  group: number,
  stored: StoredGroup,
  position: LogPosition,
): Promise<RecoveredState> {
  const machine = new LimiterStateMachine();
  if (stored.snapshot !== undefined) {
    const { index, chunkCount } = stored.snapshot;
    const restore = machine.restore();
    for await (const chunk of chunksOf(store, group, index, chunkCount)) restore.add(chunk);
    restore.complete();
    restore.install();
  }
  for (const entry of commandsAfterSnapshot(stored)) machine.apply(decodeCommand(entry.data), entry);
  machine.apply(decodeCommand(encodeHistoryLost()), position);
  const snapshot = machine.snapshot();
  const chunks = (function* () {
    for (let chunk = snapshot.next(); chunk !== undefined; chunk = snapshot.next()) yield chunk;
  })();
  return { chunks, hash: machine.hash() };
}

async function metaAfter(store: LogStore, stored: StoredGroup): Promise<RecoveredState> {
  const hash32 = await loadHash32();
  let record: MetaRecord | undefined;
  if (stored.snapshot !== undefined) {
    const { index, chunkCount } = stored.snapshot;
    const chunks: Uint8Array[] = [];
    for await (const chunk of chunksOf(store, META_GROUP, index, chunkCount)) chunks.push(chunk);
    record = decodeMetaRecord(chunks);
  }
  for (const { data } of commandsAfterSnapshot(stored))
    ({ record } = applyMetaCommand(record, decodeMetaCommand(data), hash32));
  if (record === undefined)
    throw new BackupError(
      'damaged',
      'this node holds no cluster record in group 0, so nothing can be recovered',
    );
  return { chunks: piecesOf(encodeMeta(record)), hash: metaHash(record) };
}

/** Commands that the snapshot does not contain. A node keeps older entries as well, for followers that lag. */
function commandsAfterSnapshot({ snapshot, entries }: StoredGroup): readonly Entry[] {
  const through = snapshot?.index ?? 0;
  return entries.filter(({ kind, index }) => kind === 'command' && index > through);
}

async function* chunksOf(
  store: LogStore,
  group: number,
  index: number,
  chunkCount: number,
): AsyncGenerator<Uint8Array> {
  for (let chunk = 0; chunk < chunkCount; chunk += 1) {
    const data = await store.readSnapshotChunk(group, index, chunk);
    if (data === undefined)
      throw new BackupError('damaged', `chunk ${chunk} of snapshot ${index} of group ${group} is missing`);
    yield data;
  }
}

/** The hash of the staged snapshot, as a replica will read it. */
async function hashOf(store: LogStore, group: number, index: number, chunkCount: number): Promise<string> {
  const reader = contentsReader(group);
  for await (const chunk of chunksOf(store, group, index, chunkCount)) reader.add(chunk);
  return reader.complete().stateHash;
}
