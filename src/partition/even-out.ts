/**
 * Evens out how many things each node has: who has too many hands one on to a node that may have it, which may have to hand
 * on another first. Along the shortest such path, so that few things change hands. Pure: the same everywhere.
 */
import type { NodeId } from '../../raft/types.ts';

/** Things that one node has at a time, numbered from 0. */
export interface Things {
  /** Changed as things change hands. */
  readonly holders: NodeId[];
  /** Nodes that may have it; its holder may be among them. */
  takersOf(thing: number): readonly NodeId[];
}

/** How many things each node has, of these and of others. Where paths are equally long, those come first that are first here. */
export type Loads = Map<NodeId, number>;

/**
 * Hands things on until every node has `part`, rounded up or down, as far as that can be reached.
 *
 * @param loads kept up to date
 * @param part how many things a node has on average
 */
export function evenOut(things: Things, loads: Loads, part: number): void {
  relieve(things, loads, part);
  const least = Math.floor(part);
  const hands = new Hands(things, loads);
  while (
    hands.handOn(
      (load) => load > least,
      (load) => load < least,
    )
  );
}

/** The same until no node has more than `part`, rounded up; who has less gets nothing for that alone. */
export function relieve(things: Things, loads: Loads, part: number): void {
  const [least, most] = [Math.floor(part), Math.ceil(part)];
  const tooMany = (load: number): boolean => load > most;
  const hands = new Hands(things, loads);
  // What has to be handed on goes where something is missing, if it can.
  while (hands.handOn(tooMany, (load) => load < least));
  while (hands.handOn(tooMany, (load) => load < most));
}

interface Step {
  readonly thing: number;
  readonly from: NodeId;
}

type Judge = (load: number) => boolean;

class Hands {
  readonly #things: Things;
  readonly #loads: Loads;
  readonly #thingsOf: ReadonlyMap<NodeId, Set<number>>;

  constructor(things: Things, loads: Loads) {
    this.#things = things;
    this.#loads = loads;
    this.#thingsOf = new Map([...loads.keys()].map((node) => [node, new Set<number>()]));
    for (const [thing, holder] of things.holders.entries()) this.#thingsOf.get(holder)?.add(thing);
  }

  /** False: no path leads from a node that has too many to one that has too few. */
  handOn(tooMany: Judge, tooFew: Judge): boolean {
    if (![...this.#loads.values()].some(tooFew)) return false;
    // Breadth first: grows while it is gone through.
    const reached = [...this.#loads.keys()].filter((node) => tooMany(this.#loads.get(node) ?? 0));
    const gotBy = new Map<NodeId, Step | undefined>(reached.map((node) => [node, undefined]));
    for (const from of reached) {
      for (const thing of this.#thingsOf.get(from) ?? []) {
        for (const taker of this.#things.takersOf(thing)) {
          if (gotBy.has(taker)) continue;
          gotBy.set(taker, { thing, from });
          if (tooFew(this.#loads.get(taker) ?? 0)) {
            this.#handOnAlong(gotBy, taker);
            return true;
          }
          reached.push(taker);
        }
      }
    }
    return false;
  }

  #handOnAlong(gotBy: ReadonlyMap<NodeId, Step | undefined>, last: NodeId): void {
    let to = last;
    for (let step = gotBy.get(to); step !== undefined; step = gotBy.get(to)) {
      this.#things.holders[step.thing] = to;
      this.#thingsOf.get(step.from)?.delete(step.thing);
      this.#thingsOf.get(to)?.add(step.thing);
      to = step.from;
    }
    this.#loads.set(last, (this.#loads.get(last) ?? 0) + 1);
    this.#loads.set(to, (this.#loads.get(to) ?? 0) - 1);
  }
}
