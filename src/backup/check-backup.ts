/** Reads all of a backup before anything is made of it: what it says of itself, and whether every file is that. Creates nothing. */
import type { RuleTable } from '../limiter/rules.ts';
import { META_GROUP } from '../meta/cluster-placement.ts';
import type { MetaRecord } from '../meta/cluster-state.ts';
import { KEY_HASH } from '../partition/hash.ts';
import { BackupError } from './backup-error.ts';
import { checkedContents } from './backup-files.ts';
import type { GroupContents } from './group-contents.ts';
import { type Manifest, readManifest } from './manifest.ts';

export interface CheckedBackup {
  readonly directory: string;
  readonly manifest: Manifest;
  /** The SHA-256 of the manifest, in hex. It names every other file by its own, so it stands for the whole backup. */
  readonly sha256: string;
  /** By which all groups of the new cluster decide. */
  readonly rules: RuleTable;
  /** By group: of the rules in its snapshot. Older ones are where a change was on its way. */
  readonly versions: ReadonlyMap<number, number>;
  readonly record: MetaRecord;
}

/** Reads all of a backup. @throws BackupError if anything in it is not what it should be */
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
  return { directory, manifest, sha256, rules, versions, record };
}
