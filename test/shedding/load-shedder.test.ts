/**
 * The clients that an overloaded node refuses: first those with the most open requests. Some room is left for others.
 */
import { describe, expect, it } from 'vitest';
import { CLIENTS_MAX, ClientLoads } from '../../src/shedding/client-loads.ts';
import { LoadShedder, type SheddingReport } from '../../src/shedding/load-shedder.ts';

class Bench {
  now = 5_000;
  readonly reported: { readonly isShedding: boolean; readonly report: SheddingReport }[] = [];
  readonly shedder: LoadShedder;

  constructor(openMax: number) {
    this.shedder = new LoadShedder({
      monotonicMillis: () => this.now,
      openMax,
      least: 10,
      targetMillis: 5,
      changed: (isShedding, report) => this.reported.push({ isShedding, report }),
    });
  }

  /** Sends this many requests; returns how many were admitted. */
  ask(client: string, times: number): number {
    let entered = 0;
    for (let i = 0; i < times; i += 1) {
      if (this.shedder.refuses(client)) continue;
      this.shedder.entered(client, 1);
      entered += 1;
    }
    return entered;
  }

  rounds(millis: number, busyMillis: number): void {
    for (let passed = 0; passed < millis; passed += 10) {
      this.now += 10;
      this.shedder.rounds(busyMillis, Math.max(0, 10 - busyMillis));
      this.shedder.tick();
    }
  }
}

describe('clients of a busy node', () => {
  it('get four fifths of the room if there is only one', () => {
    expect(new Bench(1_000).ask('a', 5_000)).toBe(800);
  });

  it('get the same room with equal demand', () => {
    const bench = new Bench(1_000);
    const entered = new Map<string, number>();
    for (let i = 0; i < 5_000; i += 1) {
      for (const client of ['a', 'b', 'c', 'd'])
        entered.set(client, (entered.get(client) ?? 0) + bench.ask(client, 1));
    }
    const counts = [...entered.values()];
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(4);
    expect(counts.reduce((sum, count) => sum + count)).toBeGreaterThan(900);
  });

  it('with little demand are not refused, for any demand of another', () => {
    const bench = new Bench(1_000);
    expect(bench.ask('greedy', 100_000)).toBe(800);
    for (const client of ['a', 'b', 'c', 'd', 'e']) expect(bench.ask(client, 20)).toBe(20);
    // They used the room that was left for them; the greedy client gets no more until some of its requests are answered.
    expect(bench.ask('greedy', 1_000)).toBe(0);
  });

  it('get more room when others leave', () => {
    const bench = new Bench(10);
    const load = bench.shedder.entered('a', 10);
    expect(bench.shedder.refuses('b')).toBe(true);
    bench.shedder.left(load, 10);
    expect(bench.shedder.refuses('b')).toBe(false);
    expect(bench.shedder.report).toMatchObject({ open: 0, refused: 1 });
  });
});

describe('a node whose rounds take too long', () => {
  it('admits fewer requests, logs that once, and admits all again when the rounds are short', () => {
    const bench = new Bench(1_000);
    bench.shedder.entered('a', 500);
    bench.rounds(3_000, 50);
    expect(bench.shedder.report.limit).toBe(10);
    expect(bench.shedder.refuses('b')).toBe(true);
    bench.rounds(100, 50);
    expect(bench.reported.map(({ isShedding }) => isShedding)).toEqual([true]);
    bench.rounds(3_000, 1);
    expect(bench.shedder.report.limit).toBe(1_000);
    expect(bench.shedder.refuses('b')).toBe(false);
    expect(bench.reported.map(({ isShedding }) => isShedding)).toEqual([true, false]);
  });

  it('refuses forwarded requests only beyond four times that number', () => {
    const bench = new Bench(1_000);
    bench.shedder.entered('a', 500);
    bench.rounds(3_000, 50);
    for (let i = 0; i < 40; i += 1) expect(bench.shedder.maybeRefuseForwarded()).toBe(false);
    expect(bench.shedder.maybeRefuseForwarded()).toBe(true);
    bench.shedder.leftForwarded();
    expect(bench.shedder.maybeRefuseForwarded()).toBe(false);
  });
});

