/**
 * Decides which nodes hold each partition. The copies of a partition share as few hosts, then as few zones, as the
 * nodes allow; after that, the nodes hold about the same number of copies. A pure function, so all nodes compute the
 * same. Nodes are numbered from 0.
 *
 * The closeness of a row of nodes (how many hosts and zones they share) is a sum over pairs of nodes, and zones
 * consist of whole hosts. So a row of nodes that no single exchange of nodes improves is optimal (a sum of convex
 * functions of the sizes of nested sets is M-convex), and after one node joined, left or got new labels, one
 * exchange per row is enough. Loads are balanced only by exchanges that make no row worse. Without labels all rows
 * are equally good, and what remains is consistent hashing with bounded loads.
 */
import { assert } from '../../raft/assert.ts';
import { evenOut, type Limits } from './even-out.ts';

/** The place of a node that has left. */
export const NOWHERE = -1;

/** One row of nodes per partition. */
type Rows = readonly (readonly number[])[];

/** The input of `placeCopies`. */
export interface CopiesInit {
  readonly nodeCount: number;
  /** Copies of each partition, at most the number of nodes. */
  readonly copies: number;
  /** The copies that need not move: distinct nodes, at most `copies` per row. */
  readonly rows: Rows;
  /** Where the data is, the leader first, so that a copy anywhere else moves data; `NOWHERE` for nodes that left. */
  readonly home: Rows;
  /** Where the copies were when all had finished moving last, and may still be; `NOWHERE` for nodes that left. */
  readonly settled: Rows;
  /** How much worse a copy on each of these two nodes is than on two nodes without a common host or zone. */
  readonly closeness: (a: number, b: number) => number;
  /** The order in which a partition meets the nodes on the ring. */
  readonly orderOf: (partition: number) => readonly number[];
  /** May the node get a copy that could stay where it is, to balance the loads? */
  readonly mayReceive: (node: number) => boolean;
}

/** Computes the rows. Each row lists first the nodes that stay, in the same order, then the new ones. */
export function placeCopies(init: CopiesInit): number[][] {
  const copies = new Copies(init);
  copies.fill();
  copies.mend();
  copies.even();
  return copies.rows;
}

/**
 * The cost of taking a copy from a node: if its data is there, and if it was there when all had finished moving last.
 */
const HOME_COST = 4;
const SETTLED_COST = 1;

interface Exchange {
  readonly partition: number;
  readonly from: number;
  readonly to: number;
}

class Copies {
  readonly rows: number[][];
  readonly #init: CopiesInit;
  /** For each node: the partitions it holds, and their number. */
  readonly #partitions: readonly Set<number>[];
  readonly #held: number[];
  /** The average number of copies per node, rounded up. */
  readonly #part: number;
  /** For each partition and node: the cost of taking a copy from there. */
  readonly #costs: Uint8Array;
  /** For each pair of nodes, row by row: how close they are. */
  readonly #closeness: Int32Array;
  /** For each node: the closeness of a copy there to those of a row. Reused for each row. */
  readonly #shared: Int32Array;

  constructor(init: CopiesInit) {
    this.#init = init;
    const { nodeCount, closeness, rows, copies } = init;
    const nodes = Array.from({ length: nodeCount }, (_, node) => node);
    this.rows = rows.map(() => []);
    this.#partitions = nodes.map(() => new Set());
    this.#held = nodes.map(() => 0);
    this.#part = Math.ceil((rows.length * copies) / nodeCount);
    this.#closeness = Int32Array.from(nodes.flatMap((a) => nodes.map((b) => closeness(a, b))));
    this.#shared = new Int32Array(nodeCount);
    this.#costs = new Uint8Array(rows.length * nodeCount);
    this.#addCosts(init.home, HOME_COST);
    this.#addCosts(init.settled, SETTLED_COST);
    for (const [partition, row] of rows.entries()) for (const node of row) this.#enter(partition, node);
  }

