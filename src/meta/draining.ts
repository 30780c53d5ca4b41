/** Which nodes are being drained, in the state of group 0, and what changes that. Pure: the same on every node. */
import type { ChangeFailure, DrainChange } from '../api/cluster-change.ts';
import type { NodeId } from '../../raft/types.ts';
import type { Member, MetaState } from './cluster-state.ts';

/**
 * How many nodes must stay undrained: a majority. Two nodes are a majority only together, so one of two is enough: otherwise neither
 * could ever be drained.
 */
export function undrainedMin(nodes: number): number {
  return nodes === 2 ? 1 : Math.floor(nodes / 2) + 1;
}

/** What `tooFewUndrained` says of the cluster that refused `node`, in numbers. */
export function tooFewUndrainedText(nodes: readonly Member[], node: NodeId): string {
  const drained = nodes.filter(({ id, draining }) => id !== node && draining === true).map(({ id }) => id);
  const left = nodes.length - drained.length - 1;
  const others = drained.length === 0 ? '' : `: node ${drained.join(', ')} is drained already`;
  return (
    `of ${nodes.length} nodes at least ${undrainedMin(nodes.length)} must not be drained, and ${left} would be left${others}; ` +
    (drained.length === 0 ? 'add nodes first' : 'end that first, or add nodes')
  );
}

/** The same state if there is nothing left to do: a repetition is harmless. */
export function changedDraining(
  state: MetaState,
  { node, isDraining }: DrainChange,
): MetaState | ChangeFailure {
  const { nodes, leaving } = state;
  const member = [...nodes, ...leaving].find(({ id }) => id === node);
  if (member === undefined) return 'unknownNode';
  if ((member.draining === true) === isDraining) return state;
  // One that was removed takes nothing from those that stay.
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