describe('the table of clients', () => {
  it('forgets clients without open requests, and never grows beyond its bound', () => {
    const loads = new ClientLoads(3);
    const [a, b] = [loads.of('a'), loads.of('b')];
    a.open = 1;
    b.open = 1;
    for (let i = 0; i < 100; i += 1) expect(loads.of(`idle ${i}`).open).toBe(0);
    expect(loads.size).toBeLessThanOrEqual(3);
    expect(loads.openOf('a')).toBe(1);
    expect(loads.of('b')).toBe(b);
  });

  it('counts clients beyond its bound together, and searches for idle ones only now and then', () => {
    const loads = new ClientLoads(2);
    loads.of('a').open = 1;
    loads.of('b').open = 1;
    loads.of('c').open += 1;
    loads.of('d').open += 1;
    expect(loads.openOf('e')).toBe(2);
    expect(loads.of('c')).toBe(loads.of('d'));
    expect(CLIENTS_MAX).toBeGreaterThan(1_000);
  });
});

/** How many of these late requests are admitted. */
function letIn(bench: Bench, requests: number): number {
  let entered = 0;
  for (let i = 0; i < requests; i += 1) {
    // From several clients, because one client may not use all the room.
    if (bench.shedder.refuses(`client ${i}`, true)) continue;
    bench.shedder.entered(`client ${i}`, 1);
    entered += 1;
  }
  return entered;
}

describe('a node with clients that send more than it can handle', () => {
  const EACH_MILLIS = 10;

  /** For a second the node has no CPU time left, and answers this many requests in each millisecond. */
  function busyBench(answersPerMilli: number): Bench {
    const bench = new Bench(65_536);
    for (let passed = 0; passed < 1_000; passed += EACH_MILLIS) {
      const load = bench.shedder.entered('before', answersPerMilli * EACH_MILLIS);
      bench.now += EACH_MILLIS;
      bench.shedder.left(load, answersPerMilli * EACH_MILLIS);
      bench.shedder.rounds(1, 0);
    }
    return bench;
  }

  it('does not count as busy because of little work since it started', () => {
    const bench = new Bench(1_000);
    bench.now += 50;
    bench.shedder.rounds(1, 0);
    expect(bench.shedder.isBusy).toBe(false);
  });

  it('is busy if it never waits, and not if it does', () => {
    const bench = busyBench(1);
    expect(bench.shedder.isBusy).toBe(true);
    for (let i = 0; i < 20; i += 1) {
      bench.now += EACH_MILLIS;
      bench.shedder.rounds(1, 5);
    }
    expect(bench.shedder.isBusy).toBe(false);
  });

  it('admits as many waiting requests as it answers in 40 ms', () => {
    expect(letIn(busyBench(20), 5_000)).toBe(800);
  });

  it('admits 512 requests even if it answers few, because a log entry holds many', () => {
    expect(letIn(busyBench(1), 5_000)).toBe(512);
  });

  it('bounds new requests in the same way, and admits more step by step while nothing waits', () => {
    const bench = busyBench(20);
    letIn(bench, 5_000);
    expect(bench.shedder.refuses('another')).toBe(true);
    expect(bench.shedder.report).toMatchObject({ limit: 800, open: 800 });
    const limits: number[] = [];
    for (let passed = 0; passed < 6_000; passed += EACH_MILLIS) {
      bench.now += EACH_MILLIS;
      bench.shedder.rounds(1, 0);
      const { limit } = bench.shedder.report;
      if (limits.at(-1) !== limit) limits.push(limit);
    }
    // In an interval in which requests waited, the queue may still exist.
    expect(limits.slice(0, 5)).toEqual([800, 512, 576, 648, 729]);
    expect(limits.at(-1)).toBe(65_536);
    expect(bench.shedder.refuses('another')).toBe(false);
  });
});
