/**
 * Checks that backups can be taken when they should be. A backup that fails in a healthy cluster is an error. A run
 * without any backup did not test backups at all.
 */
import { type Backup, isFinished } from '../backup-history.ts';
import { type NemesisBand, overlaps } from '../nemesis-log.ts';
import { type CheckResult, Findings, skipped } from './result.ts';

export interface BackupsTakenOptions {
  readonly bands: readonly NemesisBand[];
  /** A backup may still fail for this long after a fault. */
  readonly settleMillis: number;
}

const NANOS_PER_MILLI = 1e6;

export function checkBackupsTaken(
  backups: readonly Backup[],
  { bands, settleMillis }: BackupsTakenOptions,
): CheckResult {
  if (backups.length === 0) return skipped('backups-taken', 'none was taken');
  const findings = new Findings('backups-taken');
  const finished = backups.filter(isFinished).length;
  findings.tally('finished', finished);
  for (const backup of backups) {
    if (isFinished(backup)) continue;
    const { invokeNanos, completeNanos, directory, error } = backup;
    const settleNanos = settleMillis * NANOS_PER_MILLI;
    const isBroken = bands.some((band) => overlaps(band, invokeNanos, completeNanos, settleNanos));
    findings.tally(isBroken ? 'failedUnderFaults' : 'failed');
    if (!isBroken) findings.add(`${directory} failed while nothing was broken: ${error ?? ''}`);
  }
  return finished > 0 ? findings.result() : findings.result('unknown', 'none was finished');
}
