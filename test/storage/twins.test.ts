/**
 * The store on LevelDB and the store in memory get the same random writes: logs that grow, are replaced and compacted,
 * snapshots taken and received, groups removed and back again, crashes in which a write is lost or kept. Both must
 * contain the same at every start.
 */
import { deepStrictEqual } from 'node:assert';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { expect, it } from 'vitest';
import type { GroupWrite } from '../../raft/driver/store.ts';
import type { Entry, StoredGroup } from '../../raft/types.ts';
import type { LevelStore } from '../../storage/level-store.ts';
import { type Fate, MemoryStore } from '../../storage/memory-store.ts';
import { type DiskContent, emptyDisk, openSimStore, SimDatabase } from '../sim/database.ts';
import { chunk, meta, storedSnapshot } from './fixtures.ts';

const GROUPS = [1, 2, 3];
const STEPS = 250;
const SEEDS = 15;

type Random = (bound: number) => number;

interface Staged {
  index: number;
  chunks: Uint8Array[];
}

class Twins {
  readonly #random: Random;
  #level!: LevelStore;
  #database!: SimDatabase;
  #memory = new MemoryStore({ schedule: (fn) => this.#pending.push(fn) });
  readonly #pending: (() => void)[] = [];
  readonly #staged = new Map<number, Staged>();
  #term = 1;

  constructor(seed: number) {
    const generator = xoroshiro128plus(seed);
    this.#random = (bound) => uniformInt(generator, 0, bound - 1);
  }

  async open(content: DiskContent): Promise<void> {
    this.#database = new SimDatabase(content, (complete) => this.#pending.push(complete));
    this.#level = await openSimStore(this.#database);
  }

