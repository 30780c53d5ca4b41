/**
 * Which nodes may take part, by facts, target, incarnation and removal, and which messages are accepted before group 0
 * has recorded a node.
 */
import { FIRST_RULES } from './first-rules.ts';
import { describe, expect, it } from 'vitest';
import type { Message } from '../../raft/types.ts';
import { VERSIONS } from '../../src/api/versions.ts';
import { Admission } from '../../src/meta/admission.ts';
import { META_GROUP } from '../../src/meta/cluster-placement.ts';
import type { MetaState } from '../../src/meta/cluster-state.ts';
import type { Hello } from '../../src/wire/hello.ts';

const FACTS = 'the facts';

function admissionOf(nodeId: number, incarnation = `of ${nodeId}`): Admission {
  const founders = [1, 2, 3].map((id) => ({ id, incarnation: `of ${id}` }));
  return new Admission({ nodeId, incarnation, facts: FACTS, founders });
}

function stateOf(changes: Partial<MetaState>): MetaState {
  const nodes = [1, 2, 3].map((id) => ({ id, incarnation: `of ${id}` }));
  const state = {
    version: 2,
    settledVersion: 1,
    nodes,
    settledNodes: [],
    leaving: [],
    placement: '',
    settledPlacement: '',
    rules: FIRST_RULES,
    clusterVersion: 1,
    retired: [],
  };
  return { ...state, ...changes };
}

/** The hello from node 4 to node 1. */
const HELLO: Hello = { node: 4, incarnation: 'of 4', target: 1, facts: FACTS, speaks: VERSIONS };
const NODE_4 = { id: 4, incarnation: 'of 4' };

const all = (types: readonly unknown[], taken: boolean): boolean[] => types.map(() => taken);

describe('a hello', () => {
  it('is accepted from a founder, and from an unknown node', () => {
    const admission = admissionOf(1);
    expect(admission.refusalOf(admissionOf(2).helloTo(1))).toBeUndefined();
    expect(admission.refusalOf(HELLO)).toBeUndefined();
  });

  it.each<[what: string, hello: Hello, code: string, text: RegExp]>([
    [
      'with other facts',
      { ...HELLO, facts: 'others' },
      'otherFacts',
      /compare clusterId, founders, partitions/,
    ],
    ['for another node', { ...HELLO, target: 3 }, 'wrongTarget', /looked for node 3 and reached node 1/],
    [
      'for another database',
      { ...HELLO, targetIncarnation: 'of 1, lost' },
      'wrongTarget',
      /does not have the database/,
    ],
    ['from another founder', { ...HELLO, node: 2, incarnation: 'anew' }, 'otherIncarnation', /take a new id/],
  ])('%s is refused with the reason', (_what, hello, code, text) => {
    expect(admissionOf(1).refusalOf(hello)).toEqual({ code, text: expect.stringMatching(text) });
  });

  it('names the incarnation of the target once it is known', () => {
    const admission = admissionOf(1);
    expect(admission.helloTo(2).targetIncarnation).toBe('of 2');
    expect(admission.helloTo(4).targetIncarnation).toBeUndefined();
    admission.update(stateOf({ nodes: [NODE_4] }), []);
    expect(admission.helloTo(4).targetIncarnation).toBe('of 4');
  });

  it('of another database under a recorded id is refused, also after that node left', () => {
    const admission = admissionOf(1);
    const anew = { ...HELLO, incarnation: 'anew' };
    admission.update(stateOf({ nodes: [{ id: 4 }] }), []);
    expect(admission.refusalOf(anew)).toBeUndefined();
    admission.update(stateOf({ nodes: [NODE_4] }), []);
    expect(admission.refusalOf(anew)?.code).toBe('otherIncarnation');
    expect(admission.refusalOf(HELLO)).toBeUndefined();
  });

  it('of a removed node is refused once it is no longer needed and knows of its removal', () => {
    const admission = admissionOf(1);
    admission.update(stateOf({ leaving: [NODE_4], retired: [4] }), [1, 2, 3, 4]);
    expect(admission.refusalOf(HELLO)).toBeUndefined();
    // All partitions have moved; group 0 still has it as a learner, so that it learns of its removal.
    admission.update(stateOf({ retired: [4] }), [1, 2, 3, 4]);
    expect(admission.refusalOf(HELLO)).toBeUndefined();
    admission.update(stateOf({ retired: [4] }), [1, 2, 3]);
    expect(admission.refusalOf(HELLO)?.code).toBe('removed');
  });

  it('of a node that was removed or created again is refused for that, even if its target was removed too', () => {
    const admission = admissionOf(7);
    admission.update(stateOf({ nodes: [{ id: 7, incarnation: 'of 7' }], retired: [1, 2, 3, 4] }), [7]);
    // Node 7 has the former address of node 1.
    expect(admission.refusalOf(HELLO)?.code).toBe('removed');
    admission.update(stateOf({ nodes: [NODE_4], retired: [1, 2, 3] }), [4, 7]);
    expect(admission.refusalOf({ ...HELLO, incarnation: 'anew' })?.code).toBe('otherIncarnation');
    expect(admission.refusalOf(HELLO)?.code).toBe('wrongTarget');
  });

  it('is refused by a node that was removed', () => {
    const admission = admissionOf(1);
    admission.withdraw('node 1 was removed');
    expect(admission.refusalOf(HELLO)).toEqual({ code: 'wrongTarget', text: 'node 1 was removed' });
  });
});

describe('a message', () => {
  const REQUESTS: Message['type'][] = ['preVote', 'vote', 'append', 'heartbeat', 'timeoutNow'];
  const PROMISES: Message['type'][] = [
    'preVoteResponse',
    'voteResponse',
    'appendResponse',
    'heartbeatResponse',
  ];
  const SENDER = { node: 4, incarnation: 'of 4' };

  function takes(admission: Admission, types: readonly Message['type'][], group: number): boolean[] {
    return types.map((type) =>
      admission.mayTake(SENDER, { kind: 'message', group, message: { type } as Message }),
    );
  }

  it('of an unrecorded sender is accepted if it is of group 0 and promises nothing', () => {
    const admission = admissionOf(1);
    expect(takes(admission, REQUESTS, META_GROUP)).toEqual(all(REQUESTS, true));
    expect(takes(admission, PROMISES, META_GROUP)).toEqual(all(PROMISES, false));
    for (const types of [REQUESTS, PROMISES]) expect(takes(admission, types, 1)).toEqual(all(types, false));
    const ack = { group: META_GROUP, from: 4, index: 1, snapshotTerm: 1, held: 1 };
    expect(admission.mayTake(SENDER, { kind: 'chunkAck', ...ack })).toBe(false);
  });

  it('is accepted of a recorded sender, and not of another database under its id', () => {
    const admission = admissionOf(1);
    admission.update(stateOf({ nodes: [NODE_4] }), []);
    expect(takes(admission, [...REQUESTS, ...PROMISES], 1)).not.toContain(false);
    const other = admissionOf(1);
    other.update(stateOf({ nodes: [{ id: 4, incarnation: 'anew' }] }), []);
    expect(takes(other, [...REQUESTS, ...PROMISES], META_GROUP)).not.toContain(true);
  });
});
