/** The readiness of a node: whether it can decide requests. */

/** The readiness of a node. */
export type Readiness =
  | { readonly status: 'ready' }
  /** Not every partition of this node has a leader. */
  | { readonly status: 'waiting for leaders' }
  /** The node knows nothing of the cluster yet, or was not added to it. */
  | { readonly status: 'waiting to be added' }
  /**
   * The node was removed from the cluster, or the others refuse it because its id belongs to another node. It will
   * not be ready again.
   */
  | { readonly status: 'removed' | 'refused'; readonly reason: string }
  /** The node has loaded `loaded` of the `of` groups on its disk. */
  | { readonly status: 'starting'; readonly loaded: number; readonly of: number }
  /**
   * An operator drains the node: its API listeners take no requests. It still leads `leads` groups, which other nodes
   * are to take over.
   */
  | { readonly status: 'draining'; readonly reason: string; readonly leads: number }
  /** The node still answers until it ends, but wants no new clients. */
  | { readonly status: 'stopping' };
