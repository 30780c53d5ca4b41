/**
 * The placement that follows another one when the nodes change: few replicas move, and few leaders. Pure: the same
 * everywhere. The first placement is the ring's (placement.ts), and later ones go on from the one before: no function of the
 * nodes alone moves little both when a node comes and when it goes.
 */
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import { evenOut, type Loads, relieve } from './even-out.ts';
import type { Hash32 } from './hash.ts';
import type { PlacementTable } from './placement.ts';
import { Ring } from './ring.ts';

/** A node comes, one goes, or one comes in the place of one that goes. */
export interface MemberChange {
  readonly joins?: NodeId | undefined;
  readonly leaves?: NodeId | undefined;
  /** Where partitions were when all had moved last: that of before, or an earlier one. */
  readonly settled?: PlacementTable | undefined;
}

/**
 * - A node that comes in the place of another gets all that this one held and led, and nothing else changes.
 * - A node that joins takes partitions, one at a time, from whoever holds most, and at most its part, rounded up.
 * - What a node held that leaves goes back to who had it when all had moved last, for it may not have moved yet, or to
 *   those that hold least; nothing else moves.
 * - Then leaders are evened out among those that hold a partition.
 *
 * Where there is a choice, it is the ring's: a partition goes to a node that it meets early, clockwise.
 *
 * @param before its rows are not changed
 * @param nodes those that `before` was made for; more than a row has, if one leaves
 */
export function nextPlacement(
  before: PlacementTable,
  nodes: readonly NodeId[],
  { joins, leaves, settled = [] }: MemberChange,
  hash: Hash32,
): PlacementTable {
  if (joins !== undefined && leaves !== undefined)
    return before.map((row) => row.map((node) => (node === leaves ? joins : node)));
  const next = new NextPlacement(before, nodes);
  if (joins !== undefined) next.join(joins, new Ring([joins], hash));
  const others = nodes.filter((node) => node !== leaves);
  if (leaves !== undefined) next.leave(leaves, new Ring(others, hash), settled);
  next.evenOutLeaders();
  return next.rows;
}

interface Inheritance {
  readonly from: NodeId;
  readonly heir: NodeId;
  readonly ledBefore: NodeId | undefined;
}

class NextPlacement {
  readonly rows: NodeId[][];
  readonly #copies: number;
  readonly #held: Loads;
  readonly #led: Loads;

  constructor(before: PlacementTable, nodes: readonly NodeId[]) {
    this.rows = before.map((row) => [...row]);
    this.#copies = before.flat().length;
    this.#held = new Map(nodes.toSorted((a, b) => a - b).map((node) => [node, 0]));
    this.#led = new Map(this.#held);
    for (const row of before) {
      for (const node of row) add(this.#held, node, 1);
      add(this.#led, row[0], 1);
    }
  }

  get #heldPart(): number {
    return this.#copies / this.#held.size;
  }

  get #ledPart(): number {
    return this.rows.length / this.#led.size;
  }

