/** The error of backup and restore. */

/**
 * Something is wrong with a backup or its destination. `what`:
 *
 * - `damaged`: a file differs from the manifest, or is not a snapshot
 * - `foreign`: the destination holds something else, or the backup has another format
 * - `unreachable`: no node gave a snapshot of some group
 */
export class BackupError extends Error {
  readonly code = 'BACKUP';
  override readonly name = 'BackupError';
  readonly what: 'damaged' | 'foreign' | 'unreachable';

  constructor(what: BackupError['what'], message: string) {
    super(message);
    this.what = what;
  }
}
