/**
 * Moves copies so that those of a partition share as few hosts, then as few zones, as the nodes allow, and then so that nodes hold
 * about the same. Pure: the same everywhere. Where nodes share nothing (`Topology.isFlat`) nobody needs it.
 *
 * What the copies of a partition share is a sum over pairs of nodes, and zones are made of whole hosts. So a row of nodes that no
 * exchange of one node for another makes better is the best there is (a sum of convex functions of the sizes of nested sets is
 * M-convex), and after one node came, went or got another label, one exchange in each row is enough. Loads are evened out only by
 * exchanges that make no row worse.
 */
import { assert } from '../../raft/assert.ts';
import type { NodeId } from '../../raft/types.ts';
import type { PlacementTable } from './placement.ts';
import type { Topology } from './topology.ts';
import { Ways } from './ways.ts';

export interface SpreadInit {
  readonly topology: Topology;
  /** Copies of each partition, at most the number of nodes. */
  readonly copies: number;
  /** Where the copies are; nodes that are not in `topology` may still be there. */
  readonly home: PlacementTable;
  /** In which order a partition goes through the nodes where nothing else decides. */
  readonly orderOf: (partition: number) => readonly NodeId[];
  /** Where the copies were when all had moved last, and may still be. */
  readonly settled?: PlacementTable | undefined;
  /** As many copies of a partition may move as there are. */
  readonly isFounding?: true | undefined;
}

/**
 * @param rows by partition, distinct nodes of the topology, at most `copies`; what is missing is added. Not changed
 * @returns in each row first who was there, in the same order, then who came
 */
export function spreadOut(rows: PlacementTable, init: SpreadInit): NodeId[][] {
  const spread = new Spread(rows, init);
  spread.fill();
  spread.mend();
  // First by copies that have to move anyway.
  spread.even(0);
  spread.even(1);
  return spread.rows;
}

/** Nodes are told by their place in the list of nodes of the topology. */
interface Exchange {
  readonly partition: number;
  readonly from: number;
  readonly to: number;
}

class Spread {
  readonly #init: SpreadInit;
  readonly #nodes: readonly NodeId[];
  readonly #placeOf: ReadonlyMap<NodeId, number>;
  /** By partition, as `home` and `settled`. */
  readonly #rows: number[][];
  readonly #home: readonly (readonly number[])[];
  readonly #settled: readonly (readonly number[])[];
  /** By place: which partitions a node has, and how many. */
  readonly #partitions: readonly Set<number>[];
  readonly #held: number[];
  /** Of two places, one after the other: as the topology has it. */
  readonly #closeness: Int32Array;
  /** By place: what a copy there would share with those of a row. Used anew for each. */
  readonly #shared: Int32Array;

  constructor(rows: PlacementTable, init: SpreadInit) {
    this.#init = init;
    const { topology, home, settled = [] } = init;
    this.#nodes = topology.nodes;
    this.#placeOf = new Map(this.#nodes.map((node, place) => [node, place]));
    const placesOf = (row: readonly NodeId[]): number[] =>
      row.flatMap((node) => this.#placeOf.get(node) ?? []);
    this.#rows = rows.map(() => []);
    this.#home = home.map(placesOf);
    this.#settled = settled.map(placesOf);
    this.#partitions = this.#nodes.map(() => new Set());
    this.#held = this.#nodes.map(() => 0);
    this.#closeness = Int32Array.from(
      this.#nodes.flatMap((a) => this.#nodes.map((b) => topology.closeness(a, b))),
    );
    this.#shared = new Int32Array(this.#nodes.length);
    for (const [partition, row] of rows.entries())
      for (const place of placesOf(row)) this.#enter(partition, place);
  }

  get rows(): NodeId[][] {
    return this.#rows.map((row) => row.flatMap((place) => this.#nodes[place] ?? []));
  }

  /** Adds to each row what it lacks: who shares least with it, then who had it when all had moved last, then who holds least. */
  fill(): void {
    for (const [partition, row] of this.#rows.entries()) {
      while (row.length < this.#init.copies) {
        const heir = firstOfLeast(this.#others(partition), (place) => [
          row.reduce((sum, other) => sum + this.#close(other, place), 0),
          this.#settled[partition]?.includes(place) === true ? 0 : 1,
          this.#held[place] ?? 0,
        ]);
        if (heir === undefined) return;
        this.#enter(partition, heir);
      }
    }
  }

