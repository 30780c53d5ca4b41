/** Configurations and joint quorums, compared with definitions that are too simple to be wrong. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  changedConfig,
  configOfSnapshot,
  decodeConfig,
  encodeConfig,
  flawOf,
  isJoint,
  isSuccessor,
  leaveJoint,
  membersOf,
  type MembershipChange,
  simpleConfig,
} from '../../raft/membership.ts';
import { isQuorum, jointQuorumIndex, jointVoteResult } from '../../raft/quorum.ts';
import type { GroupConfig, NodeId } from '../../raft/types.ts';

const ids = fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 7 });
const joint = fc.record({ voters: ids, outgoing: fc.oneof(fc.constant<number[]>([]), ids) });

/** By definition: more than half of a set. */
function isMajority(set: readonly NodeId[], holds: (node: NodeId) => boolean): boolean {
  return set.filter(holds).length * 2 > set.length;
}

function naive(
  { voters, outgoing }: { voters: NodeId[]; outgoing: NodeId[] },
  holds: (id: NodeId) => boolean,
): boolean {
  return isMajority(voters, holds) && (outgoing.length === 0 || isMajority(outgoing, holds));
}

describe('joint quorums', () => {
  it('51: commit the largest index that a majority of both sets has reached', () => {
    fc.assert(
      fc.property(joint, fc.array(fc.nat(12), { minLength: 10, maxLength: 10 }), (config, match) => {
        const matchOf = (id: NodeId): number => match[id] ?? 0;
        let expected = 0;
        for (let index = 0; index <= 12; index += 1)
          if (naive(config, (id) => matchOf(id) >= index)) expected = index;
        expect(jointQuorumIndex(config, matchOf)).toBe(expected);
      }),
    );
  });

  it('51: are won when both sets are won, lost when one cannot be won any more', () => {
    const votes = fc.array(fc.option(fc.boolean(), { nil: undefined }), { minLength: 10, maxLength: 10 });
    fc.assert(
      fc.property(joint, votes, (config, given) => {
        const answered = new Map<NodeId, boolean>();
        for (const [id, vote] of given.entries()) if (vote !== undefined) answered.set(id, vote);
        const won = naive(config, (id) => answered.get(id) === true);
        const lost = !naive(config, (id) => answered.get(id) !== false);
        expect(jointVoteResult(config, answered)).toBe(won ? 'won' : lost ? 'lost' : 'pending');
        expect(isQuorum(config, (id) => answered.get(id) === true)).toBe(won);
      }),
    );
  });
});

const change: fc.Arbitrary<MembershipChange> = fc.array(
  fc.record({
    kind: fc.constantFrom('addLearner', 'promote', 'demote', 'remove'),
    node: fc.integer({ min: 1, max: 9 }),
  }),
  { minLength: 1, maxLength: 4 },
);

function quorumsOf(config: GroupConfig, universe: readonly NodeId[]): NodeId[][] {
  const subsets = Array.from({ length: 1 << universe.length }, (_, bits) =>
    universe.filter((_id, i) => (bits >> i) & 1),
  );
  return subsets.filter((subset) => isQuorum(config, (id) => subset.includes(id)));
}

