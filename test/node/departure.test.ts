/** Tests how a stopping node hands over its leaderships, and when it gives up. */
import { describe, expect, it } from 'vitest';
import { Departure } from '../../src/node/departure.ts';

const LIMITS = { allMax: 200, stuckMax: 60, aloneMax: 10 };

class FakeRaft {
  leaderships = 0;
  canHandOver = true;
  asked = 0;
  announced = 0;
  readonly departure = new Departure({
    raft: this,
    announce: () => {
      this.announced += 1;
    },
    limits: LIMITS,
  });

  avoidLeading(): void {
    this.asked += 1;
  }

  /** Ticks until the departure is done, at most `ticksMax` times. */
  untilDone(ticksMax = 1_000): number {
    for (let tick = 0; tick < ticksMax; tick += 1) {
      if (this.departure.isDone) return tick;
      this.departure.tick();
    }
    return ticksMax;
  }
}

describe('a node that is leaving', () => {
  it('does nothing before that begins', () => {
    const raft = new FakeRaft();
    raft.leaderships = 3;
    expect(raft.untilDone(50)).toBe(50);
    expect([raft.asked, raft.announced]).toEqual([0, 0]);
  });

  it('repeats the hand-over until others lead, and then announces it to its peers', () => {
    const raft = new FakeRaft();
    raft.leaderships = 2;
    raft.departure.begin();
    for (let tick = 0; tick < 20; tick += 1) raft.departure.tick();
    expect([raft.departure.isDone, raft.asked, raft.announced]).toEqual([false, 21, 0]);
    raft.leaderships = 0;
    expect(raft.untilDone()).toBe(1);
    expect(raft.announced).toBe(1);
  });

  it('is done at once if it leads nothing', () => {
    const raft = new FakeRaft();
    raft.departure.begin();
    expect([raft.departure.isDone, raft.announced]).toEqual([true, 1]);
  });

  it('repeats the announcement, which may get lost, and hands over groups that elect it meanwhile', () => {
    const raft = new FakeRaft();
    raft.departure.begin();
    for (let tick = 0; tick < 10; tick += 1) raft.departure.tick();
    expect([raft.asked, raft.announced]).toEqual([11, 3]);
    raft.leaderships = 1;
    for (let tick = 0; tick < 10; tick += 1) raft.departure.tick();
    expect([raft.asked, raft.announced]).toEqual([21, 3]);
  });

  it('does not wait for successors that stop as well', () => {
    const raft = new FakeRaft();
    raft.leaderships = 5;
    raft.departure.begin();
    raft.departure.tick();
    raft.canHandOver = false;
    expect(raft.untilDone()).toBe(LIMITS.aloneMax);
    expect(raft.announced).toBe(0);
  });

  it('gives up on groups that no node takes over, but not while others are taken over', () => {
    const raft = new FakeRaft();
    raft.leaderships = 4;
    raft.departure.begin();
    for (let i = 0; i < 3; i += 1) {
      for (let tick = 0; tick < LIMITS.stuckMax - 1; tick += 1) raft.departure.tick();
      expect(raft.departure.isDone).toBe(false);
      raft.leaderships -= 1;
    }
    raft.departure.tick();
    expect(raft.untilDone()).toBeLessThanOrEqual(LIMITS.stuckMax);
  });

  it('takes a bounded time in total', () => {
    const raft = new FakeRaft();
    raft.leaderships = 100_000;
    raft.departure.begin();
    let ticks = 0;
    while (!raft.departure.isDone) {
      raft.departure.tick();
      raft.leaderships -= 1;
      ticks += 1;
    }
    expect(ticks).toBe(LIMITS.allMax);
  });
});
