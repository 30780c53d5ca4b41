/**
 * What a founder of a restored cluster begins with: the groups that it votes in, in its database, which was empty. It follows from the
 * backup and from what the cluster is founded with, and from nothing else. So founders that are filled apart, each by a program of its
 * own, have the same bytes for the same group.
 *
 * Group time goes on from the backup's: what passed since then is not credited, which errs towards denial. Each store begins
 * with the snapshot as it was written, byte for byte, so that its state has the hash that the backup tells. Entries follow, of a term
 * that nobody led, on every replica alike: the rules of the backup, where the partition had older ones; and unless nothing can be
 * missing, that history was lost (src/limiter/state/lost-history.ts). All founders hold them as committed, so no leader can begin without.
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

export interface RestorationInit {
  readonly backup: CheckedBackup;
  /** The new cluster's, with as many partitions as the backup has. */
  readonly facts: ClusterFacts;
  /** The founders, and what all who fill one say alike of where they are. */
  readonly nodes: readonly Introduction[];
  /** Nothing was granted that the backup does not hold, and the old cluster will never run again. */
  readonly isComplete: boolean;
  readonly withoutTokens: boolean;
}

/** The same for all founders. */
export interface Restoration extends RestorationInit {
  /** What group 0 begins with. */
  readonly record: MetaRecord;
  /** The voters of each group, as the nodes of the new cluster will find them. */
  readonly votersOf: (group: number) => readonly NodeId[];
}

export interface RestoredGroup {
  readonly group: number;
  /** That of the snapshot as it was read back from the store of a founder, or for group 0 of what is taken over. */
  readonly stateHash: string;
  /** As the backup tells. Another one only for group 0 whose tokens were dropped. */
  readonly backedUpHash: string;
}

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

/** What the new cluster is to know of itself: its own nodes, and the rules and tokens of the old one. */
function restoredRecord({ backup, facts, nodes, withoutTokens }: RestorationInit, hash: Hash32): MetaRecord {
  const { replicas, partitions } = facts;
  // By the version of the backup, and not of this program: founders may be filled by programs of different ones.
  const { rules, definitions, document, tokens, clusterVersion } = backup.record.state;
  const create = { type: 'create', nodes, replicas, partitions, rules, clusterVersion } as const;
  const { record } = applyMetaCommand(undefined, create, hash);
  if (record === undefined) throw new ConfigError('nodes', 'make no cluster');
  const state = {
    ...record.state,
    ...(definitions !== undefined && { definitions }),
    ...(document !== undefined && { document }),
    ...(tokens !== undefined && !withoutTokens && { tokens }),
  };
  return { ...record, state };
}

export interface FounderInit {
  readonly nodeId: NodeId;
  /** The directory of its database, in which there is nothing yet. */
  readonly database: string;
  readonly restoration: Restoration;
  /** Is this group to be read back from the store, once it is filled? */
  readonly isDoubted: (group: number) => boolean;
  /** Told of each group that was read back. */
  readonly restored: (group: RestoredGroup) => void;
}

/** @throws BackupError if what was read back is not what the backup holds, or the errors of the database */
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
        throw new BackupError('damaged', `group ${group} was restored as ${stateHash}, not as ${expected}`);
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
  /** In force from the first decision on; undefined: those of the snapshot are. */
  readonly laterRules: RuleTable | undefined;
  readonly isComplete: boolean;
}

/** Writes the snapshot of one group, chunk by chunk, and then all that makes it the beginning of the group, in one write. */
export async function fillGroup(store: LogStore, filling: Filling): Promise<void> {
  const { entry, voters, chunks, laterRules, isComplete } = filling;
  const { group, index, term, timeMillis } = entry;
  const staged = await stageSnapshot(store, entry, chunks);
  // Group 0 grants nothing.
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

/** What a node will find there. */
async function hashIn(store: LogStore, { group, index }: BackedUpGroup): Promise<string> {
  const stored = await store.load(group);
  const reader = contentsReader(group);
  for (let chunk = 0; chunk < (stored?.snapshot?.chunkCount ?? 0); chunk += 1) {
    const data = await store.readSnapshotChunk(group, index, chunk);
    if (data !== undefined) reader.add(data);
  }
  return reader.complete().stateHash;
}
