/**
 * The one table of changes of a running cluster, as every door takes them: the kinds, the check of each, what becomes of it, and what
 * each refusal means. Group 0 decides, and nothing here does.
 */
import { InvalidFieldError } from './fields.ts';
import { type NodeAddress, validateNode } from './node-address.ts';
import { labelAt } from './node-labels.ts';
import type { RulesChange } from './rules-change.ts';
import { type TokenAsked, type TokenInfo, TOKENS_MAX } from './token.ts';
import { rangeText, VERSIONS } from './versions.ts';

/** A node to add, one to remove, or both: then the one replaces the other. */
export interface NodeChange {
  readonly add?: NodeAddress;
  readonly remove?: number;
}

/** A node that is drained leads nothing that others can lead, and its doors take no requests. */
export interface DrainChange {
  readonly node: number;
  /** False: it takes requests again, and leads again. */
  readonly isDraining: boolean;
}

/** A label that is not named stays; null takes it away. */
export interface LabelChange {
  readonly node: number;
  readonly zone?: string | null;
  readonly host?: string | null;
}

/** The version that the cluster is raised to, see `VERSIONS`. */
export interface UpgradeChange {
  readonly version: number;
}

/** `canOpen`: also if no token of role admin is left, and everybody may ask again. */
export type TokenChange =
  | { readonly create: TokenAsked }
  | { readonly revoke: string; readonly canOpen: boolean };

/** What operators change, by kind. */
interface Changes {
  readonly nodes: NodeChange;
  readonly drain: DrainChange;
  readonly label: LabelChange;
  readonly upgrade: UpgradeChange;
  readonly rules: RulesChange;
  readonly tokens: TokenChange;
}

/** Checked by `validateNodeChange` and so on. A repetition changes nothing, except of rules and of a token that is made. */
export type ClusterChange = {
  [Kind in keyof Changes]: { readonly type: Kind; readonly change: Changes[Kind] };
}[keyof Changes];

interface Meaning {
  /** In HTTP. 503: ask again. Others: the cluster does not want it. */
  readonly status: 400 | 404 | 409 | 412 | 503;
  /** For people, unless the result has a message of its own. */
  readonly text: string;
}

/** Why the cluster was not changed, or may not have been. */
export const CHANGE_FAILURES = {
  /** The result names the field. */
  invalid: { status: 400, text: 'a field is out of bounds' },
  emptyChange: { status: 409, text: 'give a node to add, the id of one to remove, or both' },
  unknownNode: { status: 404, text: 'no node of this id belongs to the cluster' },
  retiredNode: {
    status: 409,
    text: 'this id belonged to a node that was removed, or is to be; take a new one',
  },
  /** Also the same node, if it was added with other labels. */
  nodeExists: {
    status: 409,
    text: 'the id or an address belongs to another node of the cluster, or the node was added with another zone or host: change those with `quorate nodes label`',
  },
  tooFewNodes: {
    status: 409,
    text: 'fewer nodes would remain than each partition has copies; add one in the same change',
  },
  tooManyNodes: { status: 409, text: 'the cluster has as many nodes as it can have' },
  tooFewUndrained: { status: 409, text: 'too few nodes would be left that are not drained' },
  /** The node to add tried to take part, and was refused for its version. */
  olderNode: {
    status: 409,
    text: 'the node to add speaks no version as high as that of the cluster; start it with a newer quorate, and ask again',
  },
  nodesBehind: { status: 409, text: 'not every node of the cluster is known to speak this version' },
  lowerVersion: {
    status: 409,
    text: 'the cluster is at a higher version, and there is no way back; restore a backup into a new cluster instead',
  },
  rulesChanged: {
    status: 412,
    text: 'other rules are in force than the change was made for; read them again',
  },
  unknownRule: { status: 404, text: 'no rule in force has this id' },
  tokenExists: { status: 503, text: 'another token has the id that was drawn; ask again' },
  tooManyTokens: { status: 409, text: `the cluster has ${TOKENS_MAX} tokens, as many as it can have` },
  unknownToken: { status: 404, text: 'there is no token of this id' },
  lastAdmin: {
    status: 409,
    text: 'this is the last token of role admin; without one the cluster is open to everybody: say so with ?open=true',
  },
  configuredToken: {
    status: 409,
    text: 'this token stands in the cluster.json of the nodes: take it out there, and restart them',
  },
  /** The node that was asked takes part no more, and knows nothing of what became of the change. */
  notMember: { status: 409, text: 'this node does not belong to the cluster; ask another one' },
  overloaded: { status: 503, text: 'too many changes are waiting; ask again' },
  unknownOutcome: { status: 503, text: 'the change may have happened; look before you ask again' },
  notLeader: { status: 503, text: 'group 0 has no leader just now; ask again' },
} as const satisfies Readonly<Record<string, Meaning>>;

