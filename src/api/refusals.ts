/**
 * The table of refusals of requests for a grant: the status of each kind of answer, the denials of requests that no rule
 * matches, and the reasons for which no node could decide, with their texts. A new reason is added only here.
 */

/** The HTTP status of each kind of answer. Other protocols use the closest they have. Only `granted` is a grant. */
export const ALLOW_STATUS = {
  granted: 200,
  denied: 429,
  invalid: 400,
  conflict: 422,
  unavailable: 503,
} as const;

/**
 * The status of a denial because of a block. It is not 429, because clients retry after 429 and most blocks have no
 * end.
 */
export const BLOCKED_STATUS = 403;

/**
 * The reason of a denial because no rule matches the request and the rule document says `unmatched: deny`: then a
 * misspelt descriptor does not make a request free. Statistics count such denials under this name, so no rule of a
 * document may have it.
 */
export const UNMATCHED = 'unmatched';

/** The treatment of requests that no rule matches, unless they are allowed. `shadow`: they are counted, not denied. */
export type Unmatched = 'deny' | 'shadow';

/** The HTTP status of such a denial. It is not 429, because clients retry after 429 and no retry helps here. */
export const UNMATCHED_STATUS = 403;
/** The message of such a denial. */
export const UNMATCHED_MESSAGE =
  'No rule matches this request, and the rules deny such requests. Waiting does not help: check its descriptors.';

/** After an `Unavailable` answer, clients may retry after this many seconds. */
export const UNAVAILABLE_RETRY_SECONDS = 1;

interface UnavailableMeaning {
  readonly text: string;
  /**
   * The `proposed` field of an answer that a node gives for this reason by itself. False: certainly nothing was charged.
   * True: the request reached a log, and may be charged. `never` means false, `always` true; with `either`, only the
   * answer says. An answer can have `proposed: true` with every reason, because another node may have been asked before.
   */
  readonly proposed: 'never' | 'either' | 'always';
}

/**
 * Why no decision could be made. Messages between nodes contain the index of a reason in this table, so new reasons
 * go last.
 */
export const UNAVAILABLE = {
  /**
   * Until the deadline no leader was known, or the leader answered nobody for a whole deadline, or the leader that had
   * the request was deposed before the request was committed.
   */
  no_leader: { text: 'no node could decide for this user before the deadline', proposed: 'never' },
  /** A leader had the request but did not answer in time. */
  deadline: { text: 'the deciding node did not answer before the deadline', proposed: 'either' },
  /** A bounded queue is full. */
  overloaded: { text: 'too many requests are waiting for a decision', proposed: 'never' },
  /** The disk of the leader is nearly full. */
  low_disk: { text: 'the deciding node has little disk space left', proposed: 'never' },
  /**
   * There is no memory left for the key or the request id. The request is charged nowhere. With `proposed: true` it is in
   * a log, and the log refused it.
   */
  at_capacity: {
    text: 'there is no memory for another user or request id; known ones are still served',
    proposed: 'either',
  },
  /** The leader has no rules yet, or the asked node is not up yet. */
  starting: { text: 'the node is starting, or the cluster has no rules yet', proposed: 'never' },
  /** The request was proposed, and this node cannot know whether it was granted. */
  unknown_outcome: {
    text: 'the deciding node was lost; whether the request was counted is not known',
    proposed: 'always',
  },
  /** The asked node no longer belongs to the cluster, or its id belongs to another node. */
  not_member: { text: 'this node does not belong to the cluster; ask another one', proposed: 'never' },
  /** The request was matched with another rule version than its partition decides by. */
  rules_changed: { text: 'the rules are being changed; try again', proposed: 'never' },
  /**
   * The request was matched with an outdated record of its customer. It may be in a log, but it is charged nowhere, so
   * `proposed` is false.
   */
  customer_changed: { text: 'the record of the customer is being changed; try again', proposed: 'never' },
  /**
   * The asked node is being drained, so its API listeners take no requests. Nodes never send this reason to each
   * other.
   */
  draining: { text: 'this node is being drained; ask another one', proposed: 'never' },
} as const satisfies Readonly<Record<string, UnavailableMeaning>>;

/** A key of `UNAVAILABLE`. */
export type UnavailableReason = keyof typeof UNAVAILABLE;

/** All reasons, in the order of the table. */
export const UNAVAILABLE_REASONS = Object.keys(UNAVAILABLE) as readonly UnavailableReason[];