  /** Exchanges nodes in rows that get better by it, until there is no such row. */
  mend(): void {
    for (const partition of this.#rows.keys())
      while (this.#some(partition, isBetter)) this.#exchange(this.#bestFor(partition));
  }

  /** Of a row that gets better by some. */
  #bestFor(partition: number): Exchange {
    const others = this.#others(partition);
    const all = (this.#rows[partition] ?? []).flatMap((from) =>
      others.map((to) => ({ partition, from, to })),
    );
    const best = firstOfLeast(all, (each) => [
      this.#gain(each),
      this.#moves(each),
      (this.#held[each.to] ?? 0) - (this.#held[each.from] ?? 0),
    ]);
    assert(best !== undefined, 'partition {} has nobody to exchange', partition);
    return best;
  }

  /** Who does not hold the partition, in the order in which it goes through the nodes. */
  #others(partition: number): number[] {
    const row = this.#rows[partition] ?? [];
    return this.#init
      .orderOf(partition)
      .flatMap((node) => this.#placeOf.get(node) ?? [])
      .filter((place) => !row.includes(place));
  }

  /**
   * Hands copies on from nodes that hold more to nodes that hold at least two less, along the shortest paths, by exchanges after which
   * rows share as little as before.
   *
   * @param movesMax how many more copies an exchange may move; none of a partition of which one moves already, unless it is founded
   */
  even(movesMax: 0 | 1): void {
    // Nobody has two less than another: there is no way that anything could go.
    if (Math.max(...this.#held) - Math.min(...this.#held) < 2) return;
    const ways = new Ways(this.#nodes.length);
    const count = (partition: number, by: 1 | -1): void => {
      const isWhole = this.#isHome(partition);
      this.#some(partition, (gain, from, to) => {
        if (gain === 0 && this.#mayMove({ partition, from, to }, movesMax, isWhole)) ways.count(from, to, by);
        return false;
      });
    };
    for (const partition of this.#rows.keys()) count(partition, 1);
    const exchange = (each: Exchange): void => {
      count(each.partition, -1);
      this.#exchange(each);
      count(each.partition, 1);
    };
    /** From whom there was a path that could not be gone. */
    const stuck = new Set<number>();
    for (;;) {
      const path = ways.path(this.#held, stuck);
      const [start] = path ?? [];
      if (path === undefined || start === undefined) return;
      if (this.#handOnAlong(path, movesMax, exchange)) stuck.clear();
      else stuck.add(start);
    }
  }

  /**
   * Whether `is` says so of some exchange in this row. Asked of all until then.
   *
   * @param is told what the row gains, and of which nodes; may not call this again
   */
  #some(partition: number, is: (gain: number, from: number, to: number) => boolean): boolean {
    const row = this.#rows[partition] ?? [];
    const [shared, count] = [this.#shared, this.#nodes.length];
    shared.fill(0);
    for (const other of row)
      for (let to = 0; to < count; to += 1) shared[to] = (shared[to] ?? 0) + this.#close(other, to);
    for (const from of row) {
      const before = (shared[from] ?? 0) - this.#close(from, from);
      for (let to = 0; to < count; to += 1) {
        if (row.includes(to)) continue;
        if (is((shared[to] ?? 0) - this.#close(from, to) - before, from, to)) return true;
      }
    }
    return false;
  }

  /** All of it or nothing, for an exchange may end what another one on the path needs. Says whether it did. */
  #handOnAlong(path: readonly number[], movesMax: number, exchange: (each: Exchange) => void): boolean {
    const done: Exchange[] = [];
    for (let i = path.length - 1; i > 0; i -= 1) {
      const next = this.#between(path[i - 1] ?? 0, path[i] ?? 0, movesMax);
      if (next === undefined) {
        for (const { partition, from, to } of done.toReversed()) exchange({ partition, from: to, to: from });
        return false;
      }
      exchange(next);
      done.push(next);
    }
    return true;
  }

  /** The exchange that moves least; of those the one of the first partition. */
  #between(from: number, to: number, movesMax: number): Exchange | undefined {
    let [best, bestMoves]: [Exchange | undefined, number] = [undefined, 0];
    for (const partition of this.#partitions[from] ?? []) {
      const each = { partition, from, to };
      const moves = this.#moves(each);
      // Most are no better than the best so far, which takes least to tell.
      if (best !== undefined && (moves > bestMoves || (moves === bestMoves && partition > best.partition)))
        continue;
      if (this.#partitions[to]?.has(partition) === true || this.#gain(each) !== 0) continue;
      if (this.#mayMove(each, movesMax, this.#isHome(partition))) [best, bestMoves] = [each, moves];
    }
    return best;
  }

  #exchange({ partition, from, to }: Exchange): void {
    const row = this.#rows[partition] ?? [];
    row.splice(row.indexOf(from), 1);
    this.#partitions[from]?.delete(partition);
    this.#held[from] = (this.#held[from] ?? 0) - 1;
    this.#enter(partition, to);
  }

  #enter(partition: number, place: number): void {
    this.#rows[partition]?.push(place);
    this.#partitions[place]?.add(partition);
    this.#held[place] = (this.#held[place] ?? 0) + 1;
  }

  /** @param isHome of the partition */
  #mayMove(each: Exchange, movesMax: number, isHome: boolean): boolean {
    const moves = this.#moves(each);
    return moves <= 0 || (moves <= movesMax && (isHome || this.#init.isFounding === true));
  }

  /** No copy of it moves as yet. */
  #isHome(partition: number): boolean {
    const home = this.#home[partition] ?? [];
    return (this.#rows[partition] ?? []).every((place) => home.includes(place));
  }

  /** How many more copies move with it than without. */
  #moves({ partition, from, to }: Exchange): number {
    const home = this.#home[partition] ?? [];
    return (home.includes(from) ? 1 : 0) - (home.includes(to) ? 1 : 0);
  }

  /** What the row shares after the exchange, and did not before; negative: it gets better. */
  #gain({ partition, from, to }: Exchange): number {
    let gain = 0;
    for (const other of this.#rows[partition] ?? [])
      if (other !== from) gain += this.#close(other, to) - this.#close(other, from);
    return gain;
  }

  #close(a: number, b: number): number {
    return this.#closeness[a * this.#nodes.length + b] ?? 0;
  }
}

function isBetter(gain: number): boolean {
  return gain < 0;
}

/** The first of those whose key is least, number by number. */
function firstOfLeast<T>(values: readonly T[], keyOf: (value: T) => readonly number[]): T | undefined {
  let [least, leastKey]: [T | undefined, readonly number[]] = [undefined, []];
  for (const value of values) {
    const key = keyOf(value);
    const differing = key.findIndex((part, i) => part !== leastKey[i]);
    if (least === undefined || (differing >= 0 && (key[differing] ?? 0) < (leastKey[differing] ?? 0)))
      [least, leastKey] = [value, key];
  }
  return least;
}
