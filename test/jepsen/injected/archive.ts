/**
 * Loaded into the node processes of a test. Nodes delete their logs behind snapshots, and the checkers need all
 * entries, so this module copies every synced log entry into a file. The product knows nothing of it.
 */
import { appendFileSync } from 'node:fs';
import type { Entry } from '../../../raft/types.ts';
import { LevelStore } from '../../../storage/level-store.ts';

/** The effect of one write on the log of one group. */
export interface ArchivedWrite {
  readonly group: number;
  readonly entries: readonly (Omit<Entry, 'data'> & { readonly data: string })[];
  /** The node may delete entries up to here, because they are committed and applied. */
  readonly compactedTo: number | null;
  /** A leader's snapshot replaced the log, or the log was removed. */
  readonly isReplaced: boolean;
}

const file = process.env['QUORATE_TEST_ARCHIVE'];

if (file !== undefined) {
  // The previous process may have died in the middle of a line.
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
