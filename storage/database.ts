/**
 * The key-value database that storage needs, as a small interface, and its implementation with LevelDB. The interface
 * lets tests inject failures below the store. Nothing here knows what the bytes mean.
 */
import { Level } from 'level';
import type { KeyRange } from './keys.ts';

/** One operation of a batch. */
export type Operation =
  | { readonly type: 'put'; readonly key: Buffer; readonly value: Buffer }
  | { readonly type: 'del'; readonly key: Buffer };

/** An ordered key-value database. */
export interface KeyValueDatabase {
  /**
   * Applies all operations atomically, in order. Calls `done` once they are synced to disk, or with the error, but
   * never before this method returns. It is a callback and not a promise, so that an exception in it ends the process
   * instead of becoming a rejection that a caller might handle.
   */
  syncedBatch(operations: Operation[], done: (error?: unknown) => void): void;
  get(key: Buffer): Promise<Buffer | undefined>;
  /** Calls `visit` for every key of the range in order, as of one moment. An error from `visit` ends the scan. */
  scan(range: KeyRange, visit: (key: Buffer, value: Buffer) => void): Promise<void>;
  /** Frees the space of deleted keys in this range. Reads and writes go on meanwhile. */
  compact(range: KeyRange): Promise<void>;
  close(): Promise<void>;
}

/** How LevelDB is opened. */
export interface DatabaseOptions {
  readonly createIfMissing: boolean;
  /** The size of LevelDB's log and memtable. A larger one means fewer flushes and a longer recovery at every open. */
  readonly writeBufferBytes: number;
}

const CACHE_BYTES = 1024 * 1024;
/**
 * The size of LevelDB's tables (its default is 2 MiB). A file system mounted with `discard` stalls synced writes for
 * each deleted file. Larger tables mean fewer files: the p99 at a fixed request rate fell from 68 to 41 ms
 * (bench/RESULTS.md).
 */
const TABLE_BYTES = 32 * 1024 * 1024;
const SCAN_KEYS = 1000;
const SCAN_BYTES = 256 * 1024;
const SYNCED = { sync: true };

/** Opens LevelDB. Rejects with LevelDB's own error; open-store.ts interprets it. */
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
    // Snappy saves little on small binary values, and one flipped bit would destroy twice as much.
    compression: false,
    // The database is read only at start and to send snapshots, so a cache is useless.
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
    // A chained batch passes each key directly to LevelDB and is still one atomic record. batch([...]) clones every
    // operation first: 33 operations of 16 groups cost 190 us of this thread instead of 50.
    const batch = this.level.batch();
    for (const operation of operations) {
      if (operation.type === 'put') batch.put(operation.key, operation.value);
      else batch.del(operation.key);
    }
    const report = (error?: unknown): void => queueMicrotask(() => done(error));
    batch.write(SYNCED).then(() => report(), report);
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
        // LevelDB reads the next page on its own thread while this page is visited. That halves the time of a restart.
        next = iterator.nextv(SCAN_KEYS);
        for (const [key, value] of page) visit(key, value);
      }
    } finally {
      // Nobody awaits this read if `visit` threw.
      await next.catch(() => undefined);
      // An open iterator pins a snapshot of the database and the disk space of everything deleted since.
      await iterator.close();
    }
  }

  async compact(range: KeyRange): Promise<void> {
    const level: object = this.level;
    // Only LevelDB has this method; `level` can also stand for a database in a browser.
    if ('compactRange' in level && typeof level.compactRange === 'function') {
      await level.compactRange(range.first, range.last);
    }
  }

  close(): Promise<void> {
    return this.level.close();
  }
}
