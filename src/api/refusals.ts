/**
 * Why requests for a grant are refused, in one table: the statuses that doors give, and the reasons for which nobody can
 * decide, with their texts. A new reason is written here, and nowhere else.
 */

/** Of every kind of answer; other protocols take what comes closest. Only the first is a grant. */
export const ALLOW_STATUS = {
  granted: 200,
  denied: 429,
  invalid: 400,
  conflict: 422,
  unavailable: 503,
} as const;

/** The status of a denial for a block. Clients retry after 429, and most blocks have no end. */
export const BLOCKED_STATUS = 403;

/** Whoever was told that nobody can decide may ask again after so many seconds. */
export const UNAVAILABLE_RETRY_SECONDS = 1;

interface UnavailableMeaning {
  readonly text: string;
  /**
   * Whether the request may have reached a log at the node that gives this reason. `either`: only `proposed` of the answer
   * says so. It may be true with every reason, as another node may have been asked before; where it is false, certainly
   * nothing was charged.
   */
  readonly proposed: 'never' | 'either' | 'always';
}

/** Why no decision could be made. Frames between nodes hold the place of a reason in this table: new ones go last. */
export const UNAVAILABLE = {
  /**
   * No leader was known before the deadline, or it answered nobody for that long before; or the one that had the request lost its
   * office before it was committed.
   */
  no_leader: { text: 'no node could decide for this user before the deadline', proposed: 'never' },
  /** A leader had the request but did not answer in time. */
  deadline: { text: 'the deciding node did not answer before the deadline', proposed: 'either' },
  /** A bounded queue is full. */
  overloaded: { text: 'too many requests are waiting for a decision', proposed: 'never' },
  /** The leader is close to a full disk. */
  low_disk: { text: 'the deciding node is short of disk space', proposed: 'never' },
  /** What would have to be remembered of the request has no room. It counts nowhere, though it may be in the log. */
  at_capacity: {
    text: 'there is no room to remember another user or request id; those that are known are still served',
    proposed: 'either',
  },
  /** The leader has no rules yet, or the node that was asked is not up yet. */
  starting: { text: 'the node is starting, or the cluster has no rules yet', proposed: 'never' },
  /** The request was proposed, and whether it was granted cannot be known here. */
  unknown_outcome: {
    text: 'the deciding node was lost; whether the request was counted is not known',
    proposed: 'always',
  },
  /** The node that was asked belongs to the cluster no more, or bears an id that is another's. */
  not_member: { text: 'this node does not belong to the cluster; ask another one', proposed: 'never' },
  /** The limits of the request were found by other rules than its partition decides by. */
  rules_changed: { text: 'the rules are being changed; ask again', proposed: 'never' },
  /** It was matched with another record of its customer than there is. It counts nowhere, though it may be in the log. */
  customer_changed: { text: 'what is known of the customer is being changed; ask again', proposed: 'never' },
  /** The door that was asked takes no requests: its node is being drained. Nodes do not say it to each other. */
  draining: { text: 'this node is being drained; ask another one', proposed: 'never' },
} as const satisfies Readonly<Record<string, UnavailableMeaning>>;

export type UnavailableReason = keyof typeof UNAVAILABLE;

/** In the order of the table. */
export const UNAVAILABLE_REASONS = Object.keys(UNAVAILABLE) as readonly UnavailableReason[];
