/** `quorate restore`: checks a backup, creates a new cluster from it, and says what that means for grants. */
import { checkBackup } from '../backup/check-backup.ts';
import { restoreCluster } from '../backup/restore-cluster.ts';
import { writeKnownMembers } from '../node/member-cache.ts';
import { readCluster } from '../config/cluster-directory.ts';
import { ConfigError } from '../config/config.ts';
import type { RestoreOptions } from './backup-program.ts';
import { keepApart, makeAllCertificates } from './make-certificates.ts';
import { dataText, newClusterConfig } from './new-cluster.ts';
import { DENIED_TEXT, groupText, soundText } from './restored-text.ts';

/** @throws BackupError, ConfigError, and errors of the databases */
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
    else for (const { group, stateHash } of manifest.groups) print(`group ${group}: state ${stateHash}`);
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
