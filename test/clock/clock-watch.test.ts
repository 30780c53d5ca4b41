/** Nodes that compare their clocks by real pings and pongs, on virtual time. */
import { describe, expect, it } from 'vitest';
import type { ClockVerdict } from '../../src/clock/clock-rates.ts';
import { ClockWatch } from '../../src/clock/clock-watch.ts';
import { decodePing, decodePong } from '../../src/wire/small-frames.ts';

const LIMIT_PPM = 500;
const TICK_MILLIS = 100;
const WAY_MILLIS = 0.2;

interface Node {
  readonly watch: ClockWatch;
  readonly verdicts: ClockVerdict[];
}

class Cluster {
  now = 0;
  limitPpm = LIMIT_PPM;
  readonly nodes = new Map<number, Node>();
  readonly cut = new Set<string>();
  readonly wallOffsets = new Map<number, number>();
  members: readonly number[];
  readonly #clocks = new Map<number, { since: number; at: number; rate: number }>();
  #processes = 0;
  #events: { readonly at: number; readonly run: () => void }[] = [];

  constructor(rates: readonly number[]) {
    this.members = rates.map((_, i) => i + 1);
    for (const [i, rate] of rates.entries()) {
      this.setRate(i + 1, rate);
      this.start(i + 1);
    }
  }

  setRate(id: number, rate: number): void {
    this.#clocks.set(id, { since: this.now, at: this.#monotonicMillis(id), rate });
  }

  #monotonicMillis(id: number): number {
    const { since, at, rate } = this.#clocks.get(id) ?? { since: 0, at: id * 1e6, rate: 1 };
    return at + (this.now - since) * rate;
  }

  /** Starts a new process; the clock of its machine runs on. */
  start(id: number): void {
    const verdicts: ClockVerdict[] = [];
    this.#processes += 1;
    const watch = new ClockWatch({
      nodeId: id,
      process: this.#processes,
      monotonicMillis: () => this.#monotonicMillis(id),
      wallMillis: () => this.now + (this.wallOffsets.get(id) ?? 0),
      nodes: () => this.members,
      limitPpm: () => this.limitPpm,
      judged: (verdict) => verdicts.push(verdict),
      send: (to, type, payload) => {
        if (this.cut.has(`${id}>${to}`)) return false;
        this.#events.push({
          at: this.now + WAY_MILLIS,
          run: () => {
            const target = this.nodes.get(to)?.watch;
            if (type === 'ping') target?.receivePing(id, decodePing(payload));
            else target?.receivePong(id, decodePong(payload));
          },
        });
        return true;
      },
    });
    this.nodes.set(id, { watch, verdicts });
  }

  node(id: number): Node {
    const node = this.nodes.get(id);
    if (node === undefined) throw new Error(`there is no node ${id}`);
    return node;
  }

  run(millis: number): void {
    const end = this.now + millis;
    let tickAt = this.now;
    while (this.now < end) {
      const next = this.#events.toSorted((a, b) => a.at - b.at)[0];
      if (next !== undefined && next.at <= tickAt) {
        this.#events = this.#events.filter((event) => event !== next);
        this.now = Math.max(this.now, next.at);
        next.run();
        continue;
      }
      this.now = tickAt;
      for (const { watch } of this.nodes.values()) watch.tick();
      tickAt += TICK_MILLIS;
    }
  }

  get unfit(): number[] {
    return [...this.nodes].filter(([, { watch }]) => !watch.verdict.fit).map(([id]) => id);
  }

  isolate(id: number): void {
    for (const other of this.members) this.cut.add(`${id}>${other}`).add(`${other}>${id}`);
  }
}

