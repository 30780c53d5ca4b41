/**
 * Reads received snapshots back from the disk and builds new states from them. Only one group at a time, because two
 * states of it are in memory meanwhile, and one chunk per turn. An invalid snapshot is dropped before it replaces
 * anything; its leader sends it again.
 */
import type { Group } from './group.ts';
import type { SnapshotTarget } from './group-application.ts';
import type { IncomingSnapshot } from './incoming-snapshot.ts';
import type { LogStore } from './store.ts';

interface Restore {
  readonly group: Group;
  readonly incoming: IncomingSnapshot;
  target: SnapshotTarget | undefined;
  /** The number of the next chunk to add; `data` is that chunk, or why it is not there. */
  chunk: number;
  data: Uint8Array | 'reading' | 'gone';
}

interface SnapshotRestoresInit {
  readonly store: LogStore;
  /** The state is built; only `target.install()` is left. */
  readonly built: (group: Group, incoming: IncomingSnapshot, target: SnapshotTarget) => void;
  /** This snapshot will not be installed; `error` is set if it is invalid. */
  readonly dropped: (group: Group, incoming: IncomingSnapshot, error?: unknown) => void;
  /** There is work for the next turn. */
  readonly schedule: () => void;
  readonly failed: (error: unknown) => void;
}

/** The queue of snapshots to restore. */
export class SnapshotRestores {
  readonly #init: SnapshotRestoresInit;
  readonly #waiting: Restore[] = [];
  #current: Restore | undefined;

  constructor(init: SnapshotRestoresInit) {
    this.#init = init;
  }

  /** Queues a snapshot whose chunks are all on disk. */
  add(group: Group, incoming: IncomingSnapshot): void {
    this.#waiting.push({ group, incoming, target: undefined, chunk: 0, data: 'reading' });
    this.#init.schedule();
  }

  /** The restore of this group has ended, installed or not: begins the next one. */
  ended(group: Group): void {
    if (this.#current?.group !== group) return;
    this.#current = undefined;
    this.#init.schedule();
  }

  /** Does one chunk of work. Called once per turn. */
  run(): void {
    this.#current ??= this.#waiting.shift();
    const current = this.#current;
    if (current === undefined || isBuilt(current)) return;
    const { group, incoming, data } = current;
    if (group.incoming !== incoming || !group.core.needsSnapshot(incoming.meta) || data === 'gone') {
      this.#drop(current);
      return;
    }
    if (current.target !== undefined && data === 'reading') return;
    try {
      advance(current);
    } catch (error) {
      this.#drop(current, error);
      return;
    }
    if (current.target !== undefined && isBuilt(current)) this.#init.built(group, incoming, current.target);
    else this.#read(current);
  }

  #read(current: Restore): void {
    const { group, incoming, chunk } = current;
    current.data = 'reading';
    this.#init.store.readSnapshotChunk(group.id, incoming.meta.index, chunk).then(
      (data) => {
        current.data = data ?? 'gone';
        this.#init.schedule();
      },
      (error: unknown) => this.#init.failed(error),
    );
  }

  #drop(current: Restore, error?: unknown): void {
    this.#current = undefined;
    this.#init.dropped(current.group, current.incoming, error);
    this.#init.schedule();
  }
}

function isBuilt({ chunk, incoming }: Restore): boolean {
  return chunk === incoming.meta.chunkCount;
}

/** Adds the chunk that was read. Throws if the snapshot is invalid. */
function advance(current: Restore): void {
  const { group, incoming, data } = current;
  if (current.target === undefined) {
    current.target = group.app.restore(incoming.meta);
    return;
  }
  if (typeof data === 'string') return;
  current.target.add(data);
  current.chunk += 1;
  if (isBuilt(current)) current.target.complete();
}
