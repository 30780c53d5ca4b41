/** The error of a node that finds out that its disk lost data it had acknowledged. */
import type { NodeId } from './types.ts';

/**
 * This node acknowledged entries that its log does not have. Its data directory is an older copy, or the disk lost
 * synced writes. It may have forgotten votes too, so it must neither vote nor acknowledge again.
 */
export class RolledBackError extends Error {
  readonly code = 'ROLLED_BACK';

  constructor(found: {
    readonly leader: NodeId;
    readonly term: number;
    readonly acknowledged: number;
    readonly own: { readonly term: number; readonly lastIndex: number };
  }) {
    const { leader, term, acknowledged, own } = found;
    super(
      `this node acknowledged entry ${acknowledged} to leader ${leader} in term ${term}, but is in term ${own.term} ` +
        `with a log that ends at ${own.lastIndex}: its directory is an older copy, or its disk lost synced writes. ` +
        `Do not start it with this directory again: move it aside, remove this node from the cluster and add the ` +
        `machine under a new node id with an empty directory.`,
    );
    this.name = 'RolledBackError';
  }
}
