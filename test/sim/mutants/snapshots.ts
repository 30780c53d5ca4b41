/** Mutants: snapshots: written, sent, taken and read. */
import type { Mutant } from './mutant.ts';

export const SNAPSHOTS: readonly Mutant[] = [
  {
    id: 'M6',
    bug: 'a snapshot says less than it holds: its entries are applied again after a restart',
    edits: [{ in: 'applyCommitted', find: 'return last;', replace: 'return entries[0];' }],
  },
  {
    id: 'M12',
    bug: 'a snapshot drops a user',
    edits: [
      {
        in: 'StateReader.#read',
        find: 'const [a, b] = this.#digest.words();',
        replace:
          'for (const keys of state.keyTables) if (keys.size > 1) keys.evictIfIdle(0, Infinity); const [a, b] = this.#digest.words();',
      },
    ],
  },
  {
    id: 'M22',
    bug: 'a snapshot of the leader takes effect before it was checked',
    edits: [{ in: 'advance', find: 'current.target.complete();', replace: ';' }],
  },
  {
    id: 'M22b',
    bug: 'a snapshot of the leader takes effect with a chunk missing on disk',
    edits: [
      {
        in: 'IncomingSnapshot.isStaged',
        find: 'return this.#staged === this.meta.chunkCount;',
        replace: 'return this.#staged >= this.meta.chunkCount - 1 && this.#staged > 0;',
      },
    ],
  },
  {
    id: 'X12b',
    bug: 'a snapshot forgets what was asked under a request id',
    edits: [{ in: 'StateWriter.#writeGrant', find: 'out.integer(grant.cost);', replace: 'out.integer(1);' }],
  },
  {
    id: 'X14',
    bug: 'a snapshot is written from the state as it is, not as it was when it began',
    edits: [{ in: 'CapturedKeys.watch', find: 'this.#table.watcher = this;', replace: ';' }],
  },
  {
    id: 'X15',
    bug: 'what had expired is not counted after a restore',
    edits: [
      {
        in: 'StateReader.#read',
        find: 'const [a, b] = this.#digest.words();',
        replace: 'state.memory.expire(state.changedMillis, Infinity); const [a, b] = this.#digest.words();',
      },
    ],
  },
];
