/** Tests that a drained node hands over its leaderships again and again, until draining ends. */
import { describe, expect, it } from 'vitest';
import type { MetaState } from '../../src/meta/cluster-state.ts';
import { Draining } from '../../src/node/draining.ts';

class Bench {
  state: MetaState | undefined;
  readonly avoided: boolean[] = [];
  readonly reported: boolean[] = [];
  readonly draining = new Draining({
    nodeId: 2,
    raft: { avoidLeading: (_, lasts) => void this.avoided.push(lasts) },
    state: () => this.state,
    drained: (isDraining) => void this.reported.push(isDraining),
  });

  /** Group 0 marks these nodes as drained. */
  says(...drained: number[]): void {
    const nodes = [1, 2, 3].map((id) => ({ id, ...(drained.includes(id) && { draining: true as const }) }));
    this.state = { nodes, leaving: [] } as unknown as MetaState;
    this.draining.tick();
  }

  ticks(count: number): void {
    for (let i = 0; i < count; i += 1) this.draining.tick();
  }
}

describe('a node', () => {
  it('does nothing while it is not drained', () => {
    const bench = new Bench();
    bench.ticks(20);
    bench.says(1, 3);
    bench.ticks(20);
    expect([bench.avoided, bench.reported, bench.draining.isOn]).toEqual([[], [], false]);
  });

  it('hands over while it is drained, again and again, since it may still be elected', () => {
    const bench = new Bench();
    bench.says(2);
    expect([bench.avoided, bench.reported, bench.draining.isOn]).toEqual([[true], [true], true]);
    bench.ticks(100);
    expect(bench.avoided).toEqual(Array.from({ length: 11 }, () => true));
    bench.says(2, 3);
    expect(bench.reported).toEqual([true]);
  });

  it('leads again when the drain is ended', () => {
    const bench = new Bench();
    bench.says(2);
    bench.says();
    bench.ticks(100);
    expect([bench.avoided, bench.reported, bench.draining.isOn]).toEqual([
      [true, false],
      [true, false],
      false,
    ]);
  });
});
