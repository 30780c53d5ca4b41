/**
 * Creates a new cluster whose groups begin with the snapshots of a backup. Nothing of it runs here; what it makes is no cluster
 * until the last step, so cut off at any point it can be repeated, and starts over.
 */
import { assert } from '../../raft/assert.ts';
import { labelsOf } from '../api/node-labels.ts';
import { createCluster } from '../config/cluster-directory.ts';
import { factsOf } from '../config/cluster-facts.ts';
import { type ClusterConfig, validateConfig } from '../config/config.ts';
import type { Introduction } from '../meta/cluster-state.ts';
import type { CheckedBackup } from './check-backup.ts';
import { fillFounder, restorationOf, type RestoredGroup } from './restore-founder.ts';

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

export interface Restored {
  readonly config: ClusterConfig;
  readonly groups: readonly RestoredGroup[];
}

/** @throws ConfigError if there is a cluster already, BackupError, or the errors of the databases */
export async function restoreCluster(init: RestoreInit): Promise<Restored> {
  const { backup, data, isComplete, withoutTokens } = init;
  const { partitions } = backup.manifest;
  const { version: _, ...rules } = backup.rules;
  const config = validateConfig({ ...init.config, partitions, rules });
  const facts = factsOf(config);
  const nodes = introductionsOf(config);
  const restoration = await restorationOf({ backup, facts, nodes, isComplete, withoutTokens });
  // By group: the state that was read back from the first founder that has it.
  const readBack = new Map<number, RestoredGroup>();
  await createCluster(data, config, async (database, nodeId) =>
    fillFounder({
      database,
      nodeId,
      restoration,
      isDoubted: (group) => !readBack.has(group),
      restored: (each) => void readBack.set(each.group, each),
    }),
  );
  const groups = [...readBack.values()].sort((a, b) => a.group - b.group);
  assert(groups.length === backup.manifest.groups.length, 'every group has founders that hold it');
  return { config, groups };
}

/** The founders, and where they are and stand. */
function introductionsOf({ founders, nodes }: ClusterConfig): Introduction[] {
  return founders.map((founder) => {
    const { http, peer, ...others } = nodes.find(({ id }) => id === founder.id) ?? {};
    const addresses = { ...(http !== undefined && { http }), ...(peer !== undefined && { peer }) };
    return { ...addresses, ...labelsOf(others), ...founder };
  });
}
