/** `Backlog`: when a client has sent more than the node can handle. */
import { describe, expect, it } from 'vitest';
import { Backlog } from '../../src/resp/backlog.ts';

const CHUNK_BYTES = 65_536;

class Bench {
  now = 0;
  readonly backlog = new Backlog(() => this.now);

  after(millis: number, isBusy = true): boolean {
    this.now += millis;
    this.backlog.check(isBusy);
    return this.backlog.isLate;
  }
}

describe('what a client sent', () => {
  it('is late when something of it was unread for more than 50 ms', () => {
    const bench = new Bench();
    expect(bench.after(1_000)).toBe(false);
    bench.backlog.stands();
    expect(bench.after(50)).toBe(false);
    bench.backlog.stands();
    expect(bench.after(1)).toBe(true);
  });

  it('is late no more once all is read', () => {
    const bench = new Bench();
    bench.backlog.stands();
    expect(bench.after(100)).toBe(true);
    bench.backlog.came(CHUNK_BYTES - 1);
    bench.backlog.read();
    expect(bench.after(0)).toBe(false);
  });

  it('is not all read when as much came as the system gives at once', () => {
    const bench = new Bench();
    bench.backlog.came(CHUNK_BYTES);
    bench.backlog.read();
    bench.backlog.read();
    expect(bench.after(51)).toBe(true);
  });

  it('is not late when the node was not too busy to read it: a slow disk or a client that does not read is something else', () => {
    const bench = new Bench();
    bench.backlog.stands();
    expect(bench.after(1_000, false)).toBe(false);
  });
});
