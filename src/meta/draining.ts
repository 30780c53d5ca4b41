/** Which nodes are being drained, in the state of group 0, and what changes that. Pure: the same on every node. */
import { type DrainChange, type DrainRefusal, undrainedMin } from '../api/drain.ts';
import type { Member, MetaState } from './meta-state.ts';

/** The same state if there is nothing left to do: a repetition is harmless. */
export function changedDraining(
  state: MetaState,
  { node, isDraining }: DrainChange,
): MetaState | DrainRefusal {
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