export type ChangeFailure = keyof typeof CHANGE_FAILURES;

/** It is replicated. */
export interface ChangeMade {
  readonly ok: true;
  /**
   * What the change made: the new version of the list of nodes, the rules, the tokens, or the cluster. After a change of nodes, copies
   * have moved when `settledVersion` in the `ClusterReport` reaches it.
   */
  readonly version: number;
  /** After a change of rules: partitions without a leader, which follow later. After a change of tokens: nodes that may not have heard. */
  readonly pending?: readonly number[];
  /** The new token with its secret. Nobody stores the secret, so this answer is the only one that has it. */
  readonly made?: { readonly info: TokenInfo; readonly token: string };
}

export interface ChangeRefused {
  readonly ok: false;
  readonly reason: ChangeFailure;
  /** Instead of the text of `CHANGE_FAILURES`. */
  readonly message?: string;
  /** With `invalid`. */
  readonly field?: string;
  /** With `nodesBehind`. */
  readonly behind?: readonly NodeBehind[];
  /** With `notLeader`: whom to ask instead; 0 where nobody knows. */
  readonly leader?: number;
}

export type ChangeResult = ChangeMade | ChangeRefused;
/** Told once, unless this process ends before. */
export type ChangeDone = (result: ChangeResult) => void;

/** A node of the cluster that does not speak a version, as far as is known. */
export interface NodeBehind {
  readonly node: number;
  /** The highest that it speaks; absent: it is not connected. */
  readonly speaks?: number;
}

type Unchecked<Change> = { readonly [Field in keyof Change]?: unknown };

/** @throws InvalidFieldError naming the field and its bound */
export function validateNodeChange({ add, remove }: Unchecked<NodeChange>): NodeChange {
  return {
    ...(add !== undefined && { add: reachable(validateNode(add, 'add')) }),
    ...(remove !== undefined && { remove: nodeAt(remove, 'remove') }),
  };
}

function reachable(node: NodeAddress): NodeAddress {
  // It is not replicated: a node tells the others itself, for as long as it is there.
  if (node.resp !== undefined)
    throw new InvalidFieldError(
      'add.resp',
      'must be absent: the node itself tells the others where it speaks the Redis protocol',
    );
  if (node.grpc !== undefined)
    throw new InvalidFieldError('add.grpc', 'must be absent: only the node and its clients need it');
  for (const name of ['http', 'peer'] as const) {
    // Where a node listens 0 lets the system choose; nobody else could know what.
    if (node[name].port === 0) {
      throw new InvalidFieldError(`add.${name}.port`, 'must be an integer from 1 to 65535');
    }
  }
  return node;
}

/** @throws InvalidFieldError naming the field and its bound */
export function validateDrain({ node, isDraining }: Unchecked<DrainChange>): DrainChange {
  if (typeof isDraining !== 'boolean') throw new InvalidFieldError('isDraining', 'must be true or false');
  return { node: nodeAt(node, 'node'), isDraining };
}

/** @throws InvalidFieldError naming the field and its bound */
export function validateLabelChange({ node, zone, host }: Unchecked<LabelChange>): LabelChange {
  if (zone === undefined && host === undefined)
    throw new InvalidFieldError('zone', 'must be a label, or null to take it away, unless host is given');
  return {
    node: nodeAt(node, 'node'),
    ...(zone !== undefined && { zone: zone === null ? null : labelAt(zone, 'zone') }),
    ...(host !== undefined && { host: host === null ? null : labelAt(host, 'host') }),
  };
}

/** @throws InvalidFieldError naming the field and its bound */
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
