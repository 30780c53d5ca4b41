/** What a client tells of itself as it happens, for metrics and logs. Plain data; no user is in it. */

export type ClientEvent =
  /** A batch left for a node. `straight`: how many of its requests went to the leader of their partition, as far as this client knew. */
  | { readonly type: 'sent'; readonly node: string; readonly requests: number; readonly straight: number }
  /** Its answer came, with an HTTP status; or there was none, `status` 0 and why. */
  | {
      readonly type: 'received';
      readonly node: string;
      readonly requests: number;
      readonly status: number;
      readonly tookMillis: number;
      readonly error?: Error;
    }
  /** A request waits for its next attempt. */
  | { readonly type: 'retry'; readonly reason: string; readonly attempt: number; readonly waitMillis: number }
  /** A call of `allow` ended. `partition`: that of the decision, where the cluster made one. */
  | {
      readonly type: 'answered';
      readonly outcome: 'granted' | 'denied' | 'blocked' | 'unmatched' | 'unlimited' | 'degraded' | 'error';
      /** A denial that was remembered: nothing was sent. */
      readonly isCached: boolean;
      readonly attempts: number;
      readonly tookMillis: number;
      /** The one that answered last, if one did. */
      readonly node?: string;
      readonly partition?: number;
      /** With `error`. */
      readonly code?: string;
    }
  /** Nobody could decide, and the fail mode of this client did. */
  | {
      readonly type: 'failMode';
      readonly mode: 'open' | 'local';
      readonly allowed: boolean;
      readonly code: string;
    }
  /** Who leads is known anew: so many partitions have a leader. */
  | { readonly type: 'leaders'; readonly partitions: number; readonly led: number };
