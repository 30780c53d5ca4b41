/**
 * Settled costs, and keys that an operator blocks and resets: handwritten histories, each with one error and once
 * without it.
 */
import { describe, expect, it } from 'vitest';
import { ADA, denied, found, foundInLog, granted, keyChange, NET, unanswered } from './joint-judged.ts';

const TOO_MANY = expect.stringMatching(/granted within 1000 ms, limit 2/);
const NONE_LEFT = { reported: [{ rule: 'user', limit: 2, remaining: 0 }] };
const ONE_LEFT = { reported: [{ rule: 'user', limit: 2, remaining: 1 }] };
const settled = (at: number, cost: number) => granted(at, [ADA], { settled: true, cost, ...NONE_LEFT });

const blocked = (at: number) => denied(at, [ADA, NET], { status: 403, blocked: true, reported: [] });

describe('a settled cost', () => {
  it('may exceed the limit, and then no request is granted until it has left the window', () => {
    expect(found([settled(1_000, 7), settled(1_010, 7), granted(2_020, [ADA])])).toEqual([]);
    expect(found([settled(1_000, 7), granted(1_900, [ADA])])).toEqual([TOO_MANY]);
    expect(foundInLog([settled(1_000, 7), granted(1_900, [ADA])])).toHaveLength(1);
    expect(foundInLog([granted(1_000, [ADA]), settled(1_100, 7)])).toEqual([]);
  });

  it('does not count for grants that may have come before it', () => {
    expect(found([granted(1_000, [ADA]), settled(1_100, 7)])).toEqual([]);
    const atOnce = { ...settled(1_000, 7), completeNanos: 1_200e6 };
    expect(found([atOnce, granted(1_100, [ADA])])).toEqual([]);
  });

  it('is a reason to deny, also without an answer', () => {
    expect(found([settled(1_000, 7), denied(1_500, [ADA])])).toEqual([]);
    expect(found([settled(1_000, 7), denied(2_100, [ADA])])).toEqual([expect.stringContaining('had room')]);
    const open = unanswered(1_000, [ADA], { settled: true, cost: 7 });
    expect(found([open, denied(1_500, [ADA])])).toEqual([]);
  });

  it('leaves no remainder of a limit that it exceeds', () => {
    expect(found([{ ...settled(1_000, 7), ...ONE_LEFT }])).toEqual([
      "'r1000' was answered that 1 of 2 remain under 'user'",
    ]);
  });
});

describe('a blocked key', () => {
  it('gets no grant after the answer, until it may have been unblocked', () => {
    const block = keyChange(1_000, 'block');
    expect(found([block, granted(1_100, [ADA, NET])])).toEqual([
      "'r1100' was granted while key 'user=ada' was blocked",
    ]);
    expect(found([block, granted(1_002, [ADA])])).toEqual([]);
    expect(found([block, keyChange(1_050, 'unblock'), granted(1_100, [ADA])])).toEqual([]);
    const lost = keyChange(900, 'unblock', { class: 'info', status: 0 });
    expect(found([lost, block, granted(1_100, [ADA])])).toEqual([]);
    const refused = keyChange(1_050, 'unblock', { class: 'fail', status: 503 });
    expect(found([block, refused, granted(1_100, [ADA])])).toHaveLength(1);
    expect(found([block, granted(1_100, [ADA], { settled: true })])).toEqual([]);
  });

  it('is reported only while it may be blocked', () => {
    const [block, unblock] = [keyChange(1_000, 'block'), keyChange(1_200, 'unblock')];
    expect(found([block, blocked(1_100), unblock])).toEqual([]);
    expect(found([block, unblock, blocked(1_204)])).toEqual([]);
    expect(found([block, unblock, blocked(1_210)])).toEqual([expect.stringContaining('was not blocked')]);
    expect(found([blocked(1_100)])).toHaveLength(1);
  });
});

describe('a reset key', () => {
  const [first, second] = [granted(1_000, [ADA]), granted(1_100, [ADA])];

  it('may get its whole limit again, once, from the request for the reset on', () => {
    const reset = keyChange(1_200, 'reset');
    const again = [granted(1_300, [ADA]), granted(1_350, [ADA])];
    expect(found([first, second, reset, ...again])).toEqual([]);
    expect(found([first, second, reset, ...again, granted(1_400, [ADA])])).toEqual([TOO_MANY]);
    expect(found([first, second, granted(1_150, [ADA]), reset])).toEqual([TOO_MANY]);
    expect(found([first, second, keyChange(1_200, 'reset', { class: 'fail' }), again[0]!])).toEqual([
      TOO_MANY,
    ]);
    expect(foundInLog([first, second, reset, ...again])).toEqual([]);
    expect(foundInLog([first, second, reset, ...again, granted(1_400, [ADA])])).toHaveLength(1);
  });

  it('has room for requests after the answer', () => {
    const reset = keyChange(1_200, 'reset');
    expect(found([first, second, reset, denied(1_202, [ADA])])).toEqual([]);
    expect(found([first, second, reset, denied(1_210, [ADA])])).toEqual([
      expect.stringContaining('had room'),
    ]);
    const lost = keyChange(1_200, 'reset', { class: 'info', status: 0 });
    expect(found([first, second, lost, denied(1_210, [ADA])])).toEqual([]);
    const open = unanswered(1_050, [ADA], { cost: 2 });
    expect(found([open, reset, denied(1_210, [ADA])])).toEqual([]);
  });
});
