/**
 * The database under the store of a simulated node: keys and values in memory. A batch takes virtual time and is lost
 * or kept as a whole. LevelDB puts a batch into one record of its log, under one checksum, and drops a partly written
 * one when it reads the log. A third outcome, `torn`, is a database that breaks this promise: the store must notice.
 */
import type { KeyValueDatabase, Operation } from '../../storage/database.ts';
import { EMPTY_DIGEST } from '../../storage/digest.ts';
import type { StoreIdentity } from '../../storage/identity.ts';
import type { KeyRange } from '../../storage/keys.ts';
import { LevelGroup } from '../../storage/level-group.ts';
import { LevelStore } from '../../storage/level-store.ts';
import { Mask, MASK_BYTES } from '../../storage/mask.ts';
import type { Fate } from '../../storage/memory-store.ts';
import { encodeStoreRecord } from '../../storage/records.ts';
import { verifyRecords } from '../../storage/verify.ts';

/** The contents of a disk: values by key, where a key is a string with one character per byte. */
export type DiskContent = ReadonlyMap<string, Buffer>;

/** The contents of a disk without a batch, with a part of it, and with all of it. */
export interface TornBatch {
  readonly before: DiskContent;
  readonly torn: DiskContent;
  readonly after: DiskContent;
}

/** The same for all nodes, so that directories can be compared. */
const MASK = new Mask(Uint8Array.from({ length: MASK_BYTES }, (_, i) => (i * 151 + 90) % 256));

/** Unused here: `SimIdentity` checks the owner of a database. */
const IDENTITY: StoreIdentity = {
  nodeId: 0,
  incarnation: '',
  facts: { clusterId: '', partitions: 0, replicas: 0, founders: [], hash: '', formatVersion: 0 },
};

function textOf(key: Buffer): string {
  return key.toString('latin1');
}

/** The contents after the bootstrap of a directory. */
export function emptyDisk(): DiskContent {
  const { key, value } = encodeStoreRecord({ batch: 1, digest: EMPTY_DIGEST, groupCount: 0 });
  return new Map([[textOf(key), value]]);
}

export class SimDatabase implements KeyValueDatabase {
  readonly #content: Map<string, Buffer>;
  readonly #schedule: (complete: () => void) => void;
  readonly #reading: () => void;
  #inFlight: readonly Operation[] | undefined;
  #nextFailure: Fate | undefined;
  #hasFailed = false;

  /**
   * @param schedule calls its argument once, later: then the batch in flight is on disk
   *
   * @param reading a promise is about to be settled with the result of a read
   */
  constructor(
    content: DiskContent,
    schedule: (complete: () => void) => void,
    reading: () => void = () => {},
  ) {
    this.#content = new Map(content);
    this.#schedule = schedule;
    this.#reading = reading;
  }

  get content(): Map<string, Buffer> {
    return new Map(this.#content);
  }

  syncedBatch(operations: Operation[], done: (error?: unknown) => void): void {
    this.#inFlight = operations;
    this.#schedule(() => {
      // A crash in between has removed it.
      if (this.#inFlight !== operations) return;
      this.#inFlight = undefined;
      const fate = this.#nextFailure;
      this.#hasFailed ||= fate !== undefined;
      if (fate !== 'lost') this.#apply(operations);
      done(fate === undefined ? undefined : new Error('simulated disk error'));
    });
  }

  #apply(operations: readonly Operation[]): void {
    applyTo(this.#content, operations);
  }

  /** A disk or database that breaks its promise: some operations of the batch in flight took effect. */
  torn(below: (bound: number) => number): TornBatch | undefined {
    const operations = this.#inFlight ?? [];
    if (operations.length < 2) return undefined;
    const missing = below(operations.length);
    const some = operations.filter((_, i) => (missing % 2 === 0 ? i !== missing : i < missing));
    return {
      before: this.content,
      torn: applyTo(this.content, some),
      after: applyTo(this.content, operations),
    };
  }

  async get(key: Buffer): Promise<Buffer | undefined> {
    this.#reading();
    return this.#content.get(textOf(key));
  }

  async scan(range: KeyRange, visit: (key: Buffer, value: Buffer) => void): Promise<void> {
    this.#reading();
    const [first, last] = [textOf(range.first), textOf(range.last)];
    const keys = [...this.#content.keys()].filter((key) => key >= first && key <= last).sort();
    for (const key of keys) {
      const value = this.#content.get(key);
      if (value !== undefined) visit(Buffer.from(key, 'latin1'), value);
    }
  }

  async compact(): Promise<void> {}

  async close(): Promise<void> {}

  /** The next batch fails. `fate` says whether it is on disk nevertheless. */
  failNext(fate: Fate): void {
    this.#nextFailure = fate;
  }

  /** The process ends. Returns what the next one finds. */
  crash(fate: Fate): DiskContent {
    const inFlight = this.#inFlight;
    this.#inFlight = undefined;
    // After a failed write nothing reaches the disk any more.
    if (inFlight !== undefined && fate === 'kept' && !this.#hasFailed) this.#apply(inFlight);
    return this.content;
  }
}

function applyTo(content: Map<string, Buffer>, operations: readonly Operation[]): DiskContent {
  for (const operation of operations) {
    if (operation.type === 'put') content.set(textOf(operation.key), operation.value);
    else content.delete(textOf(operation.key));
  }
  return content;
}

/** Opens the product's store on it. Throws DamageFound as the product's openStore does, after the same checks. */
export async function openSimStore(database: SimDatabase): Promise<LevelStore> {
  const { batch, digest, groups: verified } = await verifyRecords(database, 0);
  const groups: LevelGroup[] = [];
  for (const group of verified) groups.push(await LevelGroup.restore({ database, mask: MASK }, group));
  return new LevelStore({
    database,
    identity: IDENTITY,
    mask: MASK,
    batch,
    digest,
    groups,
    read: (action) => action(),
    onClose: async () => {},
  });
}
