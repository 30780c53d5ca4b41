/**
 * The placement that follows another one when nodes come, go, or are labelled otherwise. Pure: the same everywhere. Nodes whose labels
 * tell them apart in nothing are placed as if they had none (next-placement.ts); of others the copies of a partition share as few
 * hosts, then as few zones, as the nodes allow (spread.ts), and loads are as even as that leaves them.
 */
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import { evenOut, type Loads } from './even-out.ts';
import type { Hash32 } from './hash.ts';
import { nextPlacement } from './next-placement.ts';
import type { PlacementTable } from './placement.ts';
import { Ring } from './ring.ts';
import { spreadOut } from './spread.ts';
import { type LabelledNode, Topology } from './topology.ts';

export interface PlacementChange {
  /** The nodes, and where the copies are; in every row as many, distinct ones. */
  readonly before: readonly LabelledNode[];
  readonly table: PlacementTable;
  /** At most one comes, and at most one goes; at least as many as there are copies. */
  readonly after: readonly LabelledNode[];
  /** Where the copies were when all had moved last. */
  readonly settled?: PlacementTable | undefined;
  /** Nobody has written anything yet: copies move wherever loads want them. */
  readonly isFounding?: true;
}

export function placementAfter(change: PlacementChange, hash: Hash32): PlacementTable {
  const { before, after, table, settled, isFounding } = change;
  const [was, is] = [new Topology(before), new Topology(after)];
  const joins = is.nodes.find((node) => !was.nodes.includes(node));
  const leaves = was.nodes.find((node) => !is.nodes.includes(node));
  const isFlat = was.isFlat && is.isFlat;
  if (joins === undefined && leaves === undefined && (isFlat || is.isLike(was))) return table;
  if (isFlat) return nextPlacement(table, was.nodes, { joins, leaves, settled }, hash);
  if (joins !== undefined && leaves !== undefined) {
    if (is.isLike(was, (node) => (node === joins ? leaves : node)))
      return table.map((row) => row.map((node) => (node === leaves ? joins : node)));
    // It stands elsewhere: as if it came, and then the other went.
    const both = [...before, ...after.filter(({ id }) => id === joins)];
    const joined = placementAfter({ before, table, after: both, settled }, hash);
    return placementAfter({ before: both, table: joined, after, settled }, hash);
  }
  const ring = new Ring(is.nodes, hash);
  const rows = table.map((row) => row.filter((node) => node !== leaves));
  const spread = spreadOut(rows, {
    topology: is,
    copies: table[0]?.length ?? 0,
    home: table,
    orderOf: (partition) => ring.orderOf(partition),
    settled,
    isFounding,
  });
  return ledEvenly({ rows: spread, before: table, settled, topology: is });
}

interface Leading {
  readonly rows: readonly (readonly NodeId[])[];
  /** Who led, where anybody does: the first of a row. Whoever is in its row stays where it was. */
  readonly before: PlacementTable;
  readonly settled: PlacementTable | undefined;
  readonly topology: Topology;
}

/** Puts in each row the leader first: the one of before if it can be, and nobody leads much more than its part. */
function ledEvenly({ rows, before, settled, topology }: Leading): NodeId[][] {
  const led: Loads = new Map(topology.nodes.map((node) => [node, 0]));
  const count = (leader: NodeId): void => void led.set(leader, (led.get(leader) ?? 0) + 1);
  const leaders = rows.map((row, i) => row.find((node) => node === before[i]?.[0]) ?? NO_NODE);
  for (const leader of leaders) if (leader !== NO_NODE) count(leader);
  for (const [i, row] of rows.entries()) {
    if (leaders[i] !== NO_NODE) continue;
    const ledBefore = row.find((node) => node === settled?.[i]?.[0]);
    // Who holds it already leads it sooner than who has yet to hear of it.
    const here = row.filter((node) => before[i]?.includes(node) === true);
    const leader = ledBefore ?? leastOf(here.length > 0 ? here : row, led);
    leaders[i] = leader;
    count(leader);
  }
  const things = { holders: leaders, takersOf: (i: number): readonly NodeId[] => rows[i] ?? [] };
  evenOut(things, led, rows.length / topology.nodes.length);
  evenOutZones({ rows, leaders, led, topology });
  return rows.map((row, i) => {
    const leader = leaders[i] ?? NO_NODE;
    return [leader, ...row.filter((node) => node !== leader)];
  });
}

interface LedByZone {
  readonly rows: readonly (readonly NodeId[])[];
  /** By partition. */
  readonly leaders: NodeId[];
  readonly led: Loads;
  readonly topology: Topology;
}

/** Some nodes lead one more than others, as it cannot be even: as many of them in one zone, for its size, as in another. */
function evenOutZones({ rows, leaders, led, topology }: LedByZone): void {
  const zoneOf = (node: NodeId): NodeId[] =>
    topology.nodes.filter((other) => topology.sharesZone(node, other));
  const zones = new Map(topology.nodes.map((node) => [node, zoneOf(node)]));
  const ledIn = (zone: readonly NodeId[]): number =>
    zone.reduce((sum, node) => sum + (led.get(node) ?? 0), 0);
  const isBetter = (from: NodeId, to: NodeId): boolean => {
    if (topology.sharesZone(from, to) || led.get(from) !== (led.get(to) ?? 0) + 1) return false;
    const [giving, taking] = [zones.get(from) ?? [], zones.get(to) ?? []];
    // The sum over zones of the square of what they lead, by their size, gets less.
    return (2 * ledIn(taking) + 1) * giving.length < (2 * ledIn(giving) - 1) * taking.length;
  };
  for (let changes = 1; changes > 0;) {
    changes = 0;
    for (const [partition, row] of rows.entries()) {
      const from = leaders[partition] ?? NO_NODE;
      const to = row.find((node) => isBetter(from, node));
      if (to === undefined) continue;
      leaders[partition] = to;
      led.set(from, (led.get(from) ?? 0) - 1);
      led.set(to, (led.get(to) ?? 0) + 1);
      changes += 1;
    }
  }
}

/** The first of those that have least. */
function leastOf(nodes: readonly NodeId[], loads: Loads): NodeId {
  return nodes.reduce((least, node) => ((loads.get(node) ?? 0) < (loads.get(least) ?? 0) ? node : least));
}
