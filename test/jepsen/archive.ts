/**
 * Reads what nodes archived of their logs (injected/archive.ts): the entries that they have deleted behind snapshots.
 * A node deletes only what it has applied, so these were committed, and no two nodes may have had different ones.
 */
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Entry, GroupId } from '../../raft/types.ts';
import type { ArchivedWrite } from './injected/archive.ts';

type Entries = Map<number, Entry>;

export class Archive {
  /** Entries that two nodes deleted, and that were not the same. */
  readonly conflicts: string[] = [];
  readonly #groups = new Map<GroupId, Entries>();
  /** What logs held when a snapshot of a leader replaced them, and at their ends: it may not be committed. */
  readonly #others = new Map<GroupId, Entries[]>();

  /** Committed entries of a group, as far as they were archived. */
  entriesOf(group: GroupId): ReadonlyMap<number, Entry> {
    return this.#groups.get(group) ?? new Map();
  }

  /**
   * The entries up to `index`, whose own is of `term`, without a gap, from the first one that is there. Where no node deleted an entry
   * behind a snapshot of its own, another log may have it: logs that have one entry in common are the same before it.
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

/** The line that a dying process was at is cut off. */
function parsed(line: string): ArchivedWrite | undefined {
  if (line === '') return undefined;
  try {
    return JSON.parse(line) as ArchivedWrite;
  } catch {
    return undefined;
  }
}

/** All archives of a folder; none if there is no such folder. */
export async function readArchive(folder: string | undefined): Promise<Archive> {
  const archive = new Archive();
  if (folder === undefined) return archive;
  const names = (await readdir(folder)).filter((name) => name.endsWith('.jsonl')).sort();
  for (const name of names) await archive.readFile(join(folder, name), name);
  return archive;
}
