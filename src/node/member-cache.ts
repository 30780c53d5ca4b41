/**
 * Caches the last known members of the cluster, and whether requests need a token, in a small file next to the
 * database. It is read by the program that starts the nodes of a directory, before any of them can be asked, and by
 * the listeners of this node until group 0 is known. The file may be missing or outdated; nothing that must be
 * right depends on it.
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { NodeId } from '../../raft/types.ts';
import { naming } from '../../storage/file-errors.ts';
import type { MetaState } from '../meta/cluster-state.ts';
import { hasAdmin } from '../meta/token-table.ts';

const FILE = 'members.json';

/** The contents of the file. */
export interface KnownMembers {
  /** Version of the list of nodes. With a higher one, or the same and a higher settled one, the list is newer. */
  readonly version: number;
  readonly settledVersion: number;
  /** Members, and nodes that are leaving and needed until all partitions have moved away. */
  readonly nodes: readonly NodeId[];
  readonly retired: readonly NodeId[];
  /** The node that wrote this was removed from the cluster. */
  readonly isRemoved: boolean;
  readonly tokens?: KnownTokens;
}

/** About tokens; which ones there are is not cached. */
export interface KnownTokens {
  readonly version: number;
  /** Every request needs a token. */
  readonly isClosed: boolean;
}

/** Reads the file; undefined if it is missing or invalid. */
export async function readKnownMembers(databaseDirectory: string): Promise<KnownMembers | undefined> {
  let text: string;
  try {
    text = await readFile(join(databaseDirectory, FILE), 'utf8');
  } catch {
    return undefined;
  }
  return parseKnownMembers(text);
}

/** Parses the file; undefined if it is invalid. */
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

/**
 * Writes the file of a database that no node has run on yet, such as a restored one. Without it the node would not
 * know before its start that requests need a token, and would refuse to listen beyond this machine.
 */
export async function writeKnownMembers(databaseDirectory: string, state: MetaState): Promise<void> {
  await writeText(databaseDirectory, textOf(knownAfter(NOTHING_KNOWN, state)));
}

const NOTHING_KNOWN: KnownMembers = {
  version: 0,
  settledVersion: 0,
  nodes: [],
  retired: [],
  isRemoved: false,
};

function knownAfter(known: KnownMembers, state: MetaState): KnownMembers {
  const { version, settledVersion, nodes, leaving, retired, tokens } = state;
  const ids = [...nodes, ...leaving].map(({ id }) => id);
  // After a restart group 0 may be at an older version on this node.
  const isNewer = tokens !== undefined && tokens.version >= (known.tokens?.version ?? 0);
  const newest = isNewer ? { version: tokens.version, isClosed: hasAdmin(tokens.entries) } : known.tokens;
  const ofTokens = newest === undefined ? {} : { tokens: newest };
  return { ...known, version, settledVersion, nodes: ids, retired, ...ofTokens };
}

function textOf(known: KnownMembers): string {
  return `${JSON.stringify(known)}\n`;
}

async function writeText(databaseDirectory: string, text: string): Promise<void> {
  const path = join(databaseDirectory, FILE);
  await naming(`${path}.new`, () => writeFile(`${path}.new`, text, { flush: true }));
  await rename(`${path}.new`, path);
}

/** Writes the latest state to the file, one write after the other. */
export class MemberCache {
  readonly #directory: string;
  readonly #failed: (error: unknown) => void;
  #known: KnownMembers;
  #isWriting = false;
  #isDirty = false;

  /**
   * @param failed called when a write fails; nothing depends on the file
   * @param tokens as read from the file
   */
  constructor(databaseDirectory: string, failed: (error: unknown) => void, tokens?: KnownTokens) {
    this.#known = { ...NOTHING_KNOWN, ...(tokens !== undefined && { tokens }) };
    this.#directory = databaseDirectory;
    this.#failed = failed;
  }

  /** Takes a new state of group 0. */
  update(state: MetaState): void {
    this.#change(knownAfter(this.#known, state));
  }

  /** What was last taken, or read from the file. */
  get known(): KnownMembers {
    return this.#known;
  }

  /** This node was removed from the cluster. */
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
    while (this.#isDirty) {
      this.#isDirty = false;
      try {
        await writeText(this.#directory, textOf(this.#known));
      } catch (error) {
        this.#failed(error);
      }
    }
    this.#isWriting = false;
  }
}
