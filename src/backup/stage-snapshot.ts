/**
 * Stages the chunks of a snapshot in a store, in batches of bounded size. The caller writes what activates them.
 */
import { crc32 } from '../../raft/driver/checksum.ts';
import type { GroupWrite, LogStore } from '../../raft/driver/store.ts';
import type { SnapshotMeta } from '../../raft/types.ts';

/** Bytes per write; each write is synced. */
const WRITE_BYTES = 1 << 20;

/** Size and checksum of a staged snapshot. */
export type StagedSnapshot = Required<Pick<SnapshotMeta, 'chunkCount' | 'byteLength' | 'checksum'>>;

/** Stages a snapshot of a group. */
export async function stageSnapshot(
  store: LogStore,
  { group, index }: { readonly group: number; readonly index: number },
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<StagedSnapshot> {
  const staged = { chunkCount: 0, byteLength: 0, checksum: 0 };
  let waiting: Uint8Array[] = [];
  let waitingBytes = 0;
  const stage = async (): Promise<void> => {
    if (waiting.length === 0) return;
    await written(store, { group, entries: [], stage: { index, first: staged.chunkCount, chunks: waiting } });
    staged.chunkCount += waiting.length;
    waiting = [];
    waitingBytes = 0;
  };
  for await (const chunk of chunks) {
    waiting.push(chunk);
    waitingBytes += chunk.byteLength;
    staged.byteLength += chunk.byteLength;
    staged.checksum = crc32(chunk, staged.checksum);
    if (waitingBytes >= WRITE_BYTES) await stage();
  }
  await stage();
  return staged;
}

const PIECE_BYTES = 32 << 10;

/** Splits one value, such as the record of group 0, into chunks. */
export function* piecesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.slice(at, at + PIECE_BYTES);
}

/** Writes one batch. Resolves when it is on disk. */
export function written(store: LogStore, ...writes: readonly GroupWrite[]): Promise<void> {
  return new Promise((resolve, reject) => {
    store.write(writes, (error) => (error === undefined ? resolve() : reject(error)));
  });
}
