/**
 * Fills the database of one founder of a restored cluster with the groups that it votes in. The result depends only
 * on the backup and the configuration of the new cluster. So founders that are filled by separate programs get the
 * same bytes for the same group.
 *
 * Group time continues from the backup; the time since then is not credited, which errs towards denial. Each store
 * starts with the snapshot byte for byte, so its state has the hash in the backup. Entries follow, of a term that
 * nobody has led, the same on every replica: the rules of the backup, if the partition had older ones; and, unless
 * the backup is complete, that history was lost (src/limiter/state/lost-history.ts). All founders hold them as
 * committed, so no leader can start without them.
 */
import type { LogStore } from '../../raft/driver/store.ts';
import type { Entry, NodeId } from '../../raft/types.ts';
import type { ClusterFacts } from '../../storage/identity.ts';
import { openStore } from '../../storage/open-store.ts';
import { ConfigError } from '../config/config.ts';
import { encodeHistoryLost, encodeRules } from '../limiter/log/command.ts';
import type { RuleTable } from '../limiter/rules.ts';
import { META_GROUP, metaMembers, unlabelled } from '../meta/cluster-placement.ts';
import type { Introduction, MetaRecord } from '../meta/cluster-state.ts';
import { encodeMeta } from '../meta/meta-form.ts';
import { applyMetaCommand } from '../meta/meta-state.ts';
import { type Hash32, loadHash32 } from '../partition/hash.ts';
import { foundingPlacement } from '../partition/placement.ts';
import { BackupError } from './backup-error.ts';
import { readGroup } from './backup-files.ts';
import type { CheckedBackup } from './check-backup.ts';
import { contentsReader, metaHash } from './group-contents.ts';
import type { BackedUpGroup } from './manifest.ts';
import { piecesOf, stageSnapshot, written } from './stage-snapshot.ts';

/** What all founders are filled from. */
export interface RestorationInit {
  readonly backup: CheckedBackup;
  /** The facts of the new cluster, which has as many partitions as the backup. */
  readonly facts: ClusterFacts;
  /** The founders with their addresses and labels; the same for every founder. */
  readonly nodes: readonly Introduction[];
  /**
   * The operator asserts that nothing was granted after the backup, and that the old cluster will never run again.
   */
  readonly isComplete: boolean;
  readonly withoutTokens: boolean;
}

/** The same for all founders. */
export interface Restoration extends RestorationInit {
  /** The first record of group 0. */
  readonly record: MetaRecord;
  /** The voters of each group, as the nodes of the new cluster will compute them. */
  readonly votersOf: (group: number) => readonly NodeId[];
}

/** A group that was restored. */
export interface RestoredGroup {
  readonly group: number;
  /** Hash of the snapshot as read back from a founder's store; for group 0 of the part that is taken over. */
  readonly stateHash: string;
  /** The hash in the backup. It differs only for group 0 when the tokens were dropped. */
  readonly backedUpHash: string;
}

/** Computes what all founders are filled from. */
export async function restorationOf(init: RestorationInit): Promise<Restoration> {
  const hash = await loadHash32();
  const founders = init.facts.founders.map(({ id }) => id);
  const placement = foundingPlacement(founders, init.facts.partitions, init.facts.replicas, hash);
  const metaVoters = metaMembers(unlabelled(founders)).voters;
  return {
    ...init,
    record: restoredRecord(init, hash),
    votersOf: (group) => (group === META_GROUP ? metaVoters : (placement[group - 1] ?? [])),
  };
}

/** The record of group 0: the nodes of the new cluster, and the rules and tokens of the old one. */
function restoredRecord({ backup, facts, nodes, withoutTokens }: RestorationInit, hash: Hash32): MetaRecord {
  const { replicas, partitions } = facts;
  // By the cluster version of the backup, not of this program, as founders may be filled by different program
  // versions.
  const { rules, definitions, document, tokens, clusterVersion } = backup.record.state;
  const create = { type: 'create', nodes, replicas, partitions, rules, clusterVersion } as const;
  const { record } = applyMetaCommand(undefined, create, hash);
  if (record === undefined) throw new ConfigError('nodes', 'cannot form a cluster');
  const state = {
    ...record.state,
    ...(definitions !== undefined && { definitions }),
    ...(document !== undefined && { document }),
    ...(tokens !== undefined && !withoutTokens && { tokens }),
  };
  return { ...record, state };
}

