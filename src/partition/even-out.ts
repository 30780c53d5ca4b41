/**
 * Balances how many things each node has. A node with more hands one over to a node with at least two less, if
 * necessary along a path of nodes that each hand something on. Shortest paths are used, so that few things move. A pure
 * function, so all nodes compute the same. Nodes and things are numbered from 0.
 */

/** The things to balance among the nodes. */
export interface Things {
  readonly count: number;
  /** How many things each node has. */
  readonly loads: readonly number[];
  /** Calls `visit` for every pair of nodes between which the thing may move now. */
  forEachExchange(thing: number, visit: (from: number, to: number) => void): void;
  /** The thing that should move first from one to the other; undefined if none may. */
  between(from: number, to: number): number | undefined;
  /** Moves the thing: changes `loads` and between which nodes this thing may move, but nothing about other things. */
  handOn(thing: number, from: number, to: number): void;
}

/** Where a path may begin and end; anywhere if absent. */
export interface Limits {
  readonly mayGive?: ((node: number) => boolean) | undefined;
  readonly mayReceive?: ((node: number) => boolean) | undefined;
}

/** Moves things until no path leads from a node to one with at least two less. */
export function evenOut(things: Things, limits: Limits = {}): void {
  const { loads } = things;
  if (Math.max(...loads) - Math.min(...loads) < 2) return;
  const exchanges = new Exchanges(things);
  /** Nodes with a path that could not be used. */
  const stuck = new Set<number>();
  for (;;) {
    const path = exchanges.path(stuck, limits);
    const [start] = path ?? [];
    if (path === undefined || start === undefined) return;
    if (exchanges.handOnAlong(path)) stuck.clear();
    else stuck.add(start);
  }
}

class Exchanges {
  readonly #things: Things;
  readonly #nodes: number;
  /** For each giver and taker: how many things may move between them. */
  readonly #counts: Int32Array;

  constructor(things: Things) {
    this.#things = things;
    this.#nodes = things.loads.length;
    this.#counts = new Int32Array(this.#nodes ** 2);
    for (let thing = 0; thing < things.count; thing += 1) this.#count(thing, 1);
  }

  #count(thing: number, by: 1 | -1): void {
    this.#things.forEachExchange(thing, (from, to) => {
      const at = from * this.#nodes + to;
      this.#counts[at] = (this.#counts[at] ?? 0) + by;
    });
  }

  #load(node: number): number {
    return this.#things.loads[node] ?? 0;
  }

  /** The shortest path from the fullest possible node to a node with at least two less. */
  path(except: ReadonlySet<number>, { mayGive = any, mayReceive = any }: Limits): number[] | undefined {
    const { loads } = this.#things;
    const least = Math.min(...loads);
    const starts = [...loads.keys()]
      .filter((node) => !except.has(node) && this.#load(node) >= least + 2 && mayGive(node))
      .sort((a, b) => this.#load(b) - this.#load(a) || a - b);
    // Nodes that a fuller node reached in vain need not be searched again.
    const cameFrom = new Map<number, number | undefined>();
    for (const start of starts) {
      if (cameFrom.has(start)) continue;
      cameFrom.set(start, undefined);
      const most = this.#load(start) - 2;
      const last = this.#search(start, cameFrom, (node) => this.#load(node) <= most && mayReceive(node));
      if (last !== undefined) return pathTo(last, cameFrom);
    }
    return undefined;
  }

  #search(
    start: number,
    cameFrom: Map<number, number | undefined>,
    isEnd: (node: number) => boolean,
  ): number | undefined {
    // Breadth-first search; the list grows while the loop runs through it.
    const reached = [start];
    for (const from of reached) {
      for (let to = 0; to < this.#nodes; to += 1) {
        if (cameFrom.has(to) || this.#counts[from * this.#nodes + to] === 0) continue;
        cameFrom.set(to, from);
        if (isEnd(to)) return to;
        reached.push(to);
      }
    }
    return undefined;
  }

  /** Uses all of the path or nothing, because one move may rule out another. Returns whether it did. */
  handOnAlong(path: readonly number[]): boolean {
    const done: [thing: number, from: number, to: number][] = [];
    for (let i = path.length - 1; i > 0; i -= 1) {
      const [from = 0, to = 0] = path.slice(i - 1);
      const thing = this.#things.between(from, to);
      if (thing === undefined) {
        for (const [each, giver, taker] of done.toReversed()) this.#handOn(each, taker, giver);
        return false;
      }
      this.#handOn(thing, from, to);
      done.push([thing, from, to]);
    }
    return true;
  }

  #handOn(thing: number, from: number, to: number): void {
    this.#count(thing, -1);
    this.#things.handOn(thing, from, to);
    this.#count(thing, 1);
  }
}

function any(): boolean {
  return true;
}

function pathTo(last: number, cameFrom: ReadonlyMap<number, number | undefined>): number[] {
  const path: number[] = [];
  for (let node: number | undefined = last; node !== undefined; node = cameFrom.get(node)) path.unshift(node);
  return path;
}
