/**
 * Imported into the node processes of a test: keeps every log entry that they have synced in a file, because they
 * delete their logs behind snapshots and the judges want all of it. Nothing in the product knows of it.
 */
import { appendFileSync } from 'node:fs';
import type { Entry } from '../../../raft/types.ts';
import { LevelStore } from '../../../storage/level-store.ts';

/** What one write did to the log of one group. */
export interface ArchivedWrite {
  readonly group: number;
  readonly entries: readonly (Omit<Entry, 'data'> & { readonly data: string })[];
  /** Of entries up to here the node keeps only what follows from them: they are committed. */
  readonly compactedTo: number | null;
  /** A snapshot of the leader replaced the log, or it was removed. */
  readonly isReplaced: boolean;
}

const file = process.env['QUORATE_TEST_ARCHIVE'];

if (file !== undefined) {
  // The last process may have died within a line.
  appendFileSync(file, '\n');
  // oxlint-disable-next-line typescript/unbound-method -- it is called with its object below
  const { write } = LevelStore.prototype;
  LevelStore.prototype.write = function archived(writes, done) {
    write.call(this, writes, (error) => {
      if (error === undefined) {
        const lines = writes.flatMap(({ group, entries, compactTo, install, remove }): string[] => {
          const isReplaced = install !== undefined || remove === true;
          if (entries.length === 0 && compactTo === undefined && !isReplaced) return [];
          const line: ArchivedWrite = {
            group,
            entries: entries.map((entry) => ({ ...entry, data: Buffer.from(entry.data).toString('base64') })),
            compactedTo: compactTo?.index ?? null,
            isReplaced,
          };
          return [`${JSON.stringify(line)}\n`];
        });
        if (lines.length > 0) appendFileSync(file, lines.join(''));
      }
      done(error);
    });
  };
}
