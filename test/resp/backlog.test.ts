/** `Backlog`: detects a client that has sent more than the node can handle. */
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

describe('the bytes of a client', () => {
  it('are late when some were unread for more than 50 ms', () => {
    const bench = new Bench();
    expect(bench.after(1_000)).toBe(false);
    bench.backlog.stands();
    expect(bench.after(50)).toBe(false);
    bench.backlog.stands();
    expect(bench.after(1)).toBe(true);
  });

  it('are not late any more once all are read', () => {
    const bench = new Bench();
    bench.backlog.stands();
    expect(bench.after(100)).toBe(true);
    bench.backlog.came(CHUNK_BYTES - 1);
    bench.backlog.read();
    expect(bench.after(0)).toBe(false);
  });

  it('are not all read when as many came as the system returns at once', () => {
    const bench = new Bench();
    bench.backlog.came(CHUNK_BYTES);
    bench.backlog.read();
    bench.backlog.read();
    expect(bench.after(51)).toBe(true);
  });

  it('are not late if the node was not too busy to read them, but its disk is slow or the client does not read', () => {
    const bench = new Bench();
    bench.backlog.stands();
    expect(bench.after(1_000, false)).toBe(false);
  });
});