/** What `fillFounder` needs. */
export interface FounderInit {
  readonly nodeId: NodeId;
  /** Directory of its database, which is empty. */
  readonly database: string;
  readonly restoration: Restoration;
  /** Whether this group has to be read back from the store. */
  readonly isDoubted: (group: number) => boolean;
  /** Called with each group that was read back. */
  readonly restored: (group: RestoredGroup) => void;
}

/**
 * Fills the database of a founder. @throws BackupError if what is read back differs from the backup; also errors of
 * the database
 */
export async function fillFounder(init: FounderInit): Promise<void> {
  const { nodeId, database, restoration, isDoubted, restored } = init;
  const { backup, facts, record, votersOf, isComplete } = restoration;
  const store = await openStore(database, { nodeId, facts });
  try {
    for (const entry of backup.manifest.groups) {
      const { group, stateHash: backedUpHash } = entry;
      const voters = votersOf(group);
      if (!voters.includes(nodeId)) continue;
      const chunks = group === META_GROUP ? piecesOf(encodeMeta(record)) : readGroup(backup.directory, entry);
      const isBehind = backup.versions.get(group) !== backup.rules.version;
      const laterRules = isBehind ? backup.rules : undefined;
      await fillGroup(store, { entry, voters, chunks, laterRules, isComplete });
      if (!isDoubted(group)) continue;
      const stateHash = await hashIn(store, entry);
      const expected = group === META_GROUP ? metaHash(record) : backedUpHash;
      if (stateHash !== expected)
        throw new BackupError(
          'damaged',
          `group ${group} was restored with hash ${stateHash}, not ${expected}`,
        );
      restored({ group, stateHash, backedUpHash });
    }
  } finally {
    await store.close();
  }
}

interface Filling {
  readonly entry: BackedUpGroup;
  readonly voters: readonly NodeId[];
  readonly chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  /** Rules to use from the first decision on; undefined: those in the snapshot. */
  readonly laterRules: RuleTable | undefined;
  readonly isComplete: boolean;
}

/** Writes the snapshot of one group chunk by chunk, and then activates it in one write. */
export async function fillGroup(store: LogStore, filling: Filling): Promise<void> {
  const { entry, voters, chunks, laterRules, isComplete } = filling;
  const { group, index, term, timeMillis } = entry;
  const staged = await stageSnapshot(store, entry, chunks);
  // Group 0 grants nothing, so it has nothing to deny.
  const isSaturated = !isComplete && group !== META_GROUP;
  const commands = [
    ...(laterRules === undefined ? [] : [encodeRules(laterRules)]),
    ...(isSaturated ? [encodeHistoryLost()] : []),
  ];
  const entries = commands.map((data, i): Entry => {
    return { index: index + 1 + i, term: term + 1, timeMillis, kind: 'command', data };
  });
  await written(store, {
    group,
    install: { index, term, timeMillis, voters, ...staged },
    entries,
    hardState: { term: entries.at(-1)?.term ?? term, vote: 0, commit: index + entries.length },
  });
}

/** The hash of the group as a node will read it. */
async function hashIn(store: LogStore, { group, index }: BackedUpGroup): Promise<string> {
  const stored = await store.load(group);
  const reader = contentsReader(group);
  for (let chunk = 0; chunk < (stored?.snapshot?.chunkCount ?? 0); chunk += 1) {
    const data = await store.readSnapshotChunk(group, index, chunk);
    if (data !== undefined) reader.add(data);
  }
  return reader.complete().stateHash;
}
