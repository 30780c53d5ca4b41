/** Checks a whole backup before it is used: reads the manifest and compares every file with it. Writes nothing. */
import type { RuleTable } from '../limiter/rules.ts';
import { META_GROUP } from '../meta/cluster-placement.ts';
import type { MetaRecord } from '../meta/cluster-state.ts';
import { KEY_HASH } from '../partition/hash.ts';
import { BackupError } from './backup-error.ts';
import { checkedContents } from './backup-files.ts';
import type { GroupContents } from './group-contents.ts';
import { type Manifest, readManifest } from './manifest.ts';

/** A backup that was checked. */
export interface CheckedBackup {
  readonly directory: string;
  readonly manifest: Manifest;
  /**
   * SHA-256 of the manifest in hex. The manifest contains those of all other files, so this one identifies the
   * backup.
   */
  readonly sha256: string;
  /** The rules that all groups of the new cluster will use. */
  readonly rules: RuleTable;
  /** Version of the rules in the snapshot of each group. Some may be older, if a change was in progress. */
  readonly versions: ReadonlyMap<number, number>;
  readonly record: MetaRecord;
}

/** Reads and checks a backup. @throws BackupError if anything in it is wrong */
export async function checkBackup(directory: string): Promise<CheckedBackup> {
  const { manifest, sha256 } = await readManifest(directory);
  if (manifest.hash !== KEY_HASH)
    throw new BackupError(
      'foreign',
      `its cluster maps users to partitions by '${manifest.hash}', not '${KEY_HASH}'`,
    );
  const contents = new Map<number, GroupContents>();
  for (const entry of manifest.groups) contents.set(entry.group, await checkedContents(directory, entry));
  const { record } = contents.get(META_GROUP) ?? {};
  if (record === undefined) throw new BackupError('damaged', `${directory} contains no rules`);
  const { rules } = record.state;
  const versions = new Map<number, number>();
  for (const { group, file } of manifest.groups) {
    const version = contents.get(group)?.rules?.version ?? 0;
    versions.set(group, version);
    if (version > rules.version || rules.version !== manifest.rulesVersion)
      throw new BackupError(
        'damaged',
        `${file} has version ${version} of the rules, but the backup has ${rules.version}, and its manifest says ${manifest.rulesVersion}`,
      );
  }
  return { directory, manifest, sha256, rules, versions, record };
}
