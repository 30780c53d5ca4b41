/**
 * Reads the log entries that nodes archived (injected/archive.ts) before they deleted them behind snapshots. A node
 * deletes only entries that it has applied. These were therefore committed, and no two nodes may have deleted different
 * ones.
 */
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Entry, GroupId } from '../../raft/types.ts';
import type { ArchivedWrite } from './injected/archive.ts';

type Entries = Map<number, Entry>;

export class Archive {
  /** Entries that two nodes deleted and that differ. */
  readonly conflicts: string[] = [];
  readonly #groups = new Map<GroupId, Entries>();
  /** Entries of logs that a leader's snapshot replaced, and the tails of logs. These may not be committed. */
  readonly #others = new Map<GroupId, Entries[]>();

  /** The archived committed entries of a group. */
  entriesOf(group: GroupId): ReadonlyMap<number, Entry> {
    return this.#groups.get(group) ?? new Map();
  }

  /**
   * Returns the entries up to `index`, without a gap, starting at the first one that exists. The entry at `index` must
   * be of `term`. If no node deleted an entry behind its own snapshot, another log may still have it: logs that have
   * one entry in common are equal before it.
   */
  entriesThrough(group: GroupId, index: number, term: number): Entry[] {
    const committed = this.entriesOf(group);
    const others = this.#others.get(group) ?? [];
    const entries: Entry[] = [];
    let known = { index, term };
    const fromOthers = (at: number): Entry | undefined =>
      others.find((log) => log.has(at) && log.get(known.index)?.term === known.term)?.get(at);
    for (let at = index; at > 0; at -= 1) {
      const entry = committed.get(at) ?? fromOthers(at);
      if (entry === undefined) break;
      entries.push(entry);
      known = entry;
    }
    return entries.reverse();
  }

  async readFile(path: string, node: string): Promise<void> {
    const logs = new Map<GroupId, Entries>();
    for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
      const write = parsed(line);
      if (write === undefined) continue;
      const { group, entries, compactedTo, isReplaced } = write;
      let log = logs.get(group);
      if (log !== undefined && isReplaced) this.#keep(group, log);
      if (log === undefined || isReplaced) logs.set(group, (log = new Map()));
      const [first] = entries;
      if (first !== undefined) for (let i = first.index; log.delete(i); i += 1);
      for (const entry of entries)
        log.set(entry.index, { ...entry, data: Buffer.from(entry.data, 'base64') });
      if (compactedTo !== null) this.#commit({ group, log, through: compactedTo, node });
    }
    for (const [group, log] of logs) this.#keep(group, log);
  }

  #keep(group: GroupId, log: Entries): void {
    const others = this.#others.get(group);
    if (others === undefined) this.#others.set(group, [log]);
    else if (log.size > 0) others.push(log);
  }

  #commit(init: { group: GroupId; log: Entries; through: number; node: string }): void {
    const { group, log, through, node } = init;
    let known = this.#groups.get(group);
    if (known === undefined) this.#groups.set(group, (known = new Map()));
    for (const [index, entry] of log) {
      if (index > through) continue;
      log.delete(index);
      const other = known.get(index);
      if (other === undefined) known.set(index, entry);
      else if (other.term !== entry.term || Buffer.compare(other.data, entry.data) !== 0)
        this.conflicts.push(`group ${group}: ${node} applied another entry ${index} than others did`);
    }
  }
}

/** The last line may be cut off, because the process died while it wrote it. */
function parsed(line: string): ArchivedWrite | undefined {
  if (line === '') return undefined;
  try {
    return JSON.parse(line) as ArchivedWrite;
  } catch {
    return undefined;
  }
}

/** Reads all archives of a folder. Returns an empty archive if the folder does not exist. */
export async function readArchive(folder: string | undefined): Promise<Archive> {
  const archive = new Archive();
  if (folder === undefined) return archive;
  const names = (await readdir(folder)).filter((name) => name.endsWith('.jsonl')).sort();
  for (const name of names) await archive.readFile(join(folder, name), name);
  return archive;
}