  async step(): Promise<void> {
    const writes: GroupWrite[] = [];
    for (const group of GROUPS) {
      const write = this.#random(3) === 0 ? undefined : await this.#writeFor(group);
      if (write !== undefined) writes.push(write);
    }
    let answers = 0;
    for (const store of [this.#level, this.#memory]) store.write(writes, () => (answers += 1));
    if (this.#random(12) === 0) {
      await this.#crash(this.#random(2) === 0 ? 'lost' : 'kept');
      return;
    }
    for (const complete of this.#pending.splice(0)) complete();
    deepStrictEqual(answers, 2);
    for (const { group, stage, install, snapshot, remove } of writes)
      this.#noteStaged(group, stage, install ?? snapshot, remove);
  }

  #noteStaged(
    group: number,
    stage: GroupWrite['stage'],
    promoted: object | undefined,
    remove: true | undefined,
  ): void {
    if (stage !== undefined) {
      const before = stage.first === 0 ? [] : (this.#staged.get(group)?.chunks ?? []);
      this.#staged.set(group, { index: stage.index, chunks: [...before, ...stage.chunks] });
    }
    if (promoted !== undefined || remove === true) this.#staged.delete(group);
  }

  async #crash(fate: Fate): Promise<void> {
    this.#pending.length = 0;
    this.#staged.clear();
    this.#memory = new MemoryStore({
      schedule: (fn) => this.#pending.push(fn),
      disk: this.#memory.crash(fate),
    });
    await this.open(this.#database.crash(fate));
    await this.mustBeSame();
  }

  async mustBeSame(): Promise<void> {
    deepStrictEqual(this.#level.groups(), this.#memory.groups());
    for (const group of GROUPS) {
      deepStrictEqual(await this.#level.load(group), await this.#memory.load(group));
      deepStrictEqual(await storedSnapshot(this.#level, group), await storedSnapshot(this.#memory, group));
    }
  }

  async #writeFor(group: number): Promise<GroupWrite | undefined> {
    const stored = await this.#memory.load(group);
    const placement = stored?.placement ?? 0;
    if (stored?.removed === true) {
      return this.#random(4) === 0 ? { group, placement: placement + 1, entries: [] } : undefined;
    }
    const { term = 0, commit = 0 } = stored?.hardState ?? {};
    if (this.#random(25) === 0 && placement >= 0) {
      const hardState = { term: term + 1, vote: 0, commit: 0 };
      return { group, placement: placement + 1, remove: true, hardState, entries: [] };
    }
    const last = stored?.entries.at(-1) ?? stored?.base ?? { index: 0, term: 0 };
    const staged = this.#staged.get(group);
    switch (this.#random(6)) {
      case 0:
        return this.#stage(group, stored, staged);
      case 1:
        if (staged === undefined) return this.#stage(group, stored, undefined);
        return this.#promote(group, stored, staged);
      case 2: {
        const at = stored?.entries.find(({ index }) => index === stored.snapshot?.index);
        return at === undefined ? undefined : { group, entries: [], compactTo: positionOf(at) };
      }
      default: {
        const kept = Math.max(commit, stored?.snapshot?.index ?? 0);
        const from = this.#random(5) === 0 ? kept + 1 : last.index + 1;
        if (this.#random(4) === 0) this.#term += 1;
        const entries = this.#entries(
          Math.min(from, last.index + 1),
          1 + this.#random(8),
          Math.max(this.#term, term, last.term),
        );
        const end = entries.at(-1);
        const reached = commit + this.#random(1 + Math.max(0, (end?.index ?? 0) - commit));
        return { group, entries, hardState: { term: end?.term ?? term, vote: 0, commit: reached } };
      }
    }
  }

  #entries(from: number, count: number, term: number): Entry[] {
    return Array.from({ length: count }, (_, i) => ({
      index: from + i,
      term,
      timeMillis: term * 1_000,
      kind: 'command' as const,
      data: new Uint8Array(this.#random(20)).fill(this.#random(250)),
    }));
  }

  /** The next chunk of the staged snapshot, or the first chunk of one within the log or beyond it. */
  #stage(group: number, stored: StoredGroup | undefined, staged: Staged | undefined): GroupWrite | undefined {
    const chunks = [chunk(this.#random(250), 1 + this.#random(30)), chunk(7, 3)].slice(this.#random(2));
    const floor = Math.max(stored?.snapshot?.index ?? 0, stored?.hardState.commit ?? 0);
    if (staged !== undefined && staged.index > floor && this.#random(4) > 0) {
      return { group, entries: [], stage: { index: staged.index, first: staged.chunks.length, chunks } };
    }
    const inLog = stored?.entries.filter(({ index }) => index > (stored.snapshot?.index ?? 0)) ?? [];
    const within = inLog[this.#random(Math.max(1, inLog.length))];
    const index = this.#random(2) === 0 && within !== undefined ? within.index : floor + 1 + this.#random(40);
    return { group, entries: [], stage: { index, first: 0, chunks } };
  }

  #promote(group: number, stored: StoredGroup | undefined, staged: Staged): GroupWrite | undefined {
    const { term = 0, commit = 0 } = stored?.hardState ?? {};
    if (staged.index <= (stored?.snapshot?.index ?? 0)) return undefined;
    const at = stored?.entries.find(({ index }) => index === staged.index);
    const named = meta(staged.index, staged.chunks, at?.term ?? Math.max(term, 1));
    if (at !== undefined && this.#random(2) === 0) {
      return { group, entries: [], snapshot: { ...named, timeMillis: at.timeMillis } };
    }
    if (staged.index < commit) return undefined;
    const hardState = { term: Math.max(term, named.term), vote: 0, commit: staged.index };
    return { group, entries: [], install: { ...named, timeMillis: named.term * 1_000 }, hardState };
  }
}

function positionOf({ index, term, timeMillis }: Entry): { index: number; term: number; timeMillis: number } {
  return { index, term, timeMillis };
}

it('both stores contain the same after random writes, deletions and losses', async () => {
  let steps = 0;
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const twins = new Twins(seed);
    await twins.open(emptyDisk());
    for (let i = 0; i < STEPS; i += 1, steps += 1) {
      await twins.step().catch((error: unknown) => {
        throw new Error(`seed ${seed}, step ${i}: ${String(error)}`, { cause: error });
      });
    }
    await twins.mustBeSame();
  }
  expect(steps).toBe(SEEDS * STEPS);
});
