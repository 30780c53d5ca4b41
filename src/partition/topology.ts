/**
 * Which nodes fail together: those on one host, and those in one zone, as their labels say. Pure: the same labels give the same
 * everywhere.
 *
 * A node without a host label is alone on its host. A host is in one zone: that of its node with the lowest id that names one;
 * without any it is in a zone of its own. So zones are made of whole hosts, and who has no label shares nothing with anybody.
 */
import type { NodeId } from '../../raft/types.ts';
import type { NodeLabels } from '../api/node-labels.ts';

export interface LabelledNode extends NodeLabels {
  readonly id: NodeId;
}

/** More than all pairs of copies of a partition can share of zones: no zones make up for a host. */
const HOST_SHARED = 1_000;
const ZONE_SHARED = 1;

export class Topology {
  /** By id. */
  readonly nodes: readonly NodeId[];
  readonly #hosts = new Map<NodeId, string>();
  readonly #zones = new Map<NodeId, string>();

  constructor(labelled: readonly LabelledNode[]) {
    const byId = labelled.toSorted((a, b) => a.id - b.id);
    this.nodes = byId.map(({ id }) => id);
    const zoneOfHost = new Map<string, string>();
    for (const node of byId) {
      const host = hostOf(node);
      this.#hosts.set(node.id, host);
      if (node.zone !== undefined && !zoneOfHost.has(host)) zoneOfHost.set(host, `zone ${node.zone}`);
    }
    for (const [id, host] of this.#hosts) this.#zones.set(id, zoneOfHost.get(host) ?? host);
  }

  #sharesHost(a: NodeId, b: NodeId): boolean {
    return this.#hosts.get(a) === this.#hosts.get(b);
  }

  #sharesZone(a: NodeId, b: NodeId): boolean {
    return this.#zones.get(a) === this.#zones.get(b);
  }

  /** How much worse it is to have a copy on each of two nodes than on two that share nothing; 0 for those. */
  closeness(a: NodeId, b: NodeId): number {
    return (this.#sharesHost(a, b) ? HOST_SHARED : 0) + (this.#sharesZone(a, b) ? ZONE_SHARED : 0);
  }

  /** By node, in the order of `nodes`: who is in its zone. */
  get zones(): NodeId[][] {
    return this.nodes.map((node) => this.nodes.filter((other) => this.#sharesZone(node, other)));
  }

  /**
   * Whether the nodes that are in both topologies share there what they share here, whatever that is called; or no pair of them can be
   * told from another, neither there nor here.
   *
   * @param there which node of the other one stands where this one does
   */
  isLike(other: Topology, there: (node: NodeId) => NodeId = itself): boolean {
    const both = this.nodes.filter((node) => other.nodes.includes(there(node)));
    const pairs = both.flatMap((a, i) => both.slice(i + 1).map((b) => [a, b] as const));
    const here = pairs.map(([a, b]) => this.closeness(a, b));
    const elsewhere = pairs.map(([a, b]) => other.closeness(there(a), there(b)));
    const tellsNothing = new Set(here).size <= 1 && new Set(elsewhere).size <= 1;
    return tellsNothing || here.every((closeness, i) => closeness === elsewhere[i]);
  }

  /** So many nodes that share as little as that many can; those with the lowest ids where there is a choice. */
  apart(count: number): NodeId[] {
    const chosen: NodeId[] = [];
    while (chosen.length < Math.min(count, this.nodes.length)) {
      const left = this.nodes.filter((node) => !chosen.includes(node));
      const costs = left.map((node) => chosen.reduce((sum, other) => sum + this.closeness(node, other), 0));
      const next = left[costs.indexOf(Math.min(...costs))];
      if (next !== undefined) chosen.push(next);
    }
    return chosen.sort((a, b) => a - b);
  }
}

function itself(node: NodeId): NodeId {
  return node;
}

function hostOf({ id, host }: LabelledNode): string {
  return host === undefined ? `node ${id}` : `host ${host}`;
}
