/** The URL of a node's HTTP listener. */
import { addressText, type NodeAddress } from '../api/node-address.ts';
import type { ClusterConfig } from '../config/config.ts';

/** Returns the URL at which a node answers HTTP, with or without TLS as set in cluster.json. */
export function listenerUrl({ http }: Pick<NodeAddress, 'http'>, tls: ClusterConfig['tls']): string {
  return `${tls?.listeners === undefined ? 'http' : 'https'}://${addressText(http)}`;
}
