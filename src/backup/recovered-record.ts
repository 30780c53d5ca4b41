/**
 * Which groups of a node were recovered without their quorum: the file RECOVERED beside its database, one line each, kept for ever.
 *
 * A recovery puts its lines into RECOVERING first, then changes the database in one batch, then moves the lines to RECOVERED. Cut
 * off in between, the terms in the database tell whether the batch is there: a recovery puts its groups a million terms ahead.
 */
import { readTextIfAny, removeSynced, writeTextSynced } from '../../storage/files.ts';

const DONE_FILE = 'RECOVERED';
const PENDING_FILE = 'RECOVERING';

/** Where a group begins again. */
export interface RecoveryLine {
  readonly group: number;
  readonly index: number;
  readonly term: number;
  /** By the wall clock of whoever recovered it; for people. */
  readonly at: string;
}

/** Before the batch that recovers these groups, all of them or none. */
export async function recordIntent(directory: string, lines: readonly RecoveryLine[]): Promise<void> {
  await writeTextSynced(directory, PENDING_FILE, textOf(lines.map((line) => JSON.stringify(line))));
}

/**
 * After that batch, or after a crash around it: moves the lines to RECOVERED if the batch is in the database, and drops them
 * otherwise. Returns all lines of RECOVERED. Safe to repeat.
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
  // A crash may have come after they were moved.
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
