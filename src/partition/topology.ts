/**
 * Which nodes fail together according to their labels: nodes on one host, and nodes in one zone. A pure function of
 * the labels.
 *
 * A node without a host label is alone on its host. A host is in one zone: the zone of its node with the lowest id
 * that names one, or a zone of its own. So zones consist of whole hosts, and a node without labels shares no host
 * and no zone with any other.
 */
import type { NodeId } from '../../raft/types.ts';
import type { NodeLabels } from '../api/node-address.ts';

/** A node and its labels. */
export interface LabelledNode extends NodeLabels {
  readonly id: NodeId;
}

/** Greater than any number of pairs of copies that can share a zone, so sharing a host is always worse. */
const HOST_SHARED = 1_000;
const ZONE_SHARED = 1;

/** The nodes of a cluster, and which of them share a host or a zone. */
export class Topology {
  /** Sorted by id. */
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

  /**
   * How much worse a copy on each of these two nodes is than on two nodes without a common host or zone; 0 for
   * those.
   */
  closeness(a: NodeId, b: NodeId): number {
    return (this.#sharesHost(a, b) ? HOST_SHARED : 0) + (this.#sharesZone(a, b) ? ZONE_SHARED : 0);
  }

  /** For each node, in the order of `nodes`: the nodes in its zone. */
  get zones(): NodeId[][] {
    return this.nodes.map((node) => this.nodes.filter((other) => this.#sharesZone(node, other)));
  }

  /**
   * Do the nodes that are in both topologies share the same hosts and zones in both, even if the labels have other
   * names? Also true if all pairs of nodes are alike in both topologies.
   *
   * @param there maps a node of this topology to the node of the other one that it is compared with
   */
  isLike(other: Topology, there: (node: NodeId) => NodeId = itself): boolean {
    const both = this.nodes.filter((node) => other.nodes.includes(there(node)));
    const pairs = both.flatMap((a, i) => both.slice(i + 1).map((b) => [a, b] as const));
    const here = pairs.map(([a, b]) => this.closeness(a, b));
    const elsewhere = pairs.map(([a, b]) => other.closeness(there(a), there(b)));
    const isUniform = new Set(here).size <= 1 && new Set(elsewhere).size <= 1;
    return isUniform || here.every((closeness, i) => closeness === elsewhere[i]);
  }

  /**
   * Chooses `count` nodes that share as few hosts, then as few zones, as possible; among equals, those with the
   * lowest ids.
   */
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
