/** `quorate backup`: takes one of a running cluster, and says what is in it. */
import { takeBackup } from '../backup/take-backup.ts';
import { clusterSource } from './cluster-source.ts';

export interface BackUpInit {
  readonly out: string;
  /** The URL of a node. */
  readonly node: string;
  readonly maxBytesPerSecond?: number;
  readonly json?: true;
  readonly print: (line: string) => void;
}

/** @throws BackupError, ClusterCommandError, and what the file system throws */
export async function backUp({ out, node, maxBytesPerSecond, json, print }: BackUpInit): Promise<void> {
  const manifest = await takeBackup({
    directory: out,
    source: clusterSource(node, maxBytesPerSecond),
    print: json === true ? () => undefined : print,
  });
  if (json === true) return print(JSON.stringify(manifest));
  const bytes = manifest.groups.reduce((sum, { fileBytes }) => sum + fileBytes, 0);
  print(
    `done: ${manifest.groups.length} groups by version ${manifest.rulesVersion} of the rules, ${bytes} bytes in ${out}`,
  );
  print('it holds the ids of users and digests of tokens: keep it as you keep the databases');
}
