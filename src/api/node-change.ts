/**
 * Changes of the nodes of a running cluster, as every door takes them: the change, its check, and what becomes of it, with
 * texts and statuses in one table. Group 0 decides.
 */
import { InvalidFieldError } from './fields.ts';
import { type NodeAddress, validateNode } from './node-address.ts';
import type { UnavailableReason } from './refusals.ts';

/** A node to add, one to remove, or both: then the one replaces the other. */
export interface NodeChange {
  readonly add?: NodeAddress;
  readonly remove?: number;
}

export const NODE_CHANGE_FIELDS = ['add', 'remove'] as const satisfies readonly (keyof NodeChange)[];

interface FailureMeaning {
  /** In HTTP. 409: the cluster does not want it. 503: ask again, a repetition is harmless. */
  readonly status: 409 | 503;
  readonly text: string;
  /** What requests for grants call it, and callers here as well. */
  readonly reason?: UnavailableReason;
}

/** Why the nodes were not changed, or may not have been. */
export const NODE_CHANGE_FAILURES = {
  /** There is nothing to add or remove. */
  emptyChange: { status: 409, text: 'give a node to add, the id of one to remove, or both' },
  /** The id to add belonged to a node that was removed. */
  retiredNode: {
    status: 409,
    text: 'this id belonged to a node that was removed, or is to be; take a new one',
  },
  /** The id or an address to add belongs to another node, or to this one, which was added with other labels. */
  nodeExists: {
    status: 409,
    text: 'the id or an address belongs to another node of the cluster, or the node was added with another zone or host: change those with `quorate nodes label`',
  },
  /** The node to remove never belonged to the cluster. */
  unknownNode: { status: 409, text: 'the node to remove does not belong to the cluster' },
  /** Fewer would remain than each partition has copies. */
  tooFewNodes: {
    status: 409,
    text: 'fewer nodes would remain than each partition has copies; add one in the same change',
  },
  /** There are as many as there may be. */
  tooManyNodes: { status: 409, text: 'the cluster has as many nodes as it can have' },
  /** It tried to take part, and was refused for its version. */
  olderNode: {
    status: 409,
    text: 'the node to add speaks no version as high as that of the cluster; start it with a newer quorate, and ask again',
  },
  /** The node that was asked takes part no more, and knows nothing of what became of the change. */
  notMember: { status: 409, text: 'this node does not belong to the cluster; ask another one' },
  /** Too many wait for the log. */
  overloaded: { status: 503, text: 'too many changes are waiting; ask again', reason: 'overloaded' },
  /** It may be done or not. */
  unknownOutcome: {
    status: 503,
    text: 'the change may have happened; asking again does it once',
    reason: 'unknown_outcome',
  },
  /** Group 0 has no leader that can be reached. */
  notLeader: {
    status: 503,
    text: 'group 0 has no leader just now; ask again',
    reason: 'no_leader',
  },
} as const satisfies Readonly<Record<string, FailureMeaning>>;

export type NodeChangeFailure = keyof typeof NODE_CHANGE_FAILURES;
type Unfinished = 'notMember' | 'overloaded' | 'unknownOutcome' | 'notLeader';
/** The cluster decided against the change. */
export type NodeChangeRefusal = Exclude<NodeChangeFailure, Unfinished>;

/**
 * What became of a change of the nodes. `ok`: it is replicated, the partitions begin to move, and have moved when
 * `settledVersion` of the `ClusterReport` reaches `version`. `leader`: 0 where nobody knows.
 */
export type NodeChangeResult =
  | { readonly ok: true; readonly version: number }
  | { readonly ok: false; readonly reason: Exclude<NodeChangeFailure, 'notLeader'> }
  | { readonly ok: false; readonly reason: 'notLeader'; readonly leader: number };

/**
 * Checks a change of which only the two names are known.
 *
 * @throws InvalidFieldError naming the field and its bound
 */
export function validateNodeChange({
  add,
  remove,
}: {
  readonly [Field in keyof NodeChange]?: unknown;
}): NodeChange {
  if (remove !== undefined && (typeof remove !== 'number' || !Number.isSafeInteger(remove) || remove < 1)) {
    throw new InvalidFieldError('remove', 'must be the id of a node, an integer >= 1');
  }
  return {
    ...(add !== undefined && { add: reachable(validateNode(add, 'add')) }),
    ...(remove !== undefined && { remove }),
  };
}

function reachable(node: NodeAddress): NodeAddress {
  // It is not replicated: a node tells the others itself, for as long as it is there.
  if (node.resp !== undefined)
    throw new InvalidFieldError('add.resp', 'is told by the node itself, not here');
  if (node.grpc !== undefined)
    throw new InvalidFieldError('add.grpc', 'is known to the node alone, and to its clients');
  for (const name of ['http', 'peer'] as const) {
    // Where a node listens 0 lets the system choose; nobody else could know what.
    if (node[name].port === 0) {
      throw new InvalidFieldError(`add.${name}.port`, 'must be an integer from 1 to 65535');
    }
  }
  return node;
}
