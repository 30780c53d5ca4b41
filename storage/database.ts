/**
 * The narrow view of a key-value database that storage needs, and LevelDB behind it. The view exists so that tests
 * can put failures underneath the store; nothing here knows what the bytes mean.
 */
import { Level } from 'level';
import type { KeyRange } from './keys.ts';

export type Operation =
  | { readonly type: 'put'; readonly key: Buffer; readonly value: Buffer }
  | { readonly type: 'del'; readonly key: Buffer };

export interface KeyValueDatabase {
  /**
   * Applies all operations atomically, in order. `done` is told once they are synced to disk, or why they may not be; not
   * before this returns, and not by a promise: what fails in it must end the process, not be a rejection that somebody
   * may handle.
   */
  syncedBatch(operations: Operation[], done: (error?: unknown) => void): void;
  get(key: Buffer): Promise<Buffer | undefined>;
  /** Calls `visit` for every key of the range in order, as of one moment. An error of `visit` ends the scan. */
  scan(range: KeyRange, visit: (key: Buffer, value: Buffer) => void): Promise<void>;
  /** Gives the space back that deleted keys of this range take up. Reads and writes go on meanwhile. */
  compact(range: KeyRange): Promise<void>;
  close(): Promise<void>;
}

export interface DatabaseOptions {
  readonly createIfMissing: boolean;
  /** Size of LevelDB's log and memtable. Larger means fewer flushes and a longer recovery at every open. */
  readonly writeBufferBytes: number;
}

const CACHE_BYTES = 1024 * 1024;
/**
 * Size of LevelDB's tables; its default is 2 MiB. A file system that is mounted with `discard` stalls synced writes for each file that is
 * deleted: with larger ones, requests at fixed times had a p99 of 41 ms instead of 68 there (bench/RESULTS.md).
 */
const TABLE_BYTES = 32 * 1024 * 1024;
const SCAN_KEYS = 1000;
const SCAN_BYTES = 256 * 1024;
const SYNCED = { sync: true };

/** Opens LevelDB. Rejects with LevelDB's own error; see open-store.ts for what each one means. */
export async function openLevelDatabase(
  directory: string,
  options: DatabaseOptions,
): Promise<KeyValueDatabase> {
  const level = new Level<Buffer, Buffer>(directory, {
    keyEncoding: 'buffer',
    valueEncoding: 'buffer',
    createIfMissing: options.createIfMissing,
    errorIfExists: options.createIfMissing,
    writeBufferSize: options.writeBufferBytes,
    // Snappy buys little on small binary values and doubles what one flipped bit destroys.
    compression: false,
    // Everything hot is in memory already: the database is read at start and to send snapshots.
    cacheSize: CACHE_BYTES,
    maxFileSize: TABLE_BYTES,
  });
  await level.open();
  return new LevelDatabase(level);
}

class LevelDatabase implements KeyValueDatabase {
  private readonly level: Level<Buffer, Buffer>;

  constructor(level: Level<Buffer, Buffer>) {
    this.level = level;
  }

  syncedBatch(operations: Operation[], done: (error?: unknown) => void): void {
    // A chained batch hands each key straight to LevelDB, as one atomic record like batch([...]), which clones every
    // operation first: 33 operations of 16 groups cost 50 us of this thread instead of 190.
    const batch = this.level.batch();
    for (const operation of operations) {
      if (operation.type === 'put') batch.put(operation.key, operation.value);
      else batch.del(operation.key);
    }
    const tell = (error?: unknown): void => queueMicrotask(() => done(error));
    batch.write(SYNCED).then(() => tell(), tell);
  }

  get(key: Buffer): Promise<Buffer | undefined> {
    return this.level.get(key);
  }

  async scan(range: KeyRange, visit: (key: Buffer, value: Buffer) => void): Promise<void> {
    const iterator = this.level.iterator({
      gte: range.first,
      lte: range.last,
      fillCache: false,
      highWaterMarkBytes: SCAN_BYTES,
    });
    let next = iterator.nextv(SCAN_KEYS);
    try {
      for (;;) {
        const page = await next;
        if (page.length === 0) return;
        // LevelDB reads on a thread of its own while this page is visited: at a restart that halves the time.
        next = iterator.nextv(SCAN_KEYS);
        for (const [key, value] of page) visit(key, value);
      }
    } finally {
      // It may fail unheard if a visit threw.
      await next.catch(() => undefined);
      // An open iterator pins a snapshot of the database, and with it the disk space of everything deleted since.
      await iterator.close();
    }
  }

  async compact(range: KeyRange): Promise<void> {
    const level: object = this.level;
    // Of LevelDB alone, and not of the databases in browsers that `level` stands for as well.
    if ('compactRange' in level && typeof level.compactRange === 'function') {
      await level.compactRange(range.first, range.last);
    }
  }

  close(): Promise<void> {
    return this.level.close();
  }
}
