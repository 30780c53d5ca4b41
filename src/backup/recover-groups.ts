/**
 * Lets one survivor go on alone with groups that lost their quorum for good: offline, in its database, and said in it for ever.
 *
 * What this node holds of the log is taken as committed, to its end: an entry may have been told as a grant by those that
 * are gone, and one that was not errs towards denial. What they committed beyond that is lost, and nobody can say what it was.
 * So each partition is told, in an entry that its snapshot covers, that history was lost, and saturates everybody for a window
 * (src/limiter/state/lost-history.ts). The snapshot makes this node the only voter, in a term far above any that the others
 * can have reached: should one of them come back after all, it follows, or stops if it knows of more. Until it has heard
 * that, two of them could still grant by themselves: which is why this has to be asked for in so many words.
 */
import { InvalidSnapshotError } from '../limiter/state/snapshot-bytes.ts';
import { decodeCommand, encodeHistoryLost } from '../limiter/log/command.ts';
import { LimiterStateMachine } from '../limiter/state-machine.ts';
import { META_GROUP } from '../meta/cluster-placement.ts';
import { decodeMetaCommand, decodeMetaRecord, encodeMeta } from '../meta/meta-form.ts';
import { applyMetaCommand } from '../meta/meta-state.ts';
import type { MetaRecord } from '../meta/cluster-state.ts';
import { type Hash32, loadHash32 } from '../partition/hash.ts';
import type { LogStore } from '../../raft/driver/store.ts';
import { decodeConfig } from '../../raft/membership.ts';
import type { Entry, LogPosition, NodeId, StoredGroup } from '../../raft/types.ts';
import { BackupError } from './backup-error.ts';
import { stageSnapshot, written } from './stage-snapshot.ts';

/** No election that the others can still have held comes near. */
const TERMS_AHEAD = 1_000_000;
const PIECE_BYTES = 32 << 10;

export interface RecoveredGroup {
  readonly group: number;
  /** Who had a vote before, as far as this node knew. */
  readonly votersBefore: readonly NodeId[];
  /** Where the log of this node ended, and where the group begins again. */
  readonly lastIndex: number;
  readonly index: number;
  readonly term: number;
}

/** @throws BackupError if this node holds no such group */
export async function recoverGroup(
  store: LogStore,
  init: { readonly group: number; readonly node: NodeId; readonly founders: readonly NodeId[] },
): Promise<RecoveredGroup> {
  const { group, node, founders } = init;
  const stored = await store.load(group);
  if (stored === undefined || stored.removed)
    throw new BackupError('foreign', `node ${node} holds no replica of group ${group}`);
  const { votersBefore, epoch } = configIn(stored, founders);
  const last = stored.entries.at(-1) ?? stored.base;
  const position: LogPosition = {
    index: last.index + 1,
    term: Math.max(stored.hardState.term, last.term) + TERMS_AHEAD,
    timeMillis: last.timeMillis,
  };
  const before = await chunksOf(store, group, stored);
  const chunks =
    group === META_GROUP
      ? metaAfter(before, stored.entries, await loadHash32())
      : partitionAfter(before, stored.entries, position);
  const { index, term } = position;
  const staged = await stageSnapshot(store, { group, index }, chunks);
  await written(store, {
    group,
    entries: [],
    install: { ...position, voters: [node], ...staged, ...(epoch > 0 && { epoch }) },
    hardState: { term, vote: 0, commit: index },
  });
  return { group, votersBefore, lastIndex: last.index, index, term };
}

/** By the last configuration in the log, whether it was committed or not. */
function configIn(
  { snapshot, entries }: StoredGroup,
  founders: readonly NodeId[],
): { readonly votersBefore: readonly NodeId[]; readonly epoch: number } {
  const configs = entries.filter(({ kind }) => kind === 'config').map(({ data }) => decodeConfig(data));
  const { voters: votersBefore, epoch = 0 } = configs.at(-1) ?? snapshot ?? { voters: founders };
  return { votersBefore, epoch };
}

async function chunksOf(store: LogStore, group: number, { snapshot }: StoredGroup): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for (let chunk = 0; chunk < (snapshot?.chunkCount ?? 0); chunk += 1) {
    const data = await store.readSnapshotChunk(group, snapshot?.index ?? 0, chunk);
    if (data === undefined) throw new InvalidSnapshotError(`chunk ${chunk} of group ${group} is missing`);
    chunks.push(data);
  }
  return chunks;
}

function partitionAfter(
  before: readonly Uint8Array[],
  entries: readonly Entry[],
  position: LogPosition,
): Uint8Array[] {
  const machine = new LimiterStateMachine();
  if (before.length > 0) {
    const restore = machine.restore();
    for (const chunk of before) restore.add(chunk);
    restore.complete();
    restore.install();
  }
  for (const entry of entries) if (entry.kind === 'command') machine.apply(decodeCommand(entry.data), entry);
  machine.apply(decodeCommand(encodeHistoryLost()), position);
  const snapshot = machine.snapshot();
  const chunks: Uint8Array[] = [];
  for (let chunk = snapshot.next(); chunk !== undefined; chunk = snapshot.next()) chunks.push(chunk);
  return chunks;
}

function metaAfter(before: readonly Uint8Array[], entries: readonly Entry[], hash: Hash32): Uint8Array[] {
  let record: MetaRecord | undefined = before.length === 0 ? undefined : decodeMetaRecord(before);
  for (const entry of entries)
    if (entry.kind === 'command')
      ({ record } = applyMetaCommand(record, decodeMetaCommand(entry.data), hash));
  const bytes = encodeMeta(record ?? null);
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) chunks.push(bytes.slice(at, at + PIECE_BYTES));
  return chunks;
}
