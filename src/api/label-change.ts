/**
 * Labelling a node, as every door takes it: the change, its check, and what becomes of it, with texts and statuses in one table. Group
 * 0 decides.
 */
import { InvalidFieldError } from './fields.ts';
import { NODE_CHANGE_FAILURES } from './node-change.ts';
import { labelAt } from './node-labels.ts';

/** A label that is not named stays; null takes it away. */
export interface LabelChange {
  readonly node: number;
  readonly zone?: string | null;
  readonly host?: string | null;
}

/** Why a node is not labelled, or may not be. */
export const LABEL_FAILURES = {
  /** No node of this id belongs to the cluster. */
  unknownNode: { status: 404, text: 'no node of this id belongs to the cluster' },
  notMember: NODE_CHANGE_FAILURES.notMember,
  overloaded: NODE_CHANGE_FAILURES.overloaded,
  unknownOutcome: NODE_CHANGE_FAILURES.unknownOutcome,
  notLeader: NODE_CHANGE_FAILURES.notLeader,
} as const satisfies Readonly<Record<string, { readonly status: 404 | 409 | 503; readonly text: string }>>;

export type LabelFailure = keyof typeof LABEL_FAILURES;
/** Group 0 decided against it. */
export type LabelRefusal = 'unknownNode';

/**
 * `ok`: it is replicated, copies begin to move if they have to, and have moved when `settledVersion` of the `ClusterReport` reaches
 * `version`. A repetition changes nothing.
 */
export type LabelResult =
  | { readonly ok: true; readonly version: number }
  | { readonly ok: false; readonly reason: LabelFailure };

/** @throws InvalidFieldError naming the field and its bound */
export function validateLabelChange({
  node,
  zone,
  host,
}: {
  readonly [Field in keyof LabelChange]?: unknown;
}): LabelChange {
  if (typeof node !== 'number' || !Number.isSafeInteger(node) || node < 1)
    throw new InvalidFieldError('node', 'must be the id of a node, an integer >= 1');
  if (zone === undefined && host === undefined)
    throw new InvalidFieldError('zone', 'must be a label, or null to take it away, unless host is given');
  return {
    node,
    ...(zone !== undefined && { zone: zone === null ? null : labelAt(zone, 'zone') }),
    ...(host !== undefined && { host: host === null ? null : labelAt(host, 'host') }),
  };
}
