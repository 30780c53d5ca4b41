/** Reads a MANIFEST of LevelDB: the oldest log it needs, and the tables in use. Works on bytes; reads no files. */
import { ByteCursor } from './byte-cursor.ts';
import { DamageFound } from './errors.ts';
import { inspectLog } from './leveldb-log.ts';

/** The contents of a MANIFEST that matter here. */
export interface Manifest {
  /** The number of the oldest log that LevelDB needs; 0 if that cannot be read. */
  readonly oldest: number;
  /** The numbers of the tables in use. */
  readonly tables: ReadonlySet<number>;
  /** The byte where an end begins that a crash tore off. */
  readonly tornAt?: number;
}

// The tags in LevelDB's version_edit.cc.
const COMPARATOR = 1;
const LOG_NUMBER = 2;
const NEXT_FILE = 3;
const LAST_SEQUENCE = 4;
const COMPACT_POINTER = 5;
const DELETED_FILE = 6;
const NEW_FILE = 7;
const PREVIOUS_LOG_NUMBER = 9;

/**
 * Inspects a MANIFEST. LevelDB appends an edit when it has made a new table, and deletes the replaced tables only when
 * the edit is synced. So if the last edit is torn, everything is still as it was before that edit. LevelDB accepts a
 * file that ends within the edit. If the file has its full length and one page is missing, LevelDB reports a checksum
 * mismatch and does not open the database again.
 *
 * @throws DamageFound
 */
export function inspectManifest(name: string, bytes: Buffer): Manifest {
  const tables = new Set<number>();
  let oldest = 0;
  const condition = inspectLog(bytes, (edit) => {
    oldest = readEdit(edit, tables) ?? oldest;
  });
  if (condition.kind === 'damaged') {
    throw new DamageFound(
      `LevelDB's file ${name} cannot be read from byte ${condition.at} on, although later edits follow`,
    );
  }
  // The first edit was synced before CURRENT named the file.
  const isTorn = condition.kind === 'torn' && condition.at > 0;
  return isTorn ? { oldest, tables, tornAt: condition.at } : { oldest, tables };
}

/** Applies an edit to `tables`, as far as it can be read. Returns the number of the log that it names, if any. */
function readEdit(edit: Buffer, tables: Set<number>): number | undefined {
  const cursor = new ByteCursor(edit, 0);
  let log: number | undefined;
  while (cursor.at < edit.length) {
    switch (cursor.varint()) {
      case COMPARATOR:
        cursor.skipText();
        break;
      case LOG_NUMBER:
        log = cursor.varint();
        break;
      case NEXT_FILE:
      case LAST_SEQUENCE:
      case PREVIOUS_LOG_NUMBER:
        cursor.varint();
        break;
      case COMPACT_POINTER:
        cursor.varint();
        cursor.skipText();
        break;
      case DELETED_FILE:
        cursor.varint();
        tables.delete(cursor.varint() ?? 0);
        break;
      case NEW_FILE:
        cursor.varint();
        tables.add(cursor.varint() ?? 0);
        cursor.varint();
        cursor.skipText();
        cursor.skipText();
        break;
      default:
        return log;
    }
  }
  return log;
}
