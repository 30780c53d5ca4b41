/**
 * Creates a new cluster whose groups begin with the snapshots of a backup. Nothing of it runs here; what it makes is no cluster
 * until the last step, so cut off at any point it can be repeated, and starts over.
 *
 * Group time goes on from the backup's: what passed since then is not credited, which errs towards denial. Each store begins
 * with the snapshot as it was written, byte for byte, so that its state has the hash that the backup tells; and unless nothing
 * can be missing from it, one entry follows, of a term that nobody led, on every replica alike: history was lost
 * (src/limiter/state/lost-history.ts). All founders hold it as committed, so no leader can begin without it.
 */
import { createCluster } from '../config/cluster-directory.ts';
import { factsOf } from '../config/cluster-facts.ts';
import { type ClusterConfig, ConfigError, validateConfig } from '../config/config.ts';
import { encodeHistoryLost } from '../limiter/log/command.ts';
import type { RuleTable } from '../limiter/rules.ts';
import { META_GROUP, metaMembers, unlabelled } from '../meta/cluster-placement.ts';
import { encodeMeta } from '../meta/meta-form.ts';
import { labelsOf } from '../api/node-labels.ts';
import { VERSIONS } from '../api/versions.ts';
import { applyMetaCommand } from '../meta/meta-state.ts';
import type { MetaRecord } from '../meta/cluster-state.ts';
import { type Hash32, KEY_HASH, loadHash32 } from '../partition/hash.ts';
import { foundingPlacement } from '../partition/placement.ts';
import type { LogStore } from '../../raft/driver/store.ts';
import type { Entry, NodeId } from '../../raft/types.ts';
import { openStore } from '../../storage/open-store.ts';
import { BackupError } from './backup-error.ts';
import { checkedContents, readGroup } from './backup-files.ts';
import { contentsReader, metaHash } from './group-contents.ts';
import { type BackedUpGroup, type Manifest, readManifest } from './manifest.ts';
import { piecesOf, stageSnapshot, written } from './stage-snapshot.ts';

export interface CheckedBackup {
  readonly directory: string;
  readonly manifest: Manifest;
  readonly rules: RuleTable;
  readonly record: MetaRecord;
}

/** Reads all of a backup. @throws BackupError if anything in it is not what it should be */
export async function checkBackup(directory: string): Promise<CheckedBackup> {
  const manifest = await readManifest(directory);
  if (manifest.hash !== KEY_HASH)
    throw new BackupError(
      'foreign',
      `its cluster maps users to partitions by '${manifest.hash}', not '${KEY_HASH}'`,
    );
  let record: MetaRecord | undefined;
  let rules: RuleTable | undefined;
  for (const entry of manifest.groups) {
    const contents = await checkedContents(directory, entry);
    if (entry.group === META_GROUP) ({ record } = contents);
    else rules ??= contents.rules;
    const version = contents.rules?.version ?? (entry.group === META_GROUP ? manifest.rulesVersion : 0);
    if (version !== manifest.rulesVersion)
      throw new BackupError(
        'damaged',
        `${entry.file} is by version ${version} of the rules, not ${manifest.rulesVersion}`,
      );
  }
  if (record !== undefined && rules !== undefined) return { directory, manifest, rules, record };
  throw new BackupError('damaged', `${directory} holds no rules`);
}

export interface RestoreInit {
  readonly backup: CheckedBackup;
  /** Where the new cluster is to be. */
  readonly data: string;
  /** Of a new cluster, with an id of its own; its partitions and rules are those of the backup instead. */
  readonly config: ClusterConfig;
  /** Nothing was granted that the backup does not hold, and the old cluster will never run again. */
  readonly isComplete: boolean;
  readonly withoutTokens: boolean;
}

export interface RestoredGroup {
  readonly group: number;
  /** Of the snapshot as it was read back from the store of a founder, of group 0 what is taken over. */
  readonly stateHash: string;
  /** As the backup tells. Another one only for group 0 whose tokens were dropped. */
  readonly backedUpHash: string;
}

export interface Restored {
  readonly config: ClusterConfig;
  readonly groups: readonly RestoredGroup[];
}