describe('changes of a configuration', () => {
  it('62: a chain of changes stays valid, and each quorum overlaps each quorum of the configuration before', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 4 }),
        fc.array(change),
        (start, changes) => {
          let config = simpleConfig(start);
          for (const steps of changes) {
            const next = changedConfig(config, steps, 0);
            if (typeof next === 'string') continue;
            const chain = isJoint(next) ? [config, next, leaveJoint(next)] : [config, next];
            for (const [i, after] of chain.entries()) {
              expect(flawOf(after)).toBeUndefined();
              const before = chain[i - 1];
              if (before === undefined) continue;
              expect(isSuccessor(before, after)).toBe(true);
              const universe = [...new Set([...membersOf(before), ...membersOf(after)])].slice(0, 8);
              const others = quorumsOf(after, universe);
              for (const quorum of quorumsOf(before, universe)) {
                expect(others.every((other) => other.some((id) => quorum.includes(id)))).toBe(true);
              }
            }
            config = leaveIfJoint(next);
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it('62: a demoted voter counts among the old voters until the change is complete, then learns', () => {
    const config = changedConfig(simpleConfig([1, 2, 3]), [{ kind: 'demote', node: 3 }], 0);
    expect(config).toEqual({ epoch: 0, voters: [1, 2], outgoing: [1, 2, 3], learners: [3] });
    expect(typeof config === 'string' ? config : leaveJoint(config)).toEqual({
      epoch: 0,
      voters: [1, 2],
      outgoing: [],
      learners: [3],
    });
  });

  it('62: learners come and go in one entry, and a replacement is one change', () => {
    const withLearner = changedConfig(simpleConfig([1, 2, 3]), [{ kind: 'addLearner', node: 4 }], 0);
    expect(withLearner).toEqual({ epoch: 0, voters: [1, 2, 3], outgoing: [], learners: [4] });
    if (typeof withLearner === 'string') return;
    expect(
      changedConfig(
        withLearner,
        [
          { kind: 'promote', node: 4 },
          { kind: 'remove', node: 1 },
        ],
        0,
      ),
    ).toEqual({ epoch: 0, voters: [2, 3, 4], outgoing: [1, 2, 3], learners: [] });
  });

  it.each([
    ['nothing', [], 'invalidChange'],
    [
      'a node twice',
      [
        { kind: 'remove', node: 1 },
        { kind: 'addLearner', node: 1 },
      ],
      'invalidChange',
    ],
    ['no node id', [{ kind: 'addLearner', node: 0 }], 'invalidChange'],
    ['a promotion of an unknown node', [{ kind: 'promote', node: 9 }], 'unknownNode'],
    ['a promotion of a voter', [{ kind: 'promote', node: 1 }], 'unknownNode'],
    ['a removal of an unknown node', [{ kind: 'remove', node: 9 }], 'unknownNode'],
    ['a demotion of a learner', [{ kind: 'demote', node: 4 }], 'unknownNode'],
    ['a member added', [{ kind: 'addLearner', node: 4 }], 'alreadyMember'],
    [
      'all voters removed',
      [
        { kind: 'remove', node: 1 },
        { kind: 'remove', node: 2 },
      ],
      'wouldLoseQuorum',
    ],
  ] as const)('62: %s is refused', (_what, steps, refusal) => {
    expect(changedConfig({ epoch: 0, voters: [1, 2], outgoing: [], learners: [4] }, steps, 0)).toBe(refusal);
  });

  it('56: a change is refused until the previous one is complete', () => {
    const config = { epoch: 0, voters: [1, 2], outgoing: [1, 2, 3], learners: [] };
    expect(changedConfig(config, [{ kind: 'addLearner', node: 9 }], 0)).toBe('changePending');
    expect(isSuccessor(config, { epoch: 0, voters: [1, 2], outgoing: [], learners: [9] })).toBe(true);
    expect(isSuccessor(config, { epoch: 0, voters: [1, 3], outgoing: [], learners: [] })).toBe(false);
    expect(isSuccessor(simpleConfig([1, 2]), simpleConfig([1, 2, 3]))).toBe(false);
  });
});

describe('the version of the placement that asks for a change', () => {
  const add = [{ kind: 'addLearner', node: 9 }] as const;
  const current = { epoch: 5, voters: [1, 2], outgoing: [], learners: [4] };

  it('66: is kept through the joint configuration to the end of the change', () => {
    const next = changedConfig(current, [{ kind: 'promote', node: 4 }], 8);
    expect(next).toEqual({ epoch: 8, voters: [1, 2, 4], outgoing: [1, 2], learners: [] });
    expect(typeof next === 'string' ? next : leaveJoint(next)).toMatchObject({ epoch: 8, voters: [1, 2, 4] });
  });

  it('66: may ask for several changes, but for none after a newer version has asked', () => {
    expect(changedConfig(current, add, 5)).toMatchObject({ epoch: 5, learners: [4, 9] });
    expect(changedConfig(current, add, 6)).toMatchObject({ epoch: 6, learners: [4, 9] });
    expect(changedConfig(current, add, 4)).toBe('staleEpoch');
    for (const epoch of [-1, 5.5, Number.NaN, 2 ** 53])
      expect(changedConfig(current, add, epoch)).toBe('invalidChange');
  });

  it('66: may be the only thing that changes, if it is newer', () => {
    expect(changedConfig(current, [], 6)).toEqual({ ...current, epoch: 6 });
    expect(changedConfig(current, [], 5)).toBe('invalidChange');
    expect(changedConfig(current, [], 4)).toBe('staleEpoch');
  });

  it('66: never goes back along a log', () => {
    expect(isSuccessor(current, { ...current, epoch: 5 })).toBe(true);
    expect(isSuccessor(current, { ...current, epoch: 6 })).toBe(true);
    expect(isSuccessor(current, { ...current, epoch: 4 })).toBe(false);
    const joint = { ...current, outgoing: [1, 2, 3] };
    expect(isSuccessor(joint, leaveJoint(joint))).toBe(true);
    expect(isSuccessor(joint, { ...leaveJoint(joint), epoch: 4 })).toBe(false);
  });
});

function leaveIfJoint(config: GroupConfig): GroupConfig {
  return isJoint(config) ? leaveJoint(config) : config;
}

describe('an encoded configuration', () => {
  it('decodes to the same configuration', () => {
    fc.assert(
      fc.property(
        fc.maxSafeNat(),
        ids,
        fc.oneof(fc.constant<number[]>([]), ids),
        fc.uniqueArray(fc.integer({ min: 10, max: 2 ** 40 })),
        (epoch, voters, outgoing, learners) => {
          const config = { epoch, voters, outgoing, learners };
          expect(decodeConfig(encodeConfig(config))).toEqual(config);
        },
      ),
    );
  });

  it('is refused if its bytes are no configuration', () => {
    const good = encodeConfig({ epoch: 0, voters: [1, 2], outgoing: [], learners: [3] });
    expect(decodeConfig(good.slice(0, -1))).toBeUndefined();
    expect(decodeConfig(good.slice(0, -8))).toBeUndefined();
    expect(decodeConfig(new Uint8Array(0))).toBeUndefined();
    expect(decodeConfig(encodeConfig({ epoch: 0, voters: [], outgoing: [], learners: [3] }))).toBeUndefined();
    expect(
      decodeConfig(encodeConfig({ epoch: 0, voters: [1, 1], outgoing: [], learners: [] })),
    ).toBeUndefined();
    expect(
      decodeConfig(encodeConfig({ epoch: 0, voters: [1], outgoing: [], learners: [1] })),
    ).toBeUndefined();
    for (const epoch of [-1, 0.5, 2 ** 53])
      expect(decodeConfig(encodeConfig({ ...simpleConfig([1]), epoch }))).toBeUndefined();
    expect(
      decodeConfig(encodeConfig({ epoch: 0, voters: [0.5], outgoing: [], learners: [] })),
    ).toBeUndefined();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (data) => {
        const config = decodeConfig(data);
        expect(config === undefined || flawOf(config) === undefined).toBe(true);
      }),
    );
  });

  it('63: has no lists in a snapshot without them', () => {
    const meta = { index: 1, term: 1, timeMillis: 1, voters: [1, 2], chunkCount: 0, byteLength: 0 };
    expect(configOfSnapshot(meta)).toEqual(simpleConfig([1, 2]));
    expect(configOfSnapshot({ ...meta, epoch: 7, outgoing: [3], learners: [4] })).toEqual({
      epoch: 7,
      voters: [1, 2],
      outgoing: [3],
      learners: [4],
    });
  });
});
