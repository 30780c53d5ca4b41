/**
 * `quorate backup` writes a backup of a running cluster into a directory. `quorate restore` checks a backup, creates a
 * new cluster from it, and says what that means for grants.
 */
import type { Manifest } from '../backup/manifest.ts';
import type { RestoredGroup } from '../backup/restore-founder.ts';
import { checkBackup } from '../backup/check-backup.ts';
import { restoreCluster } from '../backup/restore-cluster.ts';
import { readCluster } from '../config/cluster-directory.ts';
import { ConfigError } from '../config/config.ts';
import { writeKnownMembers } from '../node/member-cache.ts';
import type { RestoreOptions } from './backup-program.ts';
import { keepApart, makeAllCertificates } from './make-certificates.ts';
import { dataText, newClusterConfig } from './new-cluster.ts';
import { contentsText, takeBackup } from '../backup/take-backup.ts';
import { clusterSource } from './cluster-source.ts';

/** The cluster to back up, the directory for the backup, and the speed. */
export interface BackUpInit {
  readonly out: string;
  /** The URL of a node of the cluster. */
  readonly node: string;
  readonly maxBytesPerSecond?: number;
  readonly json?: true;
  readonly print: (line: string) => void;
}

/**
 * Writes the backup, and prints what it contains. @throws BackupError, ClusterCommandError, and errors of the file
 * system
 */
export async function backUp({ out, node, maxBytesPerSecond, json, print }: BackUpInit): Promise<void> {
  const manifest = await takeBackup({
    directory: out,
    source: clusterSource(node, maxBytesPerSecond),
    print: json === true ? () => undefined : print,
  });
  if (json === true) return print(JSON.stringify(manifest));
  const bytes = manifest.groups.reduce((sum, { fileBytes }) => sum + fileBytes, 0);
  print(
    `done: ${manifest.groups.length} groups with version ${manifest.rulesVersion} of the rules, ${bytes} bytes in ${out}`,
  );
  print('it contains user ids and digests of tokens: protect it like the databases');
}

/** Checks the backup and creates the cluster. @throws BackupError, ConfigError, and errors of the databases */
export async function restore(
  options: RestoreOptions & { readonly print: (line: string) => void },
): Promise<void> {
  const { from, data, json, print } = options;
  if (options.verify !== true && (await readCluster(data)) !== undefined)
    throw new ConfigError(data, 'holds a cluster already; use another directory');
  const say = json === true ? (): void => undefined : print;
  const backup = await checkBackup(from);
  const { manifest } = backup;
  say(soundText(manifest));
  if (options.verify === true) {
    if (json === true) print(JSON.stringify(manifest));
    else
      for (const { group, stateHash } of manifest.groups) print(`${contentsText(group)}: state ${stateHash}`);
    return;
  }
  const isComplete = options.oldClusterIsGoneAndLogComplete === true;
  const { config, groups } = await restoreCluster({
    backup,
    data,
    config: newClusterConfig(options),
    isComplete,
    withoutTokens: options.withoutTokens === true,
    filled: writeKnownMembers,
  });
  if (options.tls === true) await makeAllCertificates(data, config);
  const isSaturated = !isComplete;
  if (json === true) {
    print(JSON.stringify({ clusterId: config.clusterId, from: manifest.clusterId, isSaturated, groups }));
    return;
  }
  for (const group of groups) print(groupText(group));
  print(
    isComplete
      ? 'it continues where the backup ends: if the old cluster granted anything since, or runs again, limits are exceeded'
      : DENIED_TEXT,
  );
  print(`created a cluster of ${config.nodes.length} nodes in ${data}; run each of them with`);
  for (const { id } of config.nodes) print(`  npx quorate node ${id}${dataText(data)}`);
  if (options.tls === true) print(keepApart(data));
}

/** Says that a backup is sound, and what it contains. */
export function soundText({ clusterId, takenAt, groups }: Manifest): string {
  return `the backup is sound: of cluster ${clusterId}, taken ${takenAt}, ${groups.length} groups`;
}

/** Says how a group was restored, and its hash. */
export function groupText({ group, stateHash, backedUpHash }: RestoredGroup): string {
  const how = stateHash === backedUpHash ? 'as backed up' : 'without the tokens';
  return `${contentsText(group)}: state ${stateHash}, ${how}`;
}

/** Printed unless the operator has confirmed that nothing was granted after the backup. */
export const DENIED_TEXT =
  'all requests are denied for a full window of each rule after its partition starts';
