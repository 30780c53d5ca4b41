/** Flips a bit somewhere on a simulated disk, and checks whether the product notices. */
import type { GroupId, StoredGroup } from '../../raft/types.ts';
import { DamageFound } from '../../storage/errors.ts';
import type { LevelStore } from '../../storage/level-store.ts';
import { type DiskContent, openSimStore, SimDatabase, type TornBatch } from './database.ts';
import type { Random } from './random.ts';

/** The snapshot of an unreadable chunk. */
export interface SpoiledSnapshot {
  readonly group: GroupId;
  readonly index: number;
}

/** A flipped bit in data that is no longer needed has no effect: then another one is flipped. */
const TRIES_MAX = 200;

/** Flips a bit of needed data, and returns the damage that a start of the product finds; undefined if none. */
export async function damageOfFlip(content: DiskContent, random: Random): Promise<string | undefined> {
  const whole = await readAll(content);
  for (let i = 0; i < TRIES_MAX; i += 1) {
    const [key, value] = random.pick([...content]);
    const flipped = Buffer.from(value);
    const at = random.below(flipped.length);
    flipped[at] = (flipped[at] ?? 0) ^ (1 << random.below(8));
    try {
      if ((await readAll(new Map([...content, [key, flipped]]))) !== whole) return undefined;
    } catch (error) {
      if (error instanceof DamageFound) return error.message;
      throw error;
    }
  }
  return undefined;
}

/**
 * The damage that a start finds after a batch took effect in part; `undefined` if the start misreads it as something
 * else.
 */
export async function damageOfTear({ before, torn, after }: TornBatch): Promise<string | undefined> {
  try {
    const found = await readAll(torn);
    // Data that is no longer needed may be deleted in part, and data that is not needed yet, like a staged chunk, may
    // be missing.
    const isWhole = found === (await readAll(before)) || found === (await readAll(after));
    return isWhole ? 'nothing that counts was torn' : undefined;
  } catch (error) {
    if (error instanceof DamageFound) return error.message;
    throw error;
  }
}

/** Everything that a node would find, as text. Throws DamageFound. */
async function readAll(content: DiskContent): Promise<string> {
  const store = await openSimStore(new SimDatabase(content, () => {}));
  const parts: unknown[] = [];
  for (const group of store.groups())
    parts.push(group, await store.load(group), await chunksOf(store, group));
  return JSON.stringify(parts, (_name, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
  );
}

async function chunksOf(store: LevelStore, group: GroupId): Promise<Uint8Array[]> {
  const snapshot: StoredGroup['snapshot'] = (await store.load(group))?.snapshot;
  const chunks: Uint8Array[] = [];
  for (let i = 0; i < (snapshot?.chunkCount ?? 0); i += 1) {
    const chunk = await store.readSnapshotChunk(group, snapshot?.index ?? 0, i);
    if (chunk !== undefined) chunks.push(chunk);
  }
  return chunks;
}
