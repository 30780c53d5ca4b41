/** What is wrong with a backup, or with where it should go. */

/**
 * - `damaged`: a file is not what the manifest says, or no snapshot;
 * - `foreign`: there is something else where the backup should go, or another form of backup where one should be;
 * - `unreachable`: nobody gave a snapshot of some group.
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
