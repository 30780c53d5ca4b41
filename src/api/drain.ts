/**
 * Draining a node, as every door takes it: the change, its check, and what becomes of it, with texts and statuses in one table.
 * Group 0 decides. A node that is being drained leads nothing that others can lead, and its doors take no requests.
 */
import { InvalidFieldError } from './fields.ts';
import { NODE_CHANGE_FAILURES } from './node-change.ts';

export interface DrainChange {
  readonly node: number;
  /** False: it takes requests again, and leads again. */
  readonly isDraining: boolean;
}

/** Why a node is not drained, or may not be. */
export const DRAIN_FAILURES = {
  /** No node of this id belongs to the cluster. */
  unknownNode: { status: 404, text: 'no node of this id belongs to the cluster' },
  /** Fewer would be left than `undrainedMin`. */
  tooFewUndrained: { status: 409, text: 'too few nodes would be left that are not drained' },
  notMember: NODE_CHANGE_FAILURES.notMember,
  overloaded: NODE_CHANGE_FAILURES.overloaded,
  unknownOutcome: NODE_CHANGE_FAILURES.unknownOutcome,
  notLeader: NODE_CHANGE_FAILURES.notLeader,
} as const satisfies Readonly<Record<string, { readonly status: 404 | 409 | 503; readonly text: string }>>;

export type DrainFailure = keyof typeof DRAIN_FAILURES;
/** Group 0 decided against it. */
export type DrainRefusal = 'unknownNode' | 'tooFewUndrained';

/** `ok`: it is replicated. A repetition changes nothing. */
export type DrainResult = { readonly ok: true } | { readonly ok: false; readonly reason: DrainFailure };

/**
 * Of so many nodes, at least as many must not be drained: a majority of them. Of two, which are a majority together only, one
 * is enough, for otherwise neither could ever be drained.
 */
export function undrainedMin(nodes: number): number {
  return nodes === 2 ? 1 : Math.floor(nodes / 2) + 1;
}

/** What `tooFewUndrained` says of the cluster that refused `node`, in numbers. */
export function tooFewUndrainedText(
  nodes: readonly { readonly id: number; readonly draining?: boolean }[],
  node: number,
): string {
  const drained = nodes.filter(({ id, draining }) => id !== node && draining === true).map(({ id }) => id);
  const left = nodes.length - drained.length - 1;
  const others = drained.length === 0 ? '' : `: node ${drained.join(', ')} is drained already`;
  return (
    `of ${nodes.length} nodes at least ${undrainedMin(nodes.length)} must not be drained, and ${left} would be left${others}; ` +
    (drained.length === 0 ? 'add nodes first' : 'end that first, or add nodes')
  );
}

/** @throws InvalidFieldError naming the field and its bound */
export function validateDrain({
  node,
  isDraining,
}: { readonly [Field in keyof DrainChange]?: unknown }): DrainChange {
  if (typeof node !== 'number' || !Number.isSafeInteger(node) || node < 1)
    throw new InvalidFieldError('node', 'must be the id of a node, an integer >= 1');
  if (typeof isDraining !== 'boolean') throw new InvalidFieldError('isDraining', 'must be true or false');
  return { node, isDraining };
}
