/**
 * The table of all changes that operators make to a running cluster: the kinds, the check of each, the results, and
 * the meaning of each refusal. Group 0 decides whether a change is made.
 */
import { InvalidFieldError } from './fields.ts';
import { type NodeAddress, validateNode, labelAt } from './node-address.ts';
import type { RulesChange } from './rules-change.ts';
import { type TokenAsked, type TokenInfo, TOKENS_MAX } from './token.ts';
import { rangeText, VERSIONS } from './versions.ts';

/** Adds a node, removes one, or both. Both together replace the removed node with the new one. */
export interface NodeChange {
  readonly add?: NodeAddress;
  readonly remove?: number;
}

/** Drains a node. A drained node leads nothing that other nodes can lead, and its API listeners take no requests. */
export interface DrainChange {
  readonly node: number;
  /** False ends the drain: the node takes requests and leads again. */
  readonly isDraining: boolean;
}

/** Changes the labels of a node. A label that is absent here stays as it is; null removes it. */
export interface LabelChange {
  readonly node: number;
  readonly zone?: string | null;
  readonly host?: string | null;
}

/** Raises the version of the cluster (see `VERSIONS`). */
export interface UpgradeChange {
  readonly version: number;
}

/**
 * Creates or revokes a token. With `canOpen`, the last admin token may be revoked too, which opens the cluster to
 * everybody.
 */
export type TokenChange =
  | { readonly create: TokenAsked }
  | { readonly revoke: string; readonly canOpen: boolean };

/** The changes by kind. */
interface Changes {
  readonly nodes: NodeChange;
  readonly drain: DrainChange;
  readonly label: LabelChange;
  readonly upgrade: UpgradeChange;
  readonly rules: RulesChange;
  readonly tokens: TokenChange;
}

/**
 * A checked change (see `validateNodeChange` and the other validators below). Repeating a change has no effect,
 * except for rules and for the creation of a token.
 */
export type ClusterChange = {
  [Kind in keyof Changes]: { readonly type: Kind; readonly change: Changes[Kind] };
}[keyof Changes];

interface Meaning {
  /** The HTTP status. 503 means: try again. The other statuses mean that the cluster refuses the change. */
  readonly status: 400 | 404 | 409 | 412 | 503;
  /** The message for people, used if the result has no message of its own. */
  readonly text: string;
}

/** Why a change was refused, or may not have happened. */
export const CHANGE_FAILURES = {
  /** The result names the field. */
  invalid: { status: 400, text: 'a field is out of bounds' },
  emptyChange: { status: 409, text: 'give a node to add, the id of one to remove, or both' },
  unknownNode: { status: 404, text: 'no node of this id belongs to the cluster' },
  retiredNode: {
    status: 409,
    text: 'this id belonged to a node that was removed, or is to be; take a new one',
  },
  /** Also returned for the same node with other labels. */
  nodeExists: {
    status: 409,
    text: 'the id or an address belongs to another node of the cluster, or the node was added with another zone or host: change those with `quorate nodes label`',
  },
  tooFewNodes: {
    status: 409,
    text: 'fewer nodes would remain than each partition has copies; add one in the same change',
  },
  tooManyNodes: { status: 409, text: 'the cluster already has the maximum number of nodes' },
  tooFewUndrained: { status: 409, text: 'too few nodes would remain that are not drained' },
  /** The node to add tried to join and was refused because of its version. */
  olderNode: {
    status: 409,
    text: 'the node to add does not speak the version of the cluster; start it with a newer quorate, and try again',
  },
  nodesBehind: { status: 409, text: 'not every node of the cluster is known to speak this version' },
  lowerVersion: {
    status: 409,
    text: 'the cluster is at a higher version, and there is no way back; restore a backup into a new cluster instead',
  },
  rulesChanged: {
    status: 412,
    text: 'the rules have changed since they were read; read them again',
  },
  unknownRule: { status: 404, text: 'no rule in force has this id' },
  tokenExists: { status: 503, text: 'another token has the generated id; try again' },
  tooManyTokens: { status: 409, text: `the cluster has ${TOKENS_MAX} tokens, which is the maximum` },
  unknownToken: { status: 404, text: 'there is no token of this id' },
  lastAdmin: {
    status: 409,
    text: 'this is the last token of role admin; without one the cluster is open to everybody: confirm with ?open=true',
  },
  configuredToken: {
    status: 409,
    text: 'this token is in the cluster.json of the nodes: remove it there, and restart them',
  },
  /** The node that was asked no longer belongs to the cluster, and does not know whether the change was made. */
  notMember: { status: 409, text: 'this node does not belong to the cluster; ask another one' },
  overloaded: { status: 503, text: 'too many changes are waiting; try again' },
  unknownOutcome: { status: 503, text: 'the change may have happened; check before you try again' },
  notLeader: { status: 503, text: 'group 0 has no leader now; try again' },
} as const satisfies Readonly<Record<string, Meaning>>;

