/** What a node says of itself at `GET /readyz`, and whether it can decide requests. */

export type Readiness =
  | { readonly status: 'ready' }
  /** Not every partition of this node has a leader. */
  | { readonly status: 'waiting for leaders' }
  /** Of `of` groups on its disk it has loaded so many. */
  | { readonly status: 'starting'; readonly loaded: number; readonly of: number }
  /** It goes on answering until it ends, and wants no new clients. */
  | { readonly status: 'stopping' };
