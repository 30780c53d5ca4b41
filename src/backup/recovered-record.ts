/** Which groups of a node were recovered without their quorum: a file beside its database, one line each, kept for ever. */
import { readTextIfAny, writeTextSynced } from '../../storage/files.ts';

const FILE = 'RECOVERED';

/** Written before the group is changed, so that none is without its line; one that was cut off has a second. */
export async function recordRecovery(directory: string, group: number, at: string): Promise<void> {
  const before = (await readTextIfAny(directory, FILE)) ?? '';
  await writeTextSynced(directory, FILE, `${before}${JSON.stringify({ group, at })}\n`);
}

/** The lines, as they were written. */
export async function recoveriesOf(directory: string): Promise<readonly string[]> {
  const text = (await readTextIfAny(directory, FILE)) ?? '';
  return text.split('\n').filter((line) => line !== '');
}
