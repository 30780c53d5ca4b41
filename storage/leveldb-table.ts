/**
 * Checks a table of LevelDB block by block. LevelDB checks no blocks during a compaction: it copies damaged bytes under
 * a new checksum, and if they break the order of keys an assertion ends the process. Works on bytes; reads no files.
 */
import { ByteCursor } from './byte-cursor.ts';
import { maskedCrc32c } from './leveldb-log.ts';

// The format is described in LevelDB's doc/table_format.md: blocks, each followed by its type u8 and checksum u32, then
// the footer.
const FOOTER_BYTES = 48;
const TRAILER_BYTES = 5;
const MAGIC = Buffer.from('57fb808b247547db', 'hex');

interface Handle {
  readonly offset: number;
  readonly size: number;
}

/** The first byte of the first block that cannot be read; undefined if the whole table can. */
export function damageInTable(table: Buffer): number | undefined {
  const footer = table.length - FOOTER_BYTES;
  if (footer < 0 || !table.subarray(-MAGIC.length).equals(MAGIC)) return Math.max(0, footer);
  const cursor = new ByteCursor(table, footer);
  // The first index names filters, the second data.
  for (const index of [handleAt(cursor, table), handleAt(cursor, table)]) {
    if (index === undefined) return footer;
    if (!isSound(table, index)) return index.offset;
    for (const block of blocksOf(table, index)) {
      if (block === undefined) return index.offset;
      if (!isSound(table, block)) return block.offset;
    }
  }
  return undefined;
}

function isSound(table: Buffer, { offset, size }: Handle): boolean {
  const end = offset + size + 1;
  if (end + 4 > table.length - FOOTER_BYTES) return false;
  return table.readUInt32LE(end) === maskedCrc32c(table, offset, end);
}

/** The blocks that an index block names; undefined for one whose position cannot be read. */
function* blocksOf(table: Buffer, { offset, size }: Handle): Iterable<Handle | undefined> {
  const restarts = table.readUInt32LE(offset + size - 4);
  const end = offset + size - 4 * (restarts + 1);
  for (const cursor = new ByteCursor(table, offset); cursor.at < end;) {
    const [, added, valueBytes] = [cursor.varint(), cursor.varint(), cursor.varint()];
    if (added === undefined || valueBytes === undefined) return yield undefined;
    cursor.at += added;
    const next = cursor.at + valueBytes;
    yield handleAt(cursor, table);
    cursor.at = next;
  }
}

function handleAt(cursor: ByteCursor, table: Buffer): Handle | undefined {
  const [offset, size] = [cursor.varint(), cursor.varint()];
  if (offset === undefined || size === undefined || offset + size + TRAILER_BYTES > table.length)
    return undefined;
  return { offset, size };
}