describe('nodes that compare their clocks', () => {
  it('find no wrong clock while all are within the limit of each other', () => {
    const cluster = new Cluster([1, 1.000_25, 0.999_76]);
    cluster.run(600_000);
    for (const id of [1, 2, 3]) expect(cluster.node(id).verdicts).toEqual([]);
  });

  it.each([
    [1.05, 'fast'],
    [2, 'fast'],
    [1.005, 'fast'],
    [0.9, 'slow'],
  ] as const)(
    "find the clock that runs at %d of the others' speed within seconds, and no other",
    (rate, direction) => {
      const cluster = new Cluster([1, rate, 1.000_1]);
      cluster.run(3_000);
      expect(cluster.unfit).toEqual([2]);
      expect(cluster.node(2).verdicts).toEqual([
        { fit: false, direction, atLeastPpm: expect.any(Number) as number },
      ]);
      cluster.run(60_000);
      expect(cluster.unfit).toEqual([2]);
      expect(cluster.node(2).verdicts).toHaveLength(1);
    },
  );

  it('find two wrong clocks of five, and not three', () => {
    const two = new Cluster([1.01, 1, 1.02, 1, 1]);
    two.run(5_000);
    expect(two.unfit).toEqual([1, 3]);
    // Three of five are the majority: the others differ from them.
    const three = new Cluster([1.01, 1, 1.01, 1, 1.01]);
    three.run(5_000);
    expect(three.unfit).toEqual([2, 4]);
  });

  it('accept a node that differs from some in one direction and from others in the other', () => {
    const cluster = new Cluster([1.01, 1, 0.99]);
    cluster.run(60_000);
    expect(cluster.unfit).toEqual([1, 3]);
  });

  it('know nothing while they cannot compare with a majority', () => {
    for (const rates of [[1.05], [1.05, 1]]) {
      const small = new Cluster(rates);
      small.run(60_000);
      expect(small.unfit).toEqual([]);
    }
    const cluster = new Cluster([1.05, 1, 1]);
    cluster.isolate(3);
    cluster.run(60_000);
    expect(cluster.unfit).toEqual([]);
    cluster.cut.clear();
    cluster.run(3_000);
    expect(cluster.unfit).toEqual([1]);
  });

  it('trust a clock again once it has run well for a while', () => {
    const cluster = new Cluster([1.05, 1, 1]);
    cluster.run(10_000);
    cluster.setRate(1, 1);
    cluster.run(25_000);
    expect(cluster.unfit).toEqual([1]);
    cluster.run(10_000);
    expect(cluster.unfit).toEqual([]);
    expect(cluster.node(1).verdicts.map(({ fit }) => fit)).toEqual([false, true]);
    cluster.setRate(1, 1.05);
    cluster.run(3_000);
    expect(cluster.unfit).toEqual([1]);
  });

  it('keep a wrong clock in memory when others restart, and compare again with a new process', () => {
    const cluster = new Cluster([1.05, 1, 1]);
    cluster.run(5_000);
    for (const id of [2, 3]) {
      cluster.start(id);
      cluster.run(500);
      expect(cluster.unfit).toEqual([1]);
    }
    // Its monotonic clock went back to zero with the machine: that does not mean anything.
    cluster.setRate(1, 1);
    cluster.start(1);
    cluster.run(120_000);
    expect(cluster.unfit).toEqual([]);
  });

  it('use the current limit and the current nodes', () => {
    const cluster = new Cluster([1.001, 1, 1]);
    cluster.run(5_000);
    expect(cluster.unfit).toEqual([1]);
    cluster.limitPpm = 2_000;
    cluster.run(1_100);
    expect(cluster.unfit).toEqual([]);
    cluster.limitPpm = LIMIT_PPM;
    cluster.run(5_000);
    expect(cluster.unfit).toEqual([1]);
    // Two of the four others are no majority of five.
    cluster.members = [1, 2, 3, 4, 5];
    cluster.run(1_100);
    expect(cluster.unfit).toEqual([]);
  });

  it('estimate the difference of each other clock', () => {
    const cluster = new Cluster([1.000_2, 1, 1.000_1]);
    cluster.run(60_000);
    const estimates = new Map(cluster.node(1).watch.estimates());
    expect(estimates.get(2)).toBeCloseTo(200, -1);
    expect(estimates.get(3)).toBeCloseTo(100, -1);
    expect([...estimates.keys()]).toEqual([2, 3]);
    cluster.members = [1, 3];
    cluster.run(1_100);
    expect(
      cluster
        .node(1)
        .watch.estimates()
        .map(([id]) => id),
    ).toEqual([3]);
  });

  it('ignore answers to another process, and those of unknown nodes', () => {
    const { watch } = new Cluster([1, 1, 1]).node(1);
    watch.tick();
    // Each of these claims that its clock ran for minutes in no time.
    const answer = (peer: number, asker: number): void => {
      for (let i = 0; i < 5; i += 1)
        watch.receivePong(peer, {
          asker,
          sentMillis: 1e6,
          process: 7,
          peerMillis: i * 20_000,
          wallMillis: 0,
        });
    };
    for (const peer of [2, 3]) answer(peer, 99);
    for (const stranger of [8, 9]) answer(stranger, 1);
    expect(watch.estimates()).toEqual([]);
    expect(watch.verdict).toEqual({ fit: true });
    for (const peer of [2, 3]) answer(peer, 1);
    expect(watch.verdict).toMatchObject({ fit: false, direction: 'slow' });
  });
});
