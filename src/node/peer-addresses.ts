/**
 * Where nodes are: what this node says of itself, and what it knows of the others. Several sources may tell several
 * addresses of one node; all are tried, and the hello makes sure who answers, so no source needs to be right.
 */
import type { NodeId } from '../../raft/types.ts';
import type { HostPort, NodeAddress } from '../api/node-address.ts';
import { labelsOf } from '../api/node-labels.ts';
import type { ClusterConfig } from '../config/config.ts';
import type { Introduction, MetaState } from '../meta/cluster-state.ts';

/** Addresses to listen on that mean nothing to others. */
const WILDCARDS: readonly string[] = ['0.0.0.0', '::'];

/** Whether others can do anything with an address that a node listens on. */
export function sayable(address: HostPort): boolean {
  return !WILDCARDS.includes(address.host) && address.port !== 0;
}

/** Where a node listens that is told to do so at `host`: the ports are those where others find it. */
export function listeningAt({ id, http, peer, resp, grpc }: NodeAddress, host: string): NodeAddress {
  return {
    id,
    http: { ...http, host },
    peer: { ...peer, host },
    ...(resp !== undefined && { resp: { ...resp, host } }),
    ...(grpc !== undefined && { grpc: { ...grpc, host } }),
  };
}

/** What a node can tell others about where it is. */
export function addressesToSay({ peer, http }: NodeAddress): { peer?: HostPort; http?: HostPort } {
  return { ...(sayable(peer) && { peer }), ...(sayable(http) && { http }) };
}

/** Before anything is known of the cluster: everybody in the file. */
export function configuredPeers({ nodes }: ClusterConfig): Map<NodeId, readonly HostPort[]> {
  return new Map(nodes.map(({ id, peer }) => [id, [peer]]));
}

/**
 * Those to speak with, and where they may be: the nodes of the replicated list, those that leave, and those that group
 * 0 still has to tell that they left, at whatever address they are connected from. Those of the file too, unless they
 * were removed: what is known of the list may be older than the file, and everybody in it may be gone.
 */
export function currentPeers(
  { nodes, leaving, retired }: MetaState,
  metaMembers: readonly NodeId[],
  config: ClusterConfig,
): Map<NodeId, readonly HostPort[]> {
  const peers = new Map<NodeId, readonly HostPort[]>(metaMembers.map((id) => [id, []]));
  const configured = configuredPeers(config);
  for (const [id, addresses] of configured) if (!retired.includes(id)) peers.set(id, addresses);
  for (const { id, peer } of [...nodes, ...leaving]) {
    peers.set(id, [...(configured.get(id) ?? []), ...(peer === undefined ? [] : [peer])]);
  }
  return peers;
}

/** The founders, and where they are and stand as far as this node's configuration knows. */
export function introductionsOf({ founders, nodes }: ClusterConfig): Introduction[] {
  return founders.map((founder) => {
    const { http, peer, ...others } = nodes.find(({ id }) => id === founder.id) ?? {};
    const addresses = { ...(http !== undefined && { http }), ...(peer !== undefined && { peer }) };
    return { ...addresses, ...labelsOf(others), ...founder };
  });
}
