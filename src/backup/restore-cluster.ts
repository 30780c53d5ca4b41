/**
 * Creates a new cluster whose groups begin with the snapshots of a backup. Nothing of it runs here; what it makes is no cluster
 * until the last step, so cut off at any point it can be repeated, and starts over.
 *
 * Group time goes on from the backup's: what passed since then is not credited, which errs towards denial. Each store begins
 * with the snapshot as it was written, byte for byte, so that its state has the hash that the backup tells. Entries follow, of a term
 * that nobody led, on every replica alike: the rules of the backup, where the partition had older ones; and unless nothing can be
 * missing, that history was lost (src/limiter/state/lost-history.ts). All founders hold them as committed, so no leader can begin without.
 */
import { createCluster } from '../config/cluster-directory.ts';
import { factsOf } from '../config/cluster-facts.ts';
import { type ClusterConfig, ConfigError, validateConfig } from '../config/config.ts';
import { encodeHistoryLost, encodeRules } from '../limiter/log/command.ts';
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
import { contentsReader, type GroupContents, metaHash } from './group-contents.ts';
import { type BackedUpGroup, type Manifest, readManifest } from './manifest.ts';
import { piecesOf, stageSnapshot, written } from './stage-snapshot.ts';

export interface CheckedBackup {
  readonly directory: string;
  readonly manifest: Manifest;
  /** By which all groups of the new cluster decide. */
  readonly rules: RuleTable;
  /** By group: of the rules in its snapshot. Older ones are where a change was on its way. */
  readonly versions: ReadonlyMap<number, number>;
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
  const contents = new Map<number, GroupContents>();
  for (const entry of manifest.groups) contents.set(entry.group, await checkedContents(directory, entry));
  const { record } = contents.get(META_GROUP) ?? {};
  if (record === undefined) throw new BackupError('damaged', `${directory} holds no rules`);
  const { rules } = record.state;
  const versions = new Map<number, number>();
  for (const { group, file } of manifest.groups) {
    const version = contents.get(group)?.rules?.version ?? 0;
    versions.set(group, version);
    if (version > rules.version || rules.version !== manifest.rulesVersion)
      throw new BackupError(
        'damaged',
        `${file} is by version ${version} of the rules; those of the backup are ${rules.version}, and ${manifest.rulesVersion} by its manifest`,
      );
  }
  return { directory, manifest, rules, versions, record };
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
        const isBehind = backup.versions.get(entry.group) !== backup.rules.version;
        const laterRules = isBehind ? backup.rules : undefined;
        await fillGroup(store, { entry, voters, chunks, laterRules, isComplete: init.isComplete });
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
