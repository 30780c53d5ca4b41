/** Tests that a node without the state of group 0 lets others lead. */
import { describe, expect, it } from 'vitest';
import type { MetaState } from '../../src/meta/cluster-state.ts';
import { FirstRules } from '../../src/node/leading.ts';

const ELECTION_TICKS = 100;
const PATIENCE_TICKS = 5 * ELECTION_TICKS;

class Bench {
  state: MetaState | undefined;
  readonly avoided: (readonly [string, boolean])[] = [];
  readonly #rules = new FirstRules({
    raft: { avoidLeading: (reason, lasts) => void this.avoided.push([reason, lasts]) },
    state: () => this.state,
    electionTicks: ELECTION_TICKS,
  });

  ticks(count: number): void {
    for (let i = 0; i < count; i += 1) this.#rules.tick();
  }
}

const KNOWN = { version: 1 } as MetaState;

describe('a node that starts', () => {
  it('leads groups that elect it while it may still hear from group 0', () => {
    const bench = new Bench();
    bench.ticks(PATIENCE_TICKS - 1);
    bench.state = KNOWN;
    bench.ticks(2 * PATIENCE_TICKS);
    expect(bench.avoided).toEqual([]);
  });

  it('lets others lead when it heard nothing for long, and repeats the hand-over', () => {
    const bench = new Bench();
    bench.ticks(PATIENCE_TICKS);
    expect(bench.avoided).toEqual([['rulesUnknown', true]]);
    bench.ticks(200);
    expect(bench.avoided).toEqual(Array.from({ length: 3 }, () => ['rulesUnknown', true]));
  });

  it('leads again as soon as it knows the rules', () => {
    const bench = new Bench();
    bench.ticks(PATIENCE_TICKS);
    bench.state = KNOWN;
    bench.ticks(300);
    expect(bench.avoided).toEqual([
      ['rulesUnknown', true],
      ['rulesUnknown', false],
    ]);
  });
});
