/**
 * Evens out how many things each node has: a node with more hands one to a node with at least two less, which may first have to
 * hand on another one. Paths are as short as can be, so that few things change hands. Pure: the same everywhere. Nodes and things are
 * numbered from 0.
 */

export interface Things {
  readonly count: number;
  /** By node: how many it has. */
  readonly loads: readonly number[];
  /** Calls `visit` for every two nodes between which the thing may change hands now. */
  forEachExchange(thing: number, visit: (from: number, to: number) => void): void;
  /** The thing that goes first from one to the other; undefined if none may. */
  between(from: number, to: number): number | undefined;
  /** Changes `loads`, and between whom the thing may change hands, but nothing of other things. */
  handOn(thing: number, from: number, to: number): void;
}

/** Where a path may begin and end; absent: anywhere. */
export interface Limits {
  readonly mayGive?: ((node: number) => boolean) | undefined;
  readonly mayReceive?: ((node: number) => boolean) | undefined;
}

/** Until no path leads from a node to one with at least two less. */
export function evenOut(things: Things, limits: Limits = {}): void {
  const { loads } = things;
  if (Math.max(...loads) - Math.min(...loads) < 2) return;
  const exchanges = new Exchanges(things);
  /** From whom there was a path that could not be gone. */
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
  /** By giver and taker: how many things may change hands between them. */
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

  /** From the node with most that reaches one with at least two less, to the nearest such node. */
  path(except: ReadonlySet<number>, { mayGive = any, mayReceive = any }: Limits): number[] | undefined {
    const { loads } = this.#things;
    const least = Math.min(...loads);
    const starts = [...loads.keys()]
      .filter((node) => !except.has(node) && this.#load(node) >= least + 2 && mayGive(node))
      .sort((a, b) => this.#load(b) - this.#load(a) || a - b);
    // A node that one with more reached in vain leads to none with so little.
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
    // Breadth first: grows while the loop goes through it.
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

  /** All of the path or nothing, for one exchange may end what another one needs. Says whether it did. */
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
