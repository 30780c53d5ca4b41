/** What a node says of itself, and whether it can decide requests. */

export type Readiness =
  | { readonly status: 'ready' }
  /** Not every partition of this node has a leader. */
  | { readonly status: 'waiting for leaders' }
  /** It knows nothing of the cluster yet, or was not added to it. */
  | { readonly status: 'waiting to be added' }
  /** It belongs to the cluster no more, or is not taken for the node whose id it bears: it will not be ready again. */
  | { readonly status: 'removed' | 'refused'; readonly reason: string }
  /** Of `of` groups on its disk it has loaded so many. */
  | { readonly status: 'starting'; readonly loaded: number; readonly of: number }
  /** An operator drains it: its doors take no requests. It still leads so many groups, for others to take over. */
  | { readonly status: 'draining'; readonly reason: string; readonly leads: number }
  /** It goes on answering until it ends, and wants no new clients. */
  | { readonly status: 'stopping' };
