/**
 * What a node last knew of the nodes of its cluster, and whether everybody must show a token, in a small file beside its database: for
 * the script that starts the nodes of a directory, before any of them can be asked, and for the doors of this node until it knows
 * better. A cache: nothing that must be right is decided by it, and it may be missing or old.
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { NodeId } from '../../raft/types.ts';
import { naming } from '../../storage/file-errors.ts';
import type { MetaState } from '../meta/cluster-state.ts';
import { hasAdmin } from '../meta/token-table.ts';

const FILE = 'members.json';

export interface KnownMembers {
  /** Of the list; with a higher one, or the same and a higher settled one, it is newer. */
  readonly version: number;
  readonly settledVersion: number;
  /** Those that belong to the cluster, and those that are needed until all partitions have moved away. */
  readonly nodes: readonly NodeId[];
  readonly retired: readonly NodeId[];
  /** The node that wrote this was told that it was removed. */
  readonly isRemoved: boolean;
  readonly tokens?: KnownTokens;
}

/** Not which tokens there are. */
export interface KnownTokens {
  readonly version: number;
  /** Everybody must show one. */
  readonly isClosed: boolean;
}

export async function readKnownMembers(databaseDirectory: string): Promise<KnownMembers | undefined> {
  let text: string;
  try {
    text = await readFile(join(databaseDirectory, FILE), 'utf8');
  } catch {
    return undefined;
  }
  return parseKnownMembers(text);
}

/** Undefined of a text that was not written here. */
export function parseKnownMembers(text: string): KnownMembers | undefined {
  try {
    const known = JSON.parse(text) as Partial<KnownMembers>;
    const { version = 0, settledVersion = 0, nodes, retired, isRemoved, tokens } = known;
    if (!Array.isArray(nodes) || !Array.isArray(retired)) return undefined;
    const numbers: readonly unknown[] = [version, settledVersion, ...nodes, ...retired];
    if (!numbers.every((number) => Number.isSafeInteger(number) && Number(number) >= 0)) return undefined;
    return {
      version,
      settledVersion,
      nodes,
      retired,
      isRemoved: isRemoved === true,
      ...(tokens !== undefined && { tokens }),
    };
  } catch {
    return undefined;
  }
}

/** Writes the latest of what it is told, one write after the other. */
export class MemberCache {
  readonly #directory: string;
  readonly #failed: (error: unknown) => void;
  #known: KnownMembers;
  #isWriting = false;
  #isDirty = false;

  /**
   * @param failed told that a write failed; nothing depends on it
   * @param tokens as they were known last
   */
  constructor(databaseDirectory: string, failed: (error: unknown) => void, tokens?: KnownTokens) {
    const nothing = { version: 0, settledVersion: 0, nodes: [], retired: [], isRemoved: false };
    this.#known = { ...nothing, ...(tokens !== undefined && { tokens }) };
    this.#directory = databaseDirectory;
    this.#failed = failed;
  }

  update({ version, settledVersion, nodes, leaving, retired, tokens }: MetaState): void {
    const ids = [...nodes, ...leaving].map(({ id }) => id);
    const known = this.#known.tokens;
    // After a restart group 0 may be back at an older version here.
    const isNewer = tokens !== undefined && tokens.version >= (known?.version ?? 0);
    const newest = isNewer ? { version: tokens.version, isClosed: hasAdmin(tokens.entries) } : known;
    const told = newest === undefined ? {} : { tokens: newest };
    this.#change({ ...this.#known, version, settledVersion, nodes: ids, retired, ...told });
  }

  removed(): void {
    this.#change({ ...this.#known, isRemoved: true });
  }

  #change(known: KnownMembers): void {
    if (JSON.stringify(known) === JSON.stringify(this.#known)) return;
    this.#known = known;
    this.#isDirty = true;
    if (!this.#isWriting) void this.#write();
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    const path = join(this.#directory, FILE);
    while (this.#isDirty) {
      this.#isDirty = false;
      try {
        const text = `${JSON.stringify(this.#known)}\n`;
        await naming(`${path}.new`, () => writeFile(`${path}.new`, text, { flush: true }));
        await rename(`${path}.new`, path);
      } catch (error) {
        this.#failed(error);
      }
    }
    this.#isWriting = false;
  }
}