  /** @param ring where `node` is, and nobody else */
  join(node: NodeId, ring: Ring): void {
    this.#held.set(node, 0);
    this.#led.set(node, 0);
    const gifts = new Gifts(this.rows, ring);
    const part = Math.ceil(this.#heldPart);
    for (let held = 0; held < part; held += 1) {
      const giver = mostOf(this.#held);
      // Whoever holds more than `node` holds something that `node` does not.
      if (loadOf(this.#held, giver) < held + 2) return;
      const leadsTooMany = loadOf(this.#led, giver) > Math.ceil(this.#ledPart);
      const partition = gifts.take(giver, leadsTooMany);
      if (partition === undefined) return;
      this.#replace(partition, giver, node);
    }
  }

  #replace(partition: number, from: NodeId, to: NodeId): void {
    const row = this.rows[partition] ?? [];
    const others = row.filter((node) => node !== from);
    const isLed = row[0] === from;
    this.rows[partition] = isLed ? [to, ...others] : [...others, to];
    for (const loads of isLed ? [this.#held, this.#led] : [this.#held]) {
      add(loads, from, -1);
      add(loads, to, 1);
    }
  }

  leave(node: NodeId, ring: Ring, settled: PlacementTable): void {
    this.#held.delete(node);
    this.#led.delete(node);
    const left = [...this.rows.keys()].filter((partition) => this.rows[partition]?.includes(node));
    const takers = left.map((partition) => {
      const row = this.rows[partition] ?? [];
      return ring.orderOf(partition).filter((other) => !row.includes(other));
    });
    const heirs = this.#heirs(
      takers,
      left.map((partition) => settled[partition] ?? []),
    );
    relieve({ holders: heirs, takersOf: (i) => takers[i] ?? [] }, this.#held, this.#heldPart);
    for (const [i, partition] of left.entries())
      this.#inherit(partition, { from: node, heir: heirs[i] ?? node, ledBefore: settled[partition]?.[0] });
  }

  /** Who had it when all had moved last, or who holds least. */
  #heirs(takers: readonly (readonly NodeId[])[], settled: PlacementTable): NodeId[] {
    const heirs = takers.map((nodes, i) => nodes.find((node) => settled[i]?.includes(node)));
    for (const heir of heirs) add(this.#held, heir, 1);
    return heirs.map((former, i) => {
      const heir = former ?? leastOf(this.#held, takers[i] ?? []);
      if (former === undefined) add(this.#held, heir, 1);
      return heir;
    });
  }

  /** Who led it before, or else holds it already, leads it sooner than who has yet to hear of it. */
  #inherit(partition: number, { from, heir, ledBefore }: Inheritance): void {
    const row = this.rows[partition] ?? [];
    const others = row.filter((node) => node !== from);
    const next = [...others, heir];
    this.rows[partition] = next;
    if (row[0] !== from) return;
    const stays = others.length > 0 ? leastOf(this.#led, others) : heir;
    const leader = ledBefore !== undefined && next.includes(ledBefore) ? ledBefore : stays;
    add(this.#led, leader, 1);
    this.rows[partition] = ledBy(leader, next);
  }

  evenOutLeaders(): void {
    const leaders = this.rows.map(([leader = NO_NODE]) => leader);
    evenOut({ holders: leaders, takersOf: (i) => this.rows[i] ?? [] }, this.#led, this.#ledPart);
    for (const [partition, row] of this.rows.entries()) {
      const leader = leaders[partition] ?? NO_NODE;
      if (row[0] !== leader) this.rows[partition] = ledBy(leader, row);
    }
  }
}

/** Which partition a node gives to one that joins: the one that is nearest to the latter on the ring. */
class Gifts {
  /** By giver: the partitions that it leads, and that it only holds, the next one last. */
  readonly #led = new Map<NodeId, number[]>();
  readonly #followed = new Map<NodeId, number[]>();
  readonly #given = new Set<number>();

  constructor(rows: PlacementTable, ring: Ring) {
    const distances = rows.map((_, partition) => ring.distanceFrom(partition));
    const farthestFirst = [...rows.keys()].sort((a, b) => (distances[b] ?? 0) - (distances[a] ?? 0) || b - a);
    for (const partition of farthestFirst) {
      for (const [i, node] of (rows[partition] ?? []).entries()) {
        const queues = i === 0 ? this.#led : this.#followed;
        const queue = queues.get(node);
        if (queue === undefined) queues.set(node, [partition]);
        else queue.push(partition);
      }
    }
  }

  /** One that is led, or one that is not, where there is one; undefined if all are given. */
  take(giver: NodeId, isLed: boolean): number | undefined {
    const queues = isLed ? [this.#led, this.#followed] : [this.#followed, this.#led];
    for (const queue of queues.map((byGiver) => byGiver.get(giver) ?? [])) {
      for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
        // Another of its holders may have given it.
        if (this.#given.has(next)) continue;
        this.#given.add(next);
        return next;
      }
    }
    return undefined;
  }
}

function ledBy(leader: NodeId, row: readonly NodeId[]): NodeId[] {
  return [leader, ...row.filter((node) => node !== leader)];
}

function loadOf(loads: Loads, node: NodeId): number {
  return loads.get(node) ?? 0;
}

function add(loads: Loads, node: NodeId | undefined, count: number): void {
  if (node !== undefined) loads.set(node, loadOf(loads, node) + count);
}

function mostOf(loads: Loads): NodeId {
  return [...loads].reduce((most, other) => (other[1] > most[1] ? other : most))[0];
}

/** The first of those that have least. */
function leastOf(loads: Loads, nodes: readonly NodeId[]): NodeId {
  return nodes.reduce((least, node) => (loadOf(loads, node) < loadOf(loads, least) ? node : least));
}
