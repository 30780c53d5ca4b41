/**
 * The hosts and zones that copies of a partition have in common, counted from the labels of the nodes, and the best
 * choice of nodes,
 * found by trying all. It uses no code of the placement.
 */

export interface Labelled {
  readonly id: number;
  readonly zone?: string;
  readonly host?: string;
}

/** The number of pairs of copies on one host, and of pairs in one zone. */
export type Sharing = readonly [hosts: number, zones: number];

export function sharingOf(row: readonly number[], nodes: readonly Labelled[]): Sharing {
  let [hosts, zones] = [0, 0];
  for (const [i, a] of row.entries()) {
    for (const b of row.slice(i + 1)) {
      const isOneHost = isSaid(hostOf(a, nodes), hostOf(b, nodes));
      if (isOneHost) hosts += 1;
      if (isOneHost || isSaid(zoneOf(a, nodes), zoneOf(b, nodes))) zones += 1;
    }
  }
  return [hosts, zones];
}

function isSaid(a: string | undefined, b: string | undefined): boolean {
  return a !== undefined && a === b;
}

function hostOf(id: number, nodes: readonly Labelled[]): string | undefined {
  return nodes.find((node) => node.id === id)?.host;
}

/** A host is in the zone that its first node names. */
export function zoneOf(id: number, nodes: readonly Labelled[]): string | undefined {
  const self = nodes.find((node) => node.id === id);
  if (self?.host === undefined) return self?.zone;
  const there = nodes.filter(({ host, zone }) => host === self.host && zone !== undefined);
  return there.toSorted((a, b) => a.id - b.id)[0]?.zone;
}

function rowsOf(ids: readonly number[], count: number): number[][] {
  if (count === 0) return [[]];
  return ids.flatMap((id, i) => rowsOf(ids.slice(i + 1), count - 1).map((rest) => [id, ...rest]));
}

function compare(a: Sharing, b: Sharing): number {
  return a[0] - b[0] || a[1] - b[1];
}

function allSharing(nodes: readonly Labelled[], copies: number): { row: number[]; sharing: Sharing }[] {
  const rows = rowsOf(
    nodes.map(({ id }) => id),
    copies,
  );
  return rows.map((row) => ({ row, sharing: sharingOf(row, nodes) }));
}

export function bestSharing(nodes: readonly Labelled[], copies: number): Sharing {
  const [best] = allSharing(nodes, copies).toSorted((a, b) => compare(a.sharing, b.sharing));
  return best?.sharing ?? [0, 0];
}

function squares(loads: readonly number[]): number {
  return loads.reduce((sum, load) => sum + load * load, 0);
}

/**
 * Per node: the loads of the most even placement (least sum of squares) among those whose rows have the fewest hosts
 * and zones in common.
 */
export function evenestLoads(nodes: readonly Labelled[], copies: number, partitions: number): number[] {
  const best = bestSharing(nodes, copies);
  const rows = allSharing(nodes, copies).filter(({ sharing }) => compare(sharing, best) === 0);
  let reached = new Map([[nodes.map(() => 0).join(), nodes.map(() => 0)]]);
  for (let i = 0; i < partitions; i += 1) {
    const next = new Map<string, number[]>();
    for (const loads of reached.values()) {
      for (const { row } of rows) {
        const more = loads.map((load, at) => load + (row.includes(nodes[at]?.id ?? 0) ? 1 : 0));
        next.set(more.join(), more);
      }
    }
    reached = next;
  }
  const [evenest] = [...reached.values()].sort((a, b) => squares(a) - squares(b));
  return evenest ?? [];
}

export function loadsOf(
  table: readonly (readonly number[])[],
  nodes: readonly Labelled[],
): ReadonlyMap<number, number> {
  return new Map(nodes.map(({ id }) => [id, table.filter((row) => row.includes(id)).length]));
}

/** The number of copies on nodes that had none of the partition before. */
export function movedBetween(
  before: readonly (readonly number[])[],
  after: readonly (readonly number[])[],
): number {
  return after.map((row, i) => row.filter((id) => before[i]?.includes(id) !== true)).flat().length;
}
