/**
 * Searches LevelDB's own files for damage that LevelDB ignores or only mentions in its LOG. Reads only. Each check
 * corresponds to a failure that was reproduced with our LevelDB (1.20); see docs/internals/storage-format.md.
 */
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DamageFound } from './errors.ts';
import { naming } from './file-errors.ts';
import { isErrno, readTextIfAny } from './files.ts';
import { inspectLog } from './leveldb-log.ts';
import { inspectManifest } from './leveldb-manifest.ts';
import { damageInTable } from './leveldb-table.ts';

/** The incomplete ends of files that a crash left, from writes that were never acknowledged. */
export interface TornEnds {
  /** The name of the newest log, if its end is torn. */
  readonly log?: string;
  /** The MANIFEST, if its end is torn, and the byte where the torn end begins. */
  readonly manifest?: { readonly name: string; readonly at: number };
}

/**
 * Checks that CURRENT names an existing MANIFEST, that the log named there exists, and that every log and every table
 * in use can be read. LevelDB treats a deleted log as empty, skips what it cannot read, and checks no table.
 *
 * @throws DamageFound
 */
export async function checkLevelDbFiles(directory: string, names: readonly string[]): Promise<TornEnds> {
  if (!names.includes('CURRENT')) {
    throw new DamageFound(`LevelDB's file CURRENT is missing, but ${names.join(', ')} exist`);
  }
  const current = (await readTextIfAny(directory, 'CURRENT')) ?? '';
  const manifest = /^(MANIFEST-\d+)\n$/.exec(current)?.[1];
  if (manifest === undefined) {
    throw new DamageFound(
      `LevelDB's file CURRENT contains ${JSON.stringify(current.slice(0, 80))}, not a file name`,
    );
  }
  if (!names.includes(manifest))
    throw new DamageFound(`LevelDB's file ${manifest}, named by CURRENT, is missing`);
  const { oldest, tornAt, tables } = inspectManifest(manifest, await readNamed(join(directory, manifest)));
  const logs = names
    .filter((name) => name.endsWith('.log') && Number.parseInt(name, 10) >= oldest)
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
  checkLogNames(manifest, oldest, names, logs);
  const log = await checkLogs(directory, logs);
  await checkTables(directory, names, tables);
  return {
    ...(log !== undefined && { log }),
    ...(tornAt !== undefined && { manifest: { name: manifest, at: tornAt } }),
  };
}

function checkLogNames(
  manifest: string,
  oldest: number,
  names: readonly string[],
  logs: readonly string[],
): void {
  if (!names.some((name) => name.endsWith('.log'))) {
    throw new DamageFound('there is no LevelDB log (*.log): it was deleted with everything written last');
  }
  const needed = `${String(oldest).padStart(6, '0')}.log`;
  if (oldest > 0 && !logs.includes(needed)) {
    throw new DamageFound(
      `the log ${needed}, named by LevelDB's ${manifest}, is missing, or ${manifest} is damaged`,
    );
  }
}

/** Checks the tables in use. LevelDB itself reports a missing one. */
async function checkTables(
  directory: string,
  names: readonly string[],
  tables: ReadonlySet<number>,
): Promise<void> {
  for (const name of names) {
    if (!/^\d+\.(ldb|sst)$/.test(name) || !tables.has(Number.parseInt(name, 10))) continue;
    const at = damageInTable(await readNamed(join(directory, name)));
    if (at !== undefined)
      throw new DamageFound(
        `LevelDB's table ${name} is damaged at byte ${at} or in the block that begins there`,
      );
  }
}

async function checkLogs(directory: string, logs: readonly string[]): Promise<string | undefined> {
  for (const [i, name] of logs.entries()) {
    const condition = inspectLog(await readNamed(join(directory, name)));
    if (condition.kind === 'intact') continue;
    const isNewest = i === logs.length - 1;
    if (condition.kind === 'torn' && isNewest) return name;
    // LevelDB begins a new log only after everything in the previous one was synced.
    const follows = condition.kind === 'damaged' ? 'later batches follow' : `the newer ${logs.at(-1)} exists`;
    throw new DamageFound(
      `LevelDB's log ${name} cannot be read from byte ${condition.at} on, although ${follows}`,
    );
  }
  return undefined;
}

/** The lines that LevelDB writes to its LOG when it skips part of a log or finds a bad block, and then carries on. */
const DAMAGE_LINE = /\bdropping \d+ bytes|\bCorruption: |\bignoring error\b/i;

/** LevelDB renames LOG to LOG.old at every open: LOG reports this open, LOG.old the previous one. */
export const INFO_LOG = 'LOG';
/** The LOG of the previous open. */
export const OLD_INFO_LOG = 'LOG.old';

/**
 * Checks whether LevelDB reported damage in one of its LOG files. Dropped ends of `tornLogs` are expected.
 *
 * @throws DamageFound
 */
export async function checkInfoLog(
  directory: string,
  name: string,
  tornLogs: readonly string[],
): Promise<void> {
  let rest = '';
  try {
    // Read in pieces, because the LOG of a process that ran for months is large.
    for await (const piece of createReadStream(join(directory, name), { encoding: 'utf8' })) {
      const lines = (rest + String(piece)).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) checkInfoLine(name, line, tornLogs);
    }
    checkInfoLine(name, rest, tornLogs);
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
  }
}

function checkInfoLine(name: string, line: string, tornLogs: readonly string[]): void {
  if (!DAMAGE_LINE.test(line)) return;
  if (tornLogs.some((log) => line.includes(`${log}: dropping `))) return;
  throw new DamageFound(`LevelDB reported in its file ${name}: ${line}`);
}

async function readNamed(path: string): Promise<Buffer> {
  return naming(path, () => readFile(path));
}
