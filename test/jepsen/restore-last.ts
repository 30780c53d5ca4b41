/**
 * Restores the last finished backup of a run whose nodes have stopped, sends requests to it, and saves the answers in
 * the run's folder.
 */
import { existsSync } from 'node:fs';
import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isFinished } from './backup-history.ts';
import type { ClusterUnderTest } from './cluster-under-test.ts';
import { readHistory } from './history-file.ts';
import { restoreAndAsk } from './restored-cluster.ts';
import { BACKUPS_FOLDER, HISTORY_FILE, RESTORED_FILE, RESTORED_LOGS_FOLDER } from './run-folder.ts';
import { spentSubjects } from './spent-subjects.ts';

interface RestoreLastInit {
  readonly cluster: ClusterUnderTest;
  /** The folder of the run. */
  readonly folder: string;
  readonly mutant: string | undefined;
}

export async function restoreLast({ cluster, folder, mutant }: RestoreLastInit): Promise<void> {
  const { history, joint, backups } = await readHistory(join(folder, HISTORY_FILE));
  const last = backups.filter(isFinished).at(-1);
  if (last === undefined) return;
  // Inside the cluster's directory, so that the clean-up after a killed run removes it as well.
  const data = join(cluster.directory, 'restored');
  const restoration = await restoreAndAsk({
    folder: join(folder, BACKUPS_FOLDER),
    directory: last.directory,
    data,
    subjects: spentSubjects(history, joint, last),
    mutant,
  });
  const logs = join(data, 'logs');
  if (existsSync(logs)) await cp(logs, join(folder, RESTORED_LOGS_FOLDER), { recursive: true });
  await writeFile(join(folder, RESTORED_FILE), JSON.stringify(restoration));
}