/** @throws ConfigError if there is a cluster already, or the errors of the databases */
export async function restoreCluster(init: RestoreInit): Promise<Restored> {
  const { backup, data } = init;
  const { partitions } = backup.manifest;
  const { version: _, ...rules } = backup.rules;
  const config = validateConfig({ ...init.config, partitions, rules });
  const hash = await loadHash32();
  const members = membersOf(config, hash);
  const record = restoredRecord(init, config, hash);
  const restored = new Map<number, string>();
  const facts = factsOf(config);
  await createCluster(data, config, async (database, nodeId) => {
    const store = await openStore(database, { nodeId, facts });
    try {
      for (const entry of backup.manifest.groups) {
        const voters = members(entry.group);
        if (!voters.includes(nodeId)) continue;
        const chunks =
          entry.group === META_GROUP ? piecesOf(encodeMeta(record)) : readGroup(backup.directory, entry);
        await fillGroup(store, { entry, voters, chunks, isComplete: init.isComplete });
        if (!restored.has(entry.group)) restored.set(entry.group, await hashIn(store, entry));
      }
    } finally {
      await store.close();
    }
  });
  const groups = backup.manifest.groups.map(({ group, stateHash: backedUpHash }) => {
    const stateHash = restored.get(group) ?? '';
    const expected = group === META_GROUP ? metaHash(record) : backedUpHash;
    if (stateHash !== expected)
      throw new BackupError('damaged', `group ${group} was restored as ${stateHash}, not as ${expected}`);
    return { group, stateHash, backedUpHash };
  });
  return { config, groups };
}

/** The voters of each group, as the nodes of the new cluster will find them. */
function membersOf(config: ClusterConfig, hash: Hash32): (group: number) => readonly NodeId[] {
  const founders = config.founders.map(({ id }) => id);
  const placement = foundingPlacement(founders, config.partitions, config.replicas, hash);
  return (group) =>
    group === META_GROUP ? metaMembers(unlabelled(founders)).voters : (placement[group - 1] ?? []);
}

/** What the new cluster is to know of itself: its own nodes, and the rules and tokens of the old one. */
function restoredRecord(
  { backup, withoutTokens }: RestoreInit,
  config: ClusterConfig,
  hash: Hash32,
): MetaRecord {
  const nodes = config.founders.map((founder) => {
    const { http, peer, ...others } = config.nodes.find(({ id }) => id === founder.id) ?? {};
    const addresses = { ...(http !== undefined && { http }), ...(peer !== undefined && { peer }) };
    return { ...addresses, ...labelsOf(others), ...founder };
  });
  const { replicas, partitions } = config;
  const { rules, definitions, tokens } = backup.record.state;
  const create = {
    type: 'create',
    nodes,
    replicas,
    partitions,
    rules,
    clusterVersion: VERSIONS.max,
  } as const;
  const { record } = applyMetaCommand(undefined, create, hash);
  if (record === undefined) throw new ConfigError('nodes', 'make no cluster');
  const state = {
    ...record.state,
    ...(definitions !== undefined && { definitions }),
    ...(tokens !== undefined && !withoutTokens && { tokens }),
  };
  return { ...record, state };
}

interface Filling {
  readonly entry: BackedUpGroup;
  readonly voters: readonly NodeId[];
  readonly chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  readonly isComplete: boolean;
}

/** Writes the snapshot of one group, chunk by chunk, and then all that makes it the beginning of the group, in one write. */
export async function fillGroup(store: LogStore, filling: Filling): Promise<void> {
  const { entry, voters, chunks, isComplete } = filling;
  const { group, index, term, timeMillis } = entry;
  const staged = await stageSnapshot(store, entry, chunks);
  const lost: Entry = {
    index: index + 1,
    term: term + 1,
    timeMillis,
    kind: 'command',
    data: encodeHistoryLost(),
  };
  // Group 0 grants nothing.
  const entries = isComplete || group === META_GROUP ? [] : [lost];
  await written(store, {
    group,
    install: { index, term, timeMillis, voters, ...staged },
    entries,
    hardState: { term: term + entries.length, vote: 0, commit: index + entries.length },
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
