/**
 * Reads snapshots of leaders back from the disk, and builds their states beside the present ones: one group at a time,
 * since for a while two states of it are in memory, and one chunk a turn. A snapshot that turns out unsound is forgotten
 * before it has replaced anything; its leader will send it again.
 */
import type { Group } from './group.ts';
import type { SnapshotTarget } from './group-application.ts';
import type { IncomingSnapshot } from './incoming-snapshot.ts';
import type { LogStore } from './store.ts';

interface Restore {
  readonly group: Group;
  readonly incoming: IncomingSnapshot;
  target: SnapshotTarget | undefined;
  /** The next chunk to add, and whether it is being read, there, or gone. */
  chunk: number;
  data: Uint8Array | 'reading' | 'gone';
}

interface SnapshotRestoresInit {
  readonly store: LogStore;
  /** The state is built: it takes no more than `target.install()`. */
  readonly built: (group: Group, incoming: IncomingSnapshot, target: SnapshotTarget) => void;
  /** This snapshot will not be installed; `error` if it is unsound. */
  readonly dropped: (group: Group, incoming: IncomingSnapshot, error?: unknown) => void;
  /** There is something to do in the next turn. */
  readonly schedule: () => void;
  readonly failed: (error: unknown) => void;
}

export class SnapshotRestores {
  readonly #init: SnapshotRestoresInit;
  readonly #waiting: Restore[] = [];
  #current: Restore | undefined;

  constructor(init: SnapshotRestoresInit) {
    this.#init = init;
  }

  /** All chunks of this snapshot are on disk. */
  add(group: Group, incoming: IncomingSnapshot): void {
    this.#waiting.push({ group, incoming, target: undefined, chunk: 0, data: 'reading' });
    this.#init.schedule();
  }

  /** The state of this group was installed, or never will be: the next one may be built. */
  ended(group: Group): void {
    if (this.#current?.group !== group) return;
    this.#current = undefined;
    this.#init.schedule();
  }

  /** A slice of work, once in each turn. */
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

/** Whatever is wrong with a snapshot shows here. */
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
