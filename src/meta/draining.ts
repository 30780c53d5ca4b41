/** Draining of nodes in the state of group 0. Pure: the same on every node. */
import type { ChangeFailure, DrainChange } from '../api/cluster-change.ts';
import type { NodeId } from '../../raft/types.ts';
import type { Member, MetaState } from './cluster-state.ts';

/**
 * The number of nodes that must stay undrained: a majority. One is enough of two nodes, because otherwise neither could
 * ever be drained.
 */
export function undrainedMin(nodes: number): number {
  return nodes === 2 ? 1 : Math.floor(nodes / 2) + 1;
}

/** The message of the refusal `tooFewUndrained` to drain `node`, with numbers. */
export function tooFewUndrainedText(nodes: readonly Member[], node: NodeId): string {
  const drained = nodes.filter(({ id, draining }) => id !== node && draining === true).map(({ id }) => id);
  const left = nodes.length - drained.length - 1;
  const others = drained.length === 0 ? '' : `: node ${drained.join(', ')} is drained already`;
  return (
    `at least ${undrainedMin(nodes.length)} of ${nodes.length} nodes must stay undrained, but ${left} would be left${others}; ` +
    (drained.length === 0 ? 'add nodes first' : 'end that drain first, or add nodes')
  );
}

/** Begins or ends the draining of a node. Returns the same state if nothing changes, so a repetition is harmless. */
export function changedDraining(
  state: MetaState,
  { node, isDraining }: DrainChange,
): MetaState | ChangeFailure {
  const { nodes, leaving } = state;
  const member = [...nodes, ...leaving].find(({ id }) => id === node);
  if (member === undefined) return 'unknownNode';
  if ((member.draining === true) === isDraining) return state;
  // A node that was removed does not count among those that must stay undrained.
  if (isDraining && nodes.includes(member)) {
    const left = nodes.filter((each) => each !== member && each.draining !== true).length;
    if (left < undrainedMin(nodes.length)) return 'tooFewUndrained';
  }
  const changed = (members: readonly Member[]): readonly Member[] =>
    members.map((each) => (each === member ? withDraining(each, isDraining) : each));
  return { ...state, nodes: changed(nodes), leaving: changed(leaving) };
}

function withDraining(member: Member, isDraining: boolean): Member {
  if (isDraining) return { ...member, draining: true };
  const { draining: _, ...others } = member;
  return others;
}
