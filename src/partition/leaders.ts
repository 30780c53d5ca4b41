/**
 * Chooses the leader of each partition among the nodes that hold it: the previous leader, unless that node would lead
 * much more than its part. A pure function, so all nodes compute the same. Nodes are numbered from 0.
 */
import { NOWHERE } from './copies.ts';
import { evenOut } from './even-out.ts';

type Rows = readonly (readonly number[])[];

/** The placement for which leaders are chosen. */
export interface LeadersInit {
  /** For each partition: the nodes that hold it. */
  readonly rows: Rows;
  /**
   * For each partition: the nodes that held it before, the leader first; `NOWHERE` for nodes that left, an empty row if
   * it is new.
   */
  readonly before: Rows;
  /** The same for the last time when all copies had finished moving. */
  readonly settled: Rows;
  /** For each node: all nodes in its zone. */
  readonly zones: Rows;
}

/** The leader of each partition. */
export function leadersOf(init: LeadersInit): number[] {
  const { rows, before, zones } = init;
  const part = Math.ceil(rows.length / zones.length);
  const led = zones.map(() => 0);
  const ledBy = zones.map(() => new Set<number>());
  const leaders: number[] = [];
  const lead = (partition: number, node: number): void => {
    leaders[partition] = node;
    ledBy[node]?.add(partition);
    led[node] = (led[node] ?? 0) + 1;
  };
  const isNew = rows.map((row, i) => !row.includes(before[i]?.[0] ?? NOWHERE));
  for (const [i, [leader = 0] = []] of before.entries()) if (isNew[i] === false) lead(i, leader);
  for (const partition of rows.keys()) {
    if (isNew[partition] === false) continue;
    const candidates = candidatesOf(partition, init);
    lead(partition, candidates.find((node) => (led[node] ?? 0) < part) ?? candidates[0] ?? 0);
  }
  const handOn = (partition: number, from: number, to: number): void => {
    ledBy[from]?.delete(partition);
    led[from] = (led[from] ?? 0) - 1;
    lead(partition, to);
  };
  evenOut({
    count: rows.length,
    loads: led,
    forEachExchange: (partition, visit) => {
      const from = leaders[partition] ?? 0;
      for (const to of rows[partition] ?? []) if (to !== from) visit(from, to);
    },
    between: (from, to) => {
      let first: number | undefined;
      for (const partition of ledBy[from] ?? []) {
        if (rows[partition]?.includes(to) !== true) continue;
        if (isNew[partition] === true) return partition;
        first ??= partition;
      }
      return first;
    },
    handOn,
  });
  evenOutZones(init, { leaders, led, handOn });
  return leaders;
}

/**
 * Preferably the node that led it when all copies had finished moving; otherwise nodes that already hold the partition.
 */
function candidatesOf(partition: number, { rows, before, settled }: LeadersInit): readonly number[] {
  const row = rows[partition] ?? [];
  const ledBefore = row.filter((node) => node === settled[partition]?.[0]);
  if (ledBefore.length > 0) return ledBefore;
  const here = row.filter((node) => before[partition]?.includes(node));
  return here.length > 0 ? here : row;
}

interface Leading {
  /** For each partition. */
  readonly leaders: readonly number[];
  /** How many partitions each node leads. */
  readonly led: readonly number[];
  readonly handOn: (partition: number, from: number, to: number) => void;
}

/**
 * If the numbers cannot be equal, some nodes lead one more than others. Spreads these nodes over the zones in
 * proportion to their sizes.
 */
function evenOutZones({ rows, zones }: LeadersInit, { leaders, led, handOn }: Leading): void {
  const isBetter = (from: number, to: number): boolean => {
    const [giving, taking] = [zones[from] ?? [], zones[to] ?? []];
    if (taking.includes(from) || led[from] !== (led[to] ?? 0) + 1) return false;
    const [more, less] = [giving, taking].map((zone) =>
      zone.reduce((sum, node) => sum + (led[node] ?? 0), 0),
    );
    // True if this lowers the sum over all zones of (partitions led)^2 / (size of the zone).
    return (2 * (less ?? 0) + 1) * giving.length < (2 * (more ?? 0) - 1) * taking.length;
  };
  for (let isDone = false; !isDone;) {
    isDone = true;
    for (const [partition, row] of rows.entries()) {
      const from = leaders[partition] ?? 0;
      const to = row.find((node) => isBetter(from, node));
      if (to === undefined) continue;
      handOn(partition, from, to);
      isDone = false;
    }
  }
}
