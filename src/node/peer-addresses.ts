/**
 * Collects addresses of nodes: what this node says about itself, and what it knows about others. Several sources
 * may list different addresses of one node; all are tried, and the hello verifies who answers, so no source has to
 * be right.
 */
import type { NodeId } from '../../raft/types.ts';
import { type HostPort, type NodeAddress, labelsOf } from '../api/node-address.ts';
import type { ClusterConfig } from '../config/config.ts';
import type { Introduction, MetaState } from '../meta/cluster-state.ts';

/** Listening addresses that are useless to others. */
const WILDCARDS: readonly string[] = ['0.0.0.0', '::'];

/** Whether others can use an address that a node listens on. */
export function sayable(address: HostPort): boolean {
  return !WILDCARDS.includes(address.host) && address.port !== 0;
}

/** The addresses of a node that listens on `host`, with the ports at which others find it. */
export function listeningAt({ id, http, peer, resp, grpc }: NodeAddress, host: string): NodeAddress {
  return {
    id,
    http: { ...http, host },
    peer: { ...peer, host },
    ...(resp !== undefined && { resp: { ...resp, host } }),
    ...(grpc !== undefined && { grpc: { ...grpc, host } }),
  };
}

/** The addresses that a node can send to others. */
export function addressesToSay({ peer, http }: NodeAddress): { peer?: HostPort; http?: HostPort } {
  return { ...(sayable(peer) && { peer }), ...(sayable(http) && { http }) };
}

/** The peers in the configuration file; used before anything is known of the cluster. */
export function configuredPeers({ nodes }: ClusterConfig): Map<NodeId, readonly HostPort[]> {
  return new Map(nodes.map(({ id, peer }) => [id, [peer]]));
}

/**
 * The peers to connect to, with their possible addresses: members, leaving nodes, and nodes that group 0 still has
 * to notify that they left. Nodes in the file are included as well, unless they were removed: the known list may be
 * older than the file.
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

/** The founders, with their addresses and labels as far as this node's configuration knows them. */
export function introductionsOf({ founders, nodes }: ClusterConfig): Introduction[] {
  return founders.map((founder) => {
    const { http, peer, ...others } = nodes.find(({ id }) => id === founder.id) ?? {};
    const addresses = { ...(http !== undefined && { http }), ...(peer !== undefined && { peer }) };
    return { ...addresses, ...labelsOf(others), ...founder };
  });
}
