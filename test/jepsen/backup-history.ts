/**
 * The events of the client that takes backups, one per backup, and their form as lines of a history. Judges nothing.
 */
import { encodeEnding, type Ending, endingIn, type Line } from './history-line.ts';

/** One group in the manifest of a backup. Group 0 is the group of the cluster, p + 1 that of partition p. */
export interface GroupReported {
  readonly group: number;
  readonly index: number;
  readonly term: number;
  /** Group time. */
  readonly timeMillis: number;
  readonly stateHash: string;
}

/**
 * One attempt at a backup of the whole cluster. `ok`: the backup is finished; `fail`: there is none, and `error` says
 * why.
 */
export interface Backup extends Ending {
  readonly op: 'backup';
  /** Its directory in the folder of backups. A failed backup leaves nothing there. */
  readonly directory: string;
  /** A failed backup has the version null and no groups. */
  readonly rulesVersion: number | null;
  readonly groups: readonly GroupReported[];
  /** The error of `quorate restore --verify`. Null: the backup is whole, or there is none. */
  readonly damage: string | null;
}

export function encodeBackup(backup: Backup): string {
  const { op, directory, rulesVersion, groups, damage } = backup;
  return JSON.stringify({
    op,
    ...encodeEnding(backup),
    directory,
    rules_version: rulesVersion,
    groups: groups.map(({ group, index, term, timeMillis, stateHash }) => ({
      group,
      index,
      term,
      time_ms: timeMillis,
      state_hash: stateHash,
    })),
    damage,
  });
}

/** @throws HistoryError naming line and field */
export function backupIn(line: Line): Backup {
  return {
    op: 'backup',
    ...endingIn(line),
    directory: line.text('directory'),
    rulesVersion: line.numberOrNull('rules_version'),
    groups: line.lines('groups').map(groupIn),
    damage: line.textOrNull('damage'),
  };
}

function groupIn(line: Line): GroupReported {
  return {
    group: line.number('group'),
    index: line.number('index'),
    term: line.number('term'),
    timeMillis: line.number('time_ms'),
    stateHash: line.text('state_hash'),
  };
}

export type FinishedBackup = Backup & { readonly rulesVersion: number };

export function isFinished(backup: Backup): backup is FinishedBackup {
  return backup.class === 'ok' && backup.rulesVersion !== null;
}
