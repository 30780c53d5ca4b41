/** What is said of a backup that was read, and of what became of it. */
import type { Manifest } from '../backup/manifest.ts';
import type { RestoredGroup } from '../backup/restore-founder.ts';

export function soundText({ clusterId, takenAt, groups }: Manifest): string {
  return `the backup is sound: of cluster ${clusterId}, taken ${takenAt}, ${groups.length} groups`;
}

export function groupText({ group, stateHash, backedUpHash }: RestoredGroup): string {
  const how = stateHash === backedUpHash ? 'as backed up' : 'without the tokens';
  return `group ${group}: state ${stateHash}, ${how}`;
}

/** Unless nothing can have been granted since. */
export const DENIED_TEXT =
  'everybody is denied for a full window of each rule from when its partition first runs';
