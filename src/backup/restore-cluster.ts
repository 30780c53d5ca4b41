/**
 * Creates a new cluster on this machine whose groups start from the snapshots of a backup. It starts no node. The
 * result is not a cluster before the last step, so an interrupted restore can be repeated and starts over.
 */
import { assert } from '../../raft/assert.ts';
import { labelsOf } from '../api/node-address.ts';
import { createCluster } from '../config/cluster-directory.ts';
import { factsOf } from '../config/cluster-facts.ts';
import { type ClusterConfig, validateConfig } from '../config/config.ts';
import type { Introduction, MetaState } from '../meta/cluster-state.ts';
import type { CheckedBackup } from './check-backup.ts';
import { fillFounder, restorationOf, type RestoredGroup } from './restore-founder.ts';

/** What `restoreCluster` needs. */
export interface RestoreInit {
  readonly backup: CheckedBackup;
  /** Directory of the new cluster. */
  readonly data: string;
  /** Configuration of the new cluster, with its own id. Partitions and rules are taken from the backup instead. */
  readonly config: ClusterConfig;
  /**
   * The operator asserts that nothing was granted after the backup, and that the old cluster will never run again.
   */
  readonly isComplete: boolean;
  readonly withoutTokens: boolean;
  /** Called with each filled database and its state of group 0, before the result counts as a cluster. */
  readonly filled: (database: string, state: MetaState) => Promise<void>;
}

/** A cluster that was restored. */
export interface Restored {
  readonly config: ClusterConfig;
  readonly groups: readonly RestoredGroup[];
}

/** Restores a backup. @throws ConfigError if there is a cluster already, BackupError, or errors of the databases */
export async function restoreCluster(init: RestoreInit): Promise<Restored> {
  const { backup, data, isComplete, withoutTokens, filled } = init;
  const { partitions } = backup.manifest;
  const { version: _, ...rules } = backup.rules;
  const config = validateConfig({ ...init.config, partitions, rules });
  const facts = factsOf(config);
  const nodes = introductionsOf(config);
  const restoration = await restorationOf({ backup, facts, nodes, isComplete, withoutTokens });
  // The state of each group, read back from the first founder that has it.
  const readBack = new Map<number, RestoredGroup>();
  await createCluster(data, config, async (database, nodeId) => {
    await fillFounder({
      database,
      nodeId,
      restoration,
      isDoubted: (group) => !readBack.has(group),
      restored: (each) => void readBack.set(each.group, each),
    });
    await filled(database, restoration.record.state);
  });
  const groups = [...readBack.values()].sort((a, b) => a.group - b.group);
  assert(groups.length === backup.manifest.groups.length, 'every group has founders that hold it');
  return { config, groups };
}

/** The founders with their addresses and labels. */
function introductionsOf({ founders, nodes }: ClusterConfig): Introduction[] {
  return founders.map((founder) => {
    const { http, peer, ...others } = nodes.find(({ id }) => id === founder.id) ?? {};
    const addresses = { ...(http !== undefined && { http }), ...(peer !== undefined && { peer }) };
    return { ...addresses, ...labelsOf(others), ...founder };
  });
}
