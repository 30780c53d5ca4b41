/** Snapshots that are written while the state changes, and read while another state is in use. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AllowRequest } from '../../src/api/request.ts';
import { InvalidSnapshotError } from '../../src/limiter/state/snapshot-bytes.ts';
import { chunksOf, Harness, harnessWith, restoreInto, snapshotOf, START, tableOf } from './harness.ts';
import { ROUNDS } from '../raft/seeded.ts';

const rules = [
  { id: 'a', limit: 400, windowMillis: 1_000 },
  { id: 'b', limit: 2, windowMillis: 300 },
];

interface Step {
  readonly gap: number;
  readonly requests: readonly AllowRequest[];
  readonly newRules: boolean;
}

const request = fc.record(
  {
    userId: fc.oneof(
      fc.constant('hot'),
      fc.nat(40).map((n) => `user${n}`),
      fc.nat(9).map((n) => `${'long'.repeat(40)}${n}`),
    ),
    ruleId: fc.constantFrom('a', 'b'),
    cost: fc.integer({ min: 1, max: 3 }),
    requestId: fc.nat(200).map((n) => `id${n}`),
  },
  { requiredKeys: ['userId'] },
);
const step: fc.Arbitrary<Step> = fc.record({
  gap: fc.oneof(fc.integer({ min: 0, max: 20 }), fc.constantFrom(300, 1_001, 130_000)),
  requests: fc.array(request, { minLength: 1, maxLength: 12 }),
  newRules: fc.nat(30).map((n) => n === 0),
});
const history = fc.array(step, { minLength: 5, maxLength: 60 });

function play(harness: Harness, { gap, requests, newRules }: Step): void {
  harness.nowMillis += gap;
  if (newRules) {
    const version = (harness.machine.ruleTable?.version ?? 0) + 1;
    harness.rules(tableOf(version, version % 2 === 0 ? rules.slice(0, 1) : rules));
  }
  harness.ask(...requests);
}

function started(users = 0): Harness {
  const harness = new Harness();
  harness.rules(tableOf(1, rules));
  for (let i = 0; i < users; i += 1) harness.one({ userId: `user${i}`, requestId: 'q' });
  return harness;
}

describe('a snapshot that is written in slices', () => {
  it('is the state at the time of the call, despite later grants, evictions and rule changes', () => {
    let longest = 0;
    fc.assert(
      fc.property(history, history, fc.integer({ min: 1, max: 3 }), (before, during, stepsPerChunk) => {
        const harness = started(60);
        for (const each of before) play(harness, each);
        const expected = snapshotOf(harness.machine);
        longest = Math.max(longest, expected.length);
        const snapshot = harness.machine.snapshot();
        const chunks: Uint8Array[] = [];
        const left = [...during];
        for (;;) {
          for (const each of left.splice(0, stepsPerChunk)) play(harness, each);
          const chunk = snapshot.next();
          if (chunk === undefined) break;
          chunks.push(chunk);
        }
        expect(chunks).toEqual(expected);
        // The data kept for this snapshot does not affect the next one.
        const restored = new Harness();
        restoreInto(restored.machine, snapshotOf(harness.machine));
        expect(restored.machine.hash()).toBe(harness.machine.hash());
        expect(restored.machine.stateBytes).toBe(harness.machine.stateBytes);
      }),
      { numRuns: 50 * ROUNDS },
    );
    expect(longest).toBeGreaterThan(4);
  });

  it('is complete even if the log of a key shrinks while it is being written', () => {
    const harness = harnessWith({ limit: 2_000, windowMillis: 4_000 });
    for (let i = 0; i < 1_500; i += 1) {
      harness.nowMillis += 2;
      harness.one({ userId: 'hot' });
    }
    const expected = snapshotOf(harness.machine);
    // A run takes two bytes.
    expect(expected[0]!.length).toBeLessThan(2_000);
    const snapshot = harness.machine.snapshot();
    const chunks = [snapshot.next()!];
    for (let i = 0; i < 3; i += 1) {
      harness.nowMillis += 2_500;
      expect(harness.one({ userId: 'hot' }).allowed).toBe(true);
    }
    expect([...chunks, ...chunksOf(snapshot)]).toEqual(expected);
  });

  it('ends when another one begins, or when it is abandoned', () => {
    const harness = started(200);
    const first = harness.machine.snapshot();
    first.next();
    const second = harness.machine.snapshot();
    expect(first.next()).toBeUndefined();
    second.next();
    second.abandon();
    expect(second.next()).toBeUndefined();
    harness.one({ userId: 'user0' });
    expect(harness.one({ userId: 'user1', requestId: 'q' }).decided.index).toBe(3);
  });

  it('goes on when another state is installed', () => {
    const harness = started(200);
    const expected = snapshotOf(harness.machine);
    const snapshot = harness.machine.snapshot();
    const chunks = [snapshot.next()!];
    restoreInto(harness.machine, snapshotOf(started().machine));
    expect([...chunks, ...chunksOf(snapshot)]).toEqual(expected);
  });
});

describe('a snapshot that is read in slices', () => {
  it('leaves the present state in force until it is installed', () => {
    const source = started(200);
    const chunks = snapshotOf(source.machine);
    const target = started();
    const restore = target.machine.restore();
    for (const chunk of chunks) {
      restore.add(chunk);
      expect(target.one({ userId: 'other', ruleId: 'a' }).allowed).toBe(true);
    }
    restore.complete();
    expect(target.machine.stats()).toMatchObject({ keys: 1, requestIds: 0 });
    restore.install();
    expect(target.machine.hash()).toBe(source.machine.hash());
    expect(target.machine.applied).toEqual(source.machine.applied);
  });

  it('is refused at the first wrong chunk, or when it ends too early', () => {
    const source = started(200);
    const chunks = snapshotOf(source.machine);
    expect(chunks.length).toBeGreaterThan(4);
    for (let end = 0; end < chunks.length; end += 1) {
      const restore = new Harness().machine.restore();
      for (const chunk of chunks.slice(0, end)) restore.add(chunk);
      expect(() => restore.complete()).toThrow(InvalidSnapshotError);
    }
    for (let wrong = 0; wrong < chunks.length - 1; wrong += 1) {
      const restore = new Harness().machine.restore();
      for (const chunk of chunks.slice(0, wrong)) restore.add(chunk);
      expect(() => restore.add(chunks[wrong]!.subarray(0, -1))).toThrow(InvalidSnapshotError);
    }
    const restore = new Harness().machine.restore();
    for (const chunk of chunks) restore.add(chunk);
    expect(() => restore.add(chunks[0]!)).toThrow(/left over/);
  });

  it('may contain a grant in the far past and one in the far future', () => {
    const source = started();
    source.one({ userId: 'old', timestampMillis: 0 });
    source.one({ userId: 'new', timestampMillis: 8_640_000_000_000_000, requestId: 'q' });
    source.one({ userId: 'now', timestampMillis: START, requestId: 'q' });
    const restored = new Harness();
    restoreInto(restored.machine, snapshotOf(source.machine));
    expect(restored.machine.hash()).toBe(source.machine.hash());
  });
});
