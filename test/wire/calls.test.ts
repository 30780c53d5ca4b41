/** Tests that each call ends at most once, with an answer from the right node or the right failure. */
import { describe, expect, it } from 'vitest';
import { type Call, Calls, type CallsInit, type Question } from '../../src/wire/calls.ts';

const FIRST_ID = 100;

type Asked = Question<string>;

/** Calls on a clock that the test drives, with all results. */
class Bench {
  readonly reported: string[] = [];
  readonly ended: number[] = [];
  readonly calls: Calls<Asked, string>;

  constructor(init: Partial<CallsInit<string>> = {}) {
    this.calls = new Calls<Asked, string>({
      firstId: FIRST_ID,
      outstandingMax: 3,
      lateMax: 0,
      notSent: (to) => `not sent to ${to}`,
      lost: 'lost',
      ended: (to) => this.ended.push(to),
      ...init,
    });
  }

  ask(request: string, to = 2, until = 10): Call<Asked> {
    const done = (result: string): void => void this.reported.push(`${request}: ${result}`);
    const call = this.calls.maybeAsk({ to, done }, until);
    if (call === undefined) throw new Error(`${request} is a call beyond their number`);
    return call;
  }

  send(request: string, to = 2, until = 10): Call<Asked> {
    const call = this.ask(request, to, until);
    call.isSent = true;
    return call;
  }
}

describe('a call', () => {
  it('is answered once, under its id, by the node that was asked', () => {
    const bench = new Bench();
    const { calls, reported, ended } = bench;
    const [a, b] = [bench.send('a'), bench.send('b', 3)];
    expect([a.id, b.id]).toEqual([FIRST_ID, FIRST_ID + 1]);
    calls.answered(3, a.id, 'forged');
    calls.answered(2, FIRST_ID - 1, 'of an earlier process');
    expect(reported).toEqual([]);
    calls.answered(3, b.id, 'yes');
    calls.answered(2, a.id, 'no');
    calls.answered(2, a.id, 'yes');
    expect([reported, ended, calls.outstandingCount]).toEqual([['b: yes', 'a: no'], [3, 2], 0]);
  });

  it('is refused when too many are under way, and its id is not used up', () => {
    const bench = new Bench();
    for (const request of ['a', 'b', 'c']) bench.send(request);
    const refused = { to: 2, done: () => void bench.reported.push('d was answered') };
    expect(bench.calls.maybeAsk(refused, 10)).toBeUndefined();
    bench.calls.answered(2, FIRST_ID, 'yes');
    expect(bench.send('e').id).toBe(FIRST_ID + 3);
    expect(bench.reported).toEqual(['a: yes']);
  });

  it('that was never sent has no effect, and the effect of a lost one that was sent is unknown', () => {
    const bench = new Bench();
    bench.ask('waits');
    bench.send('left');
    bench.send('elsewhere', 3);
    bench.calls.disconnected(2);
    expect(bench.reported).toEqual(['waits: not sent to 2', 'left: lost']);
    bench.calls.disconnected(2);
    expect([bench.reported.length, bench.calls.outstandingCount]).toEqual([2, 1]);
  });

  it('that begins while others end with their connection is not ended with them', () => {
    const bench = new Bench();
    const ask = (): void => void bench.send('again');
    bench.calls.maybeAsk({ to: 2, done: ask }, 10);
    bench.calls.disconnected(2);
    expect([bench.reported, bench.calls.outstandingCount]).toEqual([[], 1]);
  });
});

describe('a call that expires', () => {
  it('is lost, if no caller waits for late answers', () => {
    const bench = new Bench();
    const call = bench.send('a');
    bench.send('b', 2, 11);
    bench.calls.expire(9);
    expect(bench.reported).toEqual([]);
    bench.calls.expire(10);
    bench.calls.answered(2, call.id, 'yes');
    expect([bench.reported, bench.ended, bench.calls.outstandingCount]).toEqual([['a: lost'], [2], 1]);
  });

  it('otherwise gets a late answer, unless its connection broke before', () => {
    const bench = new Bench({ lateMax: 2 });
    const [a, b] = [bench.send('a'), bench.send('b', 3)];
    bench.calls.expire(10);
    expect([bench.reported, bench.ended, bench.calls.outstandingCount]).toEqual([[], [2, 3], 0]);
    bench.calls.disconnected(3);
    bench.calls.answered(3, b.id, 'yes');
    bench.calls.answered(2, a.id, 'yes');
    bench.calls.answered(2, a.id, 'yes');
    expect([bench.reported, bench.ended]).toEqual([['a: yes'], [2, 3]]);
  });

  it('is dropped when too many others have expired since', () => {
    const bench = new Bench({ lateMax: 2 });
    const calls = ['a', 'b', 'c'].map((request) => bench.send(request));
    bench.calls.expire(10);
    for (const { id } of calls) bench.calls.answered(2, id, 'yes');
    expect(bench.reported).toEqual(['b: yes', 'c: yes']);
  });
});
