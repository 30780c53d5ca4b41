/** The steps from the current members of a group to the wanted ones: each is valid, and they end. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { changedConfig, isJoint, leaveJoint, simpleConfig } from '../../raft/membership.ts';
import type { GroupConfig } from '../../raft/types.ts';
import { metaMembers, type Members, unlabelled } from '../../src/meta/cluster-placement.ts';
import { nextStep, type Ready } from '../../src/meta/group-mover.ts';

const ALL: Ready = { mayEnter: () => true, mayLeave: () => true };

/** Every configuration on the way, the first and the last included. */
function way(from: GroupConfig, wanted: Members): GroupConfig[] {
  const configs = [from];
  for (let config = from; ; configs.push(config)) {
    if (isJoint(config)) {
      config = leaveJoint(config);
      continue;
    }
    const step = nextStep(config, wanted, ALL);
    expect(step).not.toBe('waits');
    if (step === 'none' || step === 'waits') return configs;
    const next = changedConfig(config, step, config.epoch);
    if (typeof next === 'string') throw new Error(`${next}: ${JSON.stringify(step)}`);
    config = next;
    expect(configs.length).toBeLessThan(6);
  }
}

function split(all: readonly number[], cut: number): Members {
  const count = 1 + (cut % all.length);
  return { voters: all.slice(0, count), learners: all.slice(count) };
}

const sorted = (ids: readonly number[]): number[] => [...ids].sort((a, b) => a - b);

describe('moving a group', () => {
  it('to a new node instead of an old one: learner, then both in one step, then out of the joint configuration', () => {
    const configs = way(simpleConfig([1, 2, 3]), { voters: [1, 2, 4], learners: [] });
    expect(configs.slice(1)).toMatchObject([
      { voters: [1, 2, 3], outgoing: [], learners: [4] },
      { voters: [1, 2, 4], outgoing: [1, 2, 3], learners: [] },
      { voters: [1, 2, 4], outgoing: [], learners: [] },
    ]);
  });

  it('does nothing while a change is under way', () => {
    const joint = { ...simpleConfig([1, 2]), outgoing: [1, 2, 3] };
    expect(nextStep(joint, { voters: [9], learners: [] }, ALL)).toBe('waits');
  });

  it('waits for missing nodes, adds the others meanwhile, and keeps all voters until all have joined', () => {
    const wanted = { voters: [1, 4, 5], learners: [] };
    const onlyFour: Ready = { mayEnter: (node) => node === 4, mayLeave: () => true };
    const before = simpleConfig([1, 2, 3]);
    expect(nextStep(before, wanted, { ...ALL, mayEnter: () => false })).toBe('waits');
    expect(nextStep(before, wanted, onlyFour)).toEqual([{ kind: 'addLearner', node: 4 }]);
    expect(nextStep({ ...before, learners: [4] }, wanted, onlyFour)).toBe('waits');
    // A learner that is not wanted any more is removed at once.
    expect(nextStep({ ...before, learners: [4, 9] }, wanted, onlyFour)).toEqual([
      { kind: 'remove', node: 9 },
    ]);
  });

  it('keeps a node that may not leave yet, and is still done', () => {
    const config = { ...simpleConfig([1, 2, 3]), learners: [4] };
    const wanted = { voters: [1, 2, 3], learners: [] };
    expect(nextStep(config, wanted, { ...ALL, mayLeave: () => false })).toBe('none');
    expect(nextStep(config, wanted, ALL)).toEqual([{ kind: 'remove', node: 4 }]);
  });

  it('ends with the wanted members, from any configuration', () => {
    const ids = fc.uniqueArray(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 7 });
    fc.assert(
      fc.property(ids, ids, fc.nat(), fc.nat(), (before, after, cutBefore, cutAfter) => {
        const wanted = split(after, cutAfter);
        const last = way({ ...simpleConfig([]), ...split(before, cutBefore) }, wanted).at(-1);
        expect(sorted(last?.voters ?? [])).toEqual(sorted(wanted.voters));
        expect(sorted(last?.learners ?? [])).toEqual(sorted(wanted.learners));
      }),
    );
  });
});

describe('group 0', () => {
  it.each([
    [1, 1],
    [2, 1],
    [3, 3],
    [4, 3],
    [5, 5],
    [6, 5],
    [9, 5],
  ])('of %d nodes has %d voters with the lowest ids, and all others as learners', (count, voters) => {
    const nodes = Array.from({ length: count }, (_, i) => 10 * (count - i));
    const members = metaMembers(unlabelled(nodes));
    expect(members.voters).toEqual(sorted(nodes).slice(0, voters));
    expect(members.learners).toEqual(sorted(nodes).slice(voters));
  });
});
