/**
 * Looks at LevelDB's own files for damage that LevelDB passes over in silence or only mentions in its LOG.
 * Reads only. Each check stands for a failure reproduced with the LevelDB we run (1.20); see storage/README.md.
 */
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DamageFound } from './errors.ts';
import { isErrno, readTextIfAny } from './files.ts';
import { BLOCK_BYTES, FIRST, FULL, HEADER_BYTES, inspectLog } from './leveldb-log.ts';

/**
 * Checks that CURRENT names an existing MANIFEST, that the log this MANIFEST names exists, and that every log can be
 * read: LevelDB takes a deleted log for an empty one, and opens without what it cannot read. Returns the name of the
 * newest log if a crash left the end of a write in it that was never answered.
 */
export async function checkLevelDbFiles(
  directory: string,
  names: readonly string[],
): Promise<string | undefined> {
  if (!names.includes('CURRENT')) {
    throw new DamageFound(`LevelDB's file CURRENT is missing, but ${names.join(', ')} exist`);
  }
  const current = (await readTextIfAny(directory, 'CURRENT')) ?? '';
  const manifest = /^(MANIFEST-\d+)\n$/.exec(current)?.[1];
  if (manifest === undefined) {
    throw new DamageFound(
      `LevelDB's file CURRENT holds ${JSON.stringify(current.slice(0, 80))}, not a file name`,
    );
  }
  if (!names.includes(manifest))
    throw new DamageFound(`LevelDB's file ${manifest}, named by CURRENT, is missing`);
  const oldest = logNumberOf(await readFile(join(directory, manifest))) ?? 0;
  const logs = names
    .filter((name) => name.endsWith('.log') && Number.parseInt(name, 10) >= oldest)
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
  checkLogNames(manifest, oldest, names, logs);
  return checkLogs(directory, logs);
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

async function checkLogs(directory: string, logs: readonly string[]): Promise<string | undefined> {
  for (const [i, name] of logs.entries()) {
    const condition = inspectLog(await readFile(join(directory, name)));
    if (condition.kind === 'intact') continue;
    const isNewest = i === logs.length - 1;
    if (condition.kind === 'torn' && isNewest) return name;
    // LevelDB begins a new log only after everything in the one before was synced.
    const follows = condition.kind === 'damaged' ? 'later batches follow' : `the newer ${logs.at(-1)} exists`;
    throw new DamageFound(
      `LevelDB's log ${name} cannot be read from byte ${condition.at} on, although ${follows}`,
    );
  }
  return undefined;
}

// version_edit.cc of LevelDB.
const TAG_COMPARATOR = 1;
const TAG_LOG_NUMBER = 2;

/**
 * The number of the oldest log LevelDB needs, from its MANIFEST, or undefined if that says nothing usable. An edit
 * begins with comparator and log number, so the beginning of each record is enough. Checksums are left to LevelDB,
 * which does check them in a MANIFEST.
 */
function logNumberOf(bytes: Buffer): number | undefined {
  let logNumber: number | undefined;
  let at = 0;
  while (at + HEADER_BYTES <= bytes.length) {
    const leftInBlock = BLOCK_BYTES - (at % BLOCK_BYTES);
    if (leftInBlock < HEADER_BYTES) {
      at += leftInBlock;
      continue;
    }
    const length = bytes.readUInt16LE(at + 4);
    const type = bytes.readUInt8(at + 6);
    const body = bytes.subarray(at + HEADER_BYTES, at + HEADER_BYTES + length);
    if (type === FULL || type === FIRST) logNumber = logNumberIn(body) ?? logNumber;
    at += HEADER_BYTES + length;
  }
  return logNumber;
}

function logNumberIn(edit: Buffer): number | undefined {
  let at = 0;
  if (edit[at] === TAG_COMPARATOR) at += 2 + (edit[at + 1] ?? 0);
  if (edit[at] !== TAG_LOG_NUMBER) return undefined;
  let value = 0;
  let scale = 1;
  for (at += 1; at < edit.length; at += 1) {
    const byte = edit[at] ?? 0;
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return value;
    scale *= 0x80;
  }
  return undefined;
}

/** What LevelDB writes to its LOG when it skips part of a log or meets a bad block, and then carries on. */
const DAMAGE_LINE = /\bdropping \d+ bytes|\bCorruption: |\bignoring error\b/i;

/** LevelDB moves LOG to LOG.old at every open: one holds what this open found, the other what the last one did. */
export const INFO_LOG = 'LOG';
export const OLD_INFO_LOG = 'LOG.old';

/**
 * Throws DamageFound if LevelDB reported damage in one of its LOG files, other than the ends of `tornLogs` that it
 * had to drop.
 */
export async function checkInfoLog(
  directory: string,
  name: string,
  tornLogs: readonly string[],
): Promise<void> {
  let rest = '';
  try {
    // In pieces: the LOG of a process that ran for months is large.
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
