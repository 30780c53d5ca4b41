/** Tests the measurement of rounds of the event loop, with a scripted clock and processor time. */
import { describe, expect, it } from 'vitest';
import { HeapWatch, memoryInUse } from '../../src/node/memory.ts';
import { LoopRounds } from '../../src/node/loop-rounds.ts';
import { pino } from 'pino';

describe('rounds of the event loop', () => {
  interface Round {
    /** Advance of the clock while the loop does not wait. */
    readonly millis: number;
    readonly waitsMillis?: number;
    readonly processorMillis: number;
  }

  /** The reported rounds, and the number of readings of processor time. */
  function play(rounds: readonly Round[]): { reported: (readonly [number, number])[]; asked: number } {
    let now = 1_000;
    let idle = 300;
    let processor = 50;
    let asked = 0;
    const reported: (readonly [number, number])[] = [];
    const watch = new LoopRounds({
      monotonicMillis: () => now,
      shortMillis: 10,
      rounds: (...millis) => reported.push(millis),
      processorMillis: () => {
        asked += 1;
        return processor;
      },
      idleMillis: () => idle,
    });
    for (const { millis, waitsMillis = 0, processorMillis } of rounds) {
      now += millis + waitsMillis;
      idle += waitsMillis;
      processor += processorMillis;
      watch.turn();
    }
    return { reported, asked };
  }

  it('that are short are reported together, without reading processor time', () => {
    const short = { millis: 5, waitsMillis: 15, processorMillis: 4 };
    expect(play([short, short, short, short])).toEqual({
      reported: [
        [5, 30],
        [5, 30],
      ],
      asked: 0,
    });
  });

  it('that are long are measured in processor time', () => {
    const ours = { millis: 60, processorMillis: 50 };
    const others = { millis: 60, processorMillis: 3 };
    expect(play([ours, ours, ours, ours, ours, others, others, others])).toEqual({
      reported: [10, 50, 50, 50, 50, 50, 50, 3].map((millis) => [millis, 0]),
      asked: 4,
    });
  });

  it('cause processor time to be read at once after a pause', () => {
    const long = { millis: 60, processorMillis: 50 };
    const pause = { millis: 2_000, processorMillis: 1 };
    expect(play([long, long, pause]).reported[2]).toEqual([1, 0]);
  });

  it('that were short in between do not count as a part of a long one', () => {
    const long = { millis: 60, processorMillis: 50 };
    expect(play([long, { millis: 5, waitsMillis: 100, processorMillis: 5 }, long, long]).reported).toEqual([
      [10, 0],
      [5, 100],
      [10, 0],
      [50, 0],
    ]);
  });

  it('use the processor time of this process by default', () => {
    const rounds: number[] = [];
    const watch = new LoopRounds({
      monotonicMillis: () => performance.now(),
      shortMillis: 1,
      rounds: (millis) => rounds.push(millis),
    });
    for (let i = 0; i < 2; i += 1) {
      for (const end = process.cpuUsage().user + 50_000; process.cpuUsage().user < end;);
      watch.turn();
    }
    expect(rounds[1]).toBeGreaterThanOrEqual(49);
  });
});

describe('the watch of the heap', () => {
  it('reports once that memory is short, and once that it no longer is, with one log line each', () => {
    const lines: string[] = [];
    const reported: boolean[] = [];
    let fraction = 0.5;
    const watch = new HeapWatch({
      memoryInUse: () => ({ heapFraction: fraction, memoryFraction: 0 }),
      logger: pino({ level: 'info' }, { write: (line: string) => void lines.push(line) }),
      changed: (isShort) => reported.push(isShort),
    });
    for (fraction of [0.5, 0.97, 0.97, 0.5, 0.5]) watch.check();
    expect(reported).toEqual([true, false]);
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain('short of memory');
  });

  it('reads fractions of the memory limits', () => {
    const { heapFraction, memoryFraction } = memoryInUse();
    expect(heapFraction).toBeGreaterThan(0);
    expect(heapFraction).toBeLessThan(1);
    expect(memoryFraction).toBeGreaterThanOrEqual(0);
  });
});