  #addCosts(rows: Rows, cost: number): void {
    for (const [partition, row] of rows.entries()) {
      for (const node of row) {
        if (node === NOWHERE) continue;
        const at = partition * this.#init.nodeCount + node;
        this.#costs[at] = (this.#costs[at] ?? 0) + cost;
      }
    }
  }

  /**
   * Fills each row up: first with nodes that share the fewest hosts and zones with it, then with nodes that had it
   * when all had finished moving, then with nodes that have room.
   */
  fill(): void {
    for (const [partition, row] of this.rows.entries()) {
      const cost = (node: number): number =>
        -this.#costOf(partition, node) + ((this.#held[node] ?? 0) < this.#part ? 0 : SETTLED_COST / 2);
      while (row.length < this.#init.copies) {
        const shared = this.#sharedWith(row);
        const worse = (a: number, b: number): number =>
          (shared[a] ?? 0) - (shared[b] ?? 0) || cost(a) - cost(b);
        this.#enter(partition, firstOf(this.#others(partition), worse));
      }
    }
  }

  /** Exchanges nodes in rows that this improves, until no row can be improved. */
  mend(): void {
    for (const partition of this.rows.keys()) {
      let least = -1;
      while (least < 0) {
        least = 0;
        this.#forEach(partition, (gain) => {
          if (gain < least) least = gain;
        });
        if (least < 0) this.#exchange(this.#bestFor(partition));
      }
    }
  }

  /** The best exchange for a row that some exchange improves. */
  #bestFor(partition: number): Exchange {
    const others = this.#others(partition);
    const all = (this.rows[partition] ?? []).flatMap((from) => others.map((to) => ({ partition, from, to })));
    const moreHeld = ({ from, to }: Exchange): number => (this.#held[to] ?? 0) - (this.#held[from] ?? 0);
    return firstOf(
      all,
      (a, b) => this.#gain(a) - this.#gain(b) || this.#cost(a) - this.#cost(b) || moreHeld(a) - moreHeld(b),
    );
  }

  /** The nodes that do not hold the partition, in the order of the ring. */
  #others(partition: number): number[] {
    const row = this.rows[partition] ?? [];
    return this.#init.orderOf(partition).filter((node) => !row.includes(node));
  }

  even(): void {
    const { mayReceive } = this.#init;
    // First with copies that move anyway. Those that return to their former node are spared unless a node has more
    // than its part.
    this.#evenBy(0);
    this.#evenBy(SETTLED_COST, { mayGive: (node) => (this.#held[node] ?? 0) > this.#part });
    // Then with one more copy of each partition of which no copy moves.
    if (this.#held.some((_, node) => mayReceive(node)))
      this.#evenBy(HOME_COST + SETTLED_COST, { mayReceive });
  }

  /** @param costMax of an exchange; at most `SETTLED_COST` if a copy of the partition moves already */
  #evenBy(costMax: number, limits?: Limits): void {
    const costMaxOf = (partition: number): number =>
      this.#isHome(partition) ? costMax : Math.min(costMax, SETTLED_COST);
    const forEachExchange = (partition: number, visit: (from: number, to: number) => void): void => {
      const most = costMaxOf(partition);
      // Any exchange in such a row moves a copy.
      if (most < HOME_COST && this.#isHome(partition)) return;
      this.#forEach(partition, (gain, from, to) => {
        if (gain === 0 && this.#cost({ partition, from, to }) <= most) visit(from, to);
      });
    };
    const isAllowed = (each: Exchange): boolean =>
      this.#partitions[each.from]?.has(each.partition) === true &&
      this.#partitions[each.to]?.has(each.partition) === false &&
      this.#cost(each) <= costMaxOf(each.partition) &&
      this.#gain(each) === 0;
    /** For each giver and taker: the exchanges that were allowed when last computed, the next one at the end. */
    const queues = new Map<number, Exchange[]>();
    const next = (from: number, to: number): Exchange | undefined => {
      const queue = queues.get(from * this.#held.length + to) ?? [];
      for (let each = queue.pop(); each !== undefined; each = queue.pop()) if (isAllowed(each)) return each;
      return undefined;
    };
    const rankAll = (from: number, to: number): void => {
      const all = Array.from(this.#partitions[from] ?? [], (partition) => ({ partition, from, to }));
      const ranked = all.filter(isAllowed).map((each) => [this.#rank(each), each] as const);
      ranked.sort(([a], [b]) => b - a);
      queues.set(
        from * this.#held.length + to,
        ranked.map(([, each]) => each),
      );
    };
    const between = (from: number, to: number): number | undefined => {
      const known = next(from, to);
      if (known !== undefined) return known.partition;
      rankAll(from, to);
      return next(from, to)?.partition;
    };
    const handOn = (partition: number, from: number, to: number): void =>
      this.#exchange({ partition, from, to });
    evenOut({ count: this.rows.length, loads: this.#held, forEachExchange, between, handOn }, limits);
  }

  /**
   * Cheap exchanges first, then partitions that another node leads, then those that meet the taker first on the ring.
   */
  #rank(each: Exchange): number {
    const { home, orderOf, nodeCount } = this.#init;
    const { partition, from, to } = each;
    const isLed = home[partition]?.[0] === from ? 1 : 0;
    return (2 * this.#cost(each) + isLed) * nodeCount + orderOf(partition).indexOf(to);
  }

  /**
   * Calls `visit` for each exchange in this row, with the increase of the row's closeness. `visit` must not call this
   * again.
   */
  #forEach(partition: number, visit: (gain: number, from: number, to: number) => void): void {
    const row = this.rows[partition] ?? [];
    const shared = this.#sharedWith(row);
    for (const from of row) {
      const before = (shared[from] ?? 0) - this.#close(from, from);
      for (let to = 0; to < shared.length; to += 1)
        if (!row.includes(to)) visit((shared[to] ?? 0) - this.#close(from, to) - before, from, to);
    }
  }

  #sharedWith(row: readonly number[]): Int32Array {
    const shared = this.#shared.fill(0);
    for (const other of row)
      for (let node = 0; node < shared.length; node += 1)
        shared[node] = (shared[node] ?? 0) + this.#close(other, node);
    return shared;
  }

  #exchange({ partition, from, to }: Exchange): void {
    const row = this.rows[partition] ?? [];
    row.splice(row.indexOf(from), 1);
    this.#partitions[from]?.delete(partition);
    this.#held[from] = (this.#held[from] ?? 0) - 1;
    this.#enter(partition, to);
  }

  #enter(partition: number, node: number): void {
    this.rows[partition]?.push(node);
    this.#partitions[node]?.add(partition);
    this.#held[node] = (this.#held[node] ?? 0) + 1;
  }

  /** No copy of the partition moves so far. */
  #isHome(partition: number): boolean {
    const home = this.#init.home[partition] ?? [];
    return (this.rows[partition] ?? []).every((node) => home.includes(node));
  }

  #cost({ partition, from, to }: Exchange): number {
    return this.#costOf(partition, from) - this.#costOf(partition, to);
  }

  #costOf(partition: number, node: number): number {
    return this.#costs[partition * this.#init.nodeCount + node] ?? 0;
  }

  /** The increase of the row's closeness by the exchange; negative if it improves. */
  #gain({ partition, from, to }: Exchange): number {
    let gain = 0;
    for (const other of this.rows[partition] ?? [])
      if (other !== from) gain += this.#close(other, to) - this.#close(other, from);
    return gain;
  }

  #close(a: number, b: number): number {
    return this.#closeness[a * this.#init.nodeCount + b] ?? 0;
  }
}

/** The first of the smallest values. */
function firstOf<T>(values: readonly T[], compare: (a: T, b: T) => number): T {
  assert(values.length > 0, 'nothing to choose from');
  return values.reduce((best, value) => (compare(value, best) < 0 ? value : best));
}
