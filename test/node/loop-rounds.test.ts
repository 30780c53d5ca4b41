import { describe, expect, it } from 'vitest';
import { HeapWatch } from '../../src/node/heap-watch.ts';
import { LoopRounds } from '../../src/node/loop-rounds.ts';
import { memoryInUse } from '../../src/node/memory.ts';
import { pino } from 'pino';

describe('rounds of the event loop', () => {
  it('are told with the processor time that each took', () => {
    let now = 100;
    const rounds: number[] = [];
    const watch = new LoopRounds({ round: (millis) => rounds.push(millis), processorMillis: () => now });
    for (const took of [5, 0, 20]) {
      now += took;
      watch.turn();
    }
    expect(rounds).toEqual([5, 0, 20]);
  });

  it('take processor time of this process by itself', () => {
    const rounds: number[] = [];
    const watch = new LoopRounds({ round: (millis) => rounds.push(millis) });
    for (const end = process.cpuUsage().user + 20_000; process.cpuUsage().user < end;);
    watch.turn();
    expect(rounds[0]).toBeGreaterThanOrEqual(19);
  });
});

describe('the watch of the heap', () => {
  it('says once that memory is short, and once that it is not, with one line of the log each', () => {
    const lines: string[] = [];
    const told: boolean[] = [];
    let share = 0.5;
    const watch = new HeapWatch({
      memoryInUse: () => ({ heapShare: share, memoryShare: 0 }),
      logger: pino({ level: 'info' }, { write: (line: string) => void lines.push(line) }),
      changed: (isShort) => told.push(isShort),
    });
    for (share of [0.5, 0.97, 0.97, 0.5, 0.5]) watch.look();
    expect(told).toEqual([true, false]);
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain('short of memory');
  });

  it('reads parts of what there is', () => {
    const { heapShare, memoryShare } = memoryInUse();
    expect(heapShare).toBeGreaterThan(0);
    expect(heapShare).toBeLessThan(1);
    expect(memoryShare).toBeGreaterThanOrEqual(0);
  });
});
