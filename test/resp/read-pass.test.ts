/**
 * Commands of clients are read for a part of each turn only: messages of peers do not wait for a hundred thousand of
 * them.
 */
import { describe, expect, it } from 'vitest';
import { type Readable, ReadPass } from '../../src/resp/turn-passes.ts';

const COMMAND_MILLIS = 0.005;

class Bench {
  now = 0;
  #atTurnEnd: (() => void)[] = [];
  readonly pass = new ReadPass({
    monotonicMillis: () => this.now,
    atTurnEnd: (fn) => this.#atTurnEnd.push(fn),
  });
  /** The connections whose commands were read, in order, without repeats in a row. */
  readonly readers: string[] = [];

  /** Simulates the event loop: sockets are read, then the turn ends. Returns its duration. */
  round(read: () => void = () => {}): number {
    const begun = this.now;
    read();
    const ends = this.#atTurnEnd;
    this.#atTurnEnd = [];
    for (const end of ends) end();
    return this.now - begun;
  }
}

class Client implements Readable {
  readonly waits: number[] = [];
  readonly #bench: Bench;
  readonly #name: string;
  readonly #commandMillis: number;
  left: number;

  constructor(bench: Bench, name: string, commands: number, commandMillis = COMMAND_MILLIS) {
    this.#bench = bench;
    this.#name = name;
    this.left = commands;
    this.#commandMillis = commandMillis;
  }

  /** Bytes as the socket delivers them. */
  data(): void {
    if (this.#bench.pass.hasWaiting) this.#bench.pass.wait(this);
    else this.#read();
  }

  readOn(waitedMillis: number): void {
    this.waits.push(waitedMillis);
    this.#read();
  }

  #read(): void {
    const { pass, readers } = this.#bench;
    for (; this.left > 0; this.left -= 1) {
      if (!pass.mayRead()) {
        pass.wait(this);
        return;
      }
      if (readers.at(-1) !== this.#name) readers.push(this.#name);
      this.#bench.now += this.#commandMillis;
    }
  }
}

describe('a hundred thousand commands that come at once', () => {
  it('are all read, and no round of the loop exceeds its time limit', () => {
    const bench = new Bench();
    const clients = Array.from({ length: 100 }, (_, i) => new Client(bench, `client ${i}`, 1_000));
    const rounds = [
      bench.round(() => {
        for (const client of clients) client.data();
      }),
    ];
    while (clients.some(({ left }) => left > 0) && rounds.length < 10_000) rounds.push(bench.round());
    expect(clients.filter(({ left }) => left > 0)).toEqual([]);
    // 10 ms for sockets, 10 ms for waiting commands, and some commands before the clock is read again.
    expect(Math.max(...rounds)).toBeLessThan(22);
    expect(rounds.length).toBeGreaterThan(20);
  });

  it('are read in the order in which they came, before later ones', () => {
    const bench = new Bench();
    const [first, second, third] = [
      new Client(bench, 'a', 1_500),
      new Client(bench, 'b', 4_000),
      new Client(bench, 'c', 1_500),
    ];
    bench.round(() => {
      first.data();
      second.data();
    });
    bench.round(() => third.data());
    for (let i = 0; i < 10; i += 1) bench.round();
    expect(first.left === 0 && second.left === 0 && third.left === 0).toBe(true);
    expect(bench.readers.filter((name, i, all) => all.indexOf(name) === i)).toEqual(['a', 'b', 'c']);
    expect(third.waits.length).toBeGreaterThan(0);
  });
});

describe('a process that hardly runs', () => {
  it('still reads the minimum number of commands in each turn', () => {
    const bench = new Bench();
    const client = new Client(bench, 'a', 2_000, 1);
    bench.round(() => client.data());
    expect(client.left).toBeLessThan(2_000 - 1_024);
  });
});

describe('few commands', () => {
  it('are all read at once, in every turn', () => {
    const bench = new Bench();
    for (let i = 0; i < 100; i += 1) {
      const client = new Client(bench, 'a', 100);
      bench.round(() => client.data());
      expect(client.left).toBe(0);
    }
    expect(bench.pass.hasWaiting).toBe(false);
  });
});