/** A key of `CHANGE_FAILURES`. */
export type ChangeFailure = keyof typeof CHANGE_FAILURES;

/** The change is replicated. */
export interface ChangeMade {
  readonly ok: true;
  /**
   * The version that the change made: of the list of nodes, the rules, the tokens, or the cluster. After a change of
   * nodes, the copies have moved when `settledVersion` in the `ClusterReport` reaches this version.
   */
  readonly version: number;
  /**
   * After a change of rules: the partitions without a leader, which follow later. After a change of tokens: the nodes
   * that may not know it yet.
   */
  readonly pending?: readonly number[];
  /** The new token with its secret. The secret is not stored, so only this answer contains it. */
  readonly made?: { readonly info: TokenInfo; readonly token: string };
}

/** The change was refused, or its outcome is unknown. */
export interface ChangeRefused {
  readonly ok: false;
  readonly reason: ChangeFailure;
  /** Replaces the text of `CHANGE_FAILURES`. */
  readonly message?: string;
  /** Only with `invalid`: the name of the field. */
  readonly field?: string;
  /** Only with `nodesBehind`: the nodes that do not speak the version. */
  readonly behind?: readonly NodeBehind[];
  /** Only with `notLeader`: the id of the node to ask instead; 0 if it is not known. */
  readonly leader?: number;
}

/** The answer to a `ClusterChange`. */
export type ChangeResult = ChangeMade | ChangeRefused;
/** Called once, unless the process ends first. */
export type ChangeDone = (result: ChangeResult) => void;

/** A node of the cluster that, as far as is known, does not speak a version. */
export interface NodeBehind {
  readonly node: number;
  /** The highest version it speaks. Absent: the node is not connected. */
  readonly speaks?: number;
}

type Unchecked<Change> = { readonly [Field in keyof Change]?: unknown };

/** Checks a change of nodes. @throws InvalidFieldError naming the field and its bound */
export function validateNodeChange({ add, remove }: Unchecked<NodeChange>): NodeChange {
  return {
    ...(add !== undefined && { add: reachable(validateNode(add, 'add')) }),
    ...(remove !== undefined && { remove: nodeAt(remove, 'remove') }),
  };
}

function reachable(node: NodeAddress): NodeAddress {
  // Not replicated: a node reports this address to the others itself, while it is up.
  if (node.resp !== undefined)
    throw new InvalidFieldError(
      'add.resp',
      'must be absent: the node itself reports its RESP address to the others',
    );
  if (node.grpc !== undefined)
    throw new InvalidFieldError('add.grpc', 'must be absent: only the node and its clients need it');
  for (const name of ['http', 'peer'] as const) {
    // In a node's own configuration, port 0 lets the system choose. The other nodes could not know that port.
    if (node[name].port === 0) {
      throw new InvalidFieldError(`add.${name}.port`, 'must be an integer from 1 to 65535');
    }
  }
  return node;
}

/** Checks a drain. @throws InvalidFieldError naming the field and its bound */
export function validateDrain({ node, isDraining }: Unchecked<DrainChange>): DrainChange {
  if (typeof isDraining !== 'boolean') throw new InvalidFieldError('isDraining', 'must be true or false');
  return { node: nodeAt(node, 'node'), isDraining };
}

/** Checks a change of labels. @throws InvalidFieldError naming the field and its bound */
export function validateLabelChange({ node, zone, host }: Unchecked<LabelChange>): LabelChange {
  if (zone === undefined && host === undefined)
    throw new InvalidFieldError('zone', 'must be a label, or null to take it away, unless host is given');
  return {
    node: nodeAt(node, 'node'),
    ...(zone !== undefined && { zone: zone === null ? null : labelAt(zone, 'zone') }),
    ...(host !== undefined && { host: host === null ? null : labelAt(host, 'host') }),
  };
}

/** Checks a change of the cluster's version. @throws InvalidFieldError naming the field and its bound */
export function validateUpgrade({ version }: Unchecked<UpgradeChange>): UpgradeChange {
  const { min, max } = VERSIONS;
  if (typeof version !== 'number' || !Number.isSafeInteger(version) || version < min || version > max)
    throw new InvalidFieldError('version', `must be a version that this node speaks: ${rangeText(VERSIONS)}`);
  return { version };
}

function nodeAt(value: unknown, field: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return value;
  throw new InvalidFieldError(field, 'must be the id of a node, an integer >= 1');
}
