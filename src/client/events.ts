/** Events that a client reports to `onEvent`, for metrics and logs. Events contain no user ids or keys. */

/** One event. Durations are in milliseconds. */
export type ClientEvent =
  /**
   * A batch was sent to a node. `straight` is the number of its requests whose partition, as far as the client knew, is
   * led by that node.
   */
  | { readonly type: 'sent'; readonly node: string; readonly requests: number; readonly straight: number }
  /**
   * The answer to a batch came with an HTTP status, or there was no answer: then `status` is 0 and `error` gives the
   * reason.
   */
  | {
      readonly type: 'received';
      readonly node: string;
      readonly requests: number;
      readonly status: number;
      readonly tookMillis: number;
      readonly error?: Error;
    }
  /** A request failed and waits for its next attempt. */
  | { readonly type: 'retry'; readonly reason: string; readonly attempt: number; readonly waitMillis: number }
  /** A call of `allow` or `settle` ended. `partition` is the partition that decided, if one did. */
  | {
      readonly type: 'answered';
      readonly outcome: 'granted' | 'denied' | 'blocked' | 'unmatched' | 'unlimited' | 'degraded' | 'error';
      /** True: a remembered denial answered, and nothing was sent. */
      readonly isCached: boolean;
      readonly attempts: number;
      readonly tookMillis: number;
      /** The node that answered last. Absent: no node answered. */
      readonly node?: string;
      readonly partition?: number;
      /** The code of the error. Only with outcome `error`. */
      readonly code?: string;
    }
  /** The cluster could not decide, so the fail mode of this client did. */
  | {
      readonly type: 'failMode';
      readonly mode: 'open' | 'local';
      readonly allowed: boolean;
      readonly code: string;
    }
  /** The client has fetched the leaders. `led` is the number of partitions that have a known leader. */
  | { readonly type: 'leaders'; readonly partitions: number; readonly led: number };
