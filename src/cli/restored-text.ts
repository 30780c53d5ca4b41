/** What commands print about a backup and the groups restored from it. */
import type { Manifest } from '../backup/manifest.ts';
import type { RestoredGroup } from '../backup/restore-founder.ts';

/** Says that a backup is sound, and what it contains. */
export function soundText({ clusterId, takenAt, groups }: Manifest): string {
  return `the backup is sound: of cluster ${clusterId}, taken ${takenAt}, ${groups.length} groups`;
}

/** Says how a group was restored, and its hash. */
export function groupText({ group, stateHash, backedUpHash }: RestoredGroup): string {
  const how = stateHash === backedUpHash ? 'as backed up' : 'without the tokens';
  return `group ${group}: state ${stateHash}, ${how}`;
}

/** Printed unless the operator has confirmed that nothing was granted after the backup. */
export const DENIED_TEXT =
  'all requests are denied for a full window of each rule after its partition starts';
