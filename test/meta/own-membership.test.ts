/** The membership of a node, from the state of group 0 and from refusals by other nodes. */
import { FIRST_RULES } from './first-rules.ts';
import { expect, it } from 'vitest';
import type { Admission } from '../../src/meta/admission.ts';
import type { MetaState } from '../../src/meta/cluster-state.ts';
import { OwnMembership } from '../../src/meta/own-membership.ts';

const INCARNATION = 'a'.repeat(32);
const HERE = { host: '127.0.0.1', port: 1 };

function member(id: number): MetaState['nodes'][number] {
  return { id, incarnation: INCARNATION, http: HERE, peer: HERE };
}

function stateOf(changes: Partial<MetaState>): MetaState {
  const nodes = [1, 2, 3].map(member);
  return {
    version: 1,
    settledVersion: 1,
    nodes,
    settledNodes: [],
    leaving: [],
    retired: [],
    clusterVersion: 1,
    placement: '',
    settledPlacement: '',
    rules: FIRST_RULES,
    ...changes,
  };
}

it('the refusal of a node is forgotten once that node has left the cluster', () => {
  const admission = { self: { node: 1, incarnation: INCARNATION } } as unknown as Admission;
  const own = new OwnMembership(admission);
  const refusal = { code: 'wrongTarget', text: 'node 3 is not here' } as const;
  own.refusedBy(3, refusal);
  // While partitions move away the leaving node is still asked.
  own.update(stateOf({ nodes: [member(1), member(2)], leaving: [member(3)], retired: [3] }));
  expect([...own.refusals]).toEqual([[3, refusal]]);
  const left = stateOf({ nodes: [member(1), member(2)], retired: [3] });
  own.update(left);
  own.refusedBy(3, refusal);
  expect([...own.refusals]).toEqual([]);
  // A final refusal still counts.
  own.refusedBy(3, { code: 'removed', text: 'node 1 was removed' });
  expect(own.current(true).state).toBe('removed');
});
