/**
 * Records which groups of a node were recovered without their quorum, in the file RECOVERED next to its database:
 * one line each, kept for good.
 *
 * A recovery first writes its lines to RECOVERING, then changes the database in one batch, then moves the lines to
 * RECOVERED. After a crash in between, the terms in the database show whether the batch was written, as a recovery
 * puts its groups a million terms ahead.
 */
import { readTextIfAny, removeSynced, writeTextSynced } from '../../storage/files.ts';

/** By how many terms a recovery puts its groups ahead: far more elections than the lost nodes can have held. */
export const RECOVERY_TERMS_AHEAD = 1_000_000;

const DONE_FILE = 'RECOVERED';
const PENDING_FILE = 'RECOVERING';

/** A recovered group, and where it continues. */
export interface RecoveryLine {
  readonly group: number;
  readonly index: number;
  readonly term: number;
  /** Wall clock time, for people. */
  readonly at: string;
}

/** Call it before the batch that recovers these groups. */
export async function recordIntent(directory: string, lines: readonly RecoveryLine[]): Promise<void> {
  await writeTextSynced(directory, PENDING_FILE, textOf(lines.map((line) => JSON.stringify(line))));
}

/**
 * Call it after that batch, or after a crash around it. Moves the lines to RECOVERED if the batch is in the
 * database, else drops them. Returns all lines of RECOVERED. Can be repeated.
 *
 * @param termOf the term of a group in the database
 */
export async function settleRecord(
  directory: string,
  termOf: (group: number) => number,
): Promise<readonly string[]> {
  const done = linesOf(await readTextIfAny(directory, DONE_FILE));
  const pending = await readTextIfAny(directory, PENDING_FILE);
  if (pending === undefined) return done;
  const isInEffect = linesOf(pending).every((line) => {
    const { group, term } = JSON.parse(line) as RecoveryLine;
    return termOf(group) >= term;
  });
  // The crash may have come after the lines were moved.
  const added = isInEffect ? linesOf(pending).filter((line) => !done.includes(line)) : [];
  if (added.length > 0) await writeTextSynced(directory, DONE_FILE, textOf([...done, ...added]));
  await removeSynced(directory, PENDING_FILE);
  return [...done, ...added];
}

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}

function linesOf(text = ''): string[] {
  return text.split('\n').filter((line) => line !== '');
}
