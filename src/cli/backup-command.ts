/** `quorate backup`: writes a backup of a running cluster into a directory, and prints what it contains. */
import { takeBackup } from '../backup/take-backup.ts';
import { clusterSource } from './cluster-source.ts';

/** What to back up, where to, and how fast. */
export interface BackUpInit {
  readonly out: string;
  /** The URL of a node of the cluster. */
  readonly node: string;
  readonly maxBytesPerSecond?: number;
  readonly json?: true;
  readonly print: (line: string) => void;
}

/** @throws BackupError, ClusterCommandError, and errors of the file system */
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
