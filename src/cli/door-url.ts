/** Where a node answers HTTP, as a URL, by the settings of its cluster.json. */
import { addressText, type NodeAddress } from '../api/node-address.ts';
import type { ClusterConfig } from '../config/config.ts';

export function doorUrl({ http }: Pick<NodeAddress, 'http'>, tls: ClusterConfig['tls']): string {
  return `${tls?.doors === undefined ? 'http' : 'https'}://${addressText(http)}`;
}
