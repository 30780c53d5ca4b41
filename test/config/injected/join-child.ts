/** A process that only does the work of `quorate join`. Arguments: the directory, and the node as JSON. */
import type { NodeAddress } from '../../../src/api/node-address.ts';
import { joinCluster } from '../../../src/cli/join-cluster.ts';

const [directory = '', node = ''] = process.argv.slice(2);
await joinCluster(directory, JSON.parse(node) as NodeAddress);
