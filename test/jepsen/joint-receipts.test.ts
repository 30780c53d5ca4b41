/**
 * Handwritten histories whose errors only receipts reveal, no interval. The checker must find the error, and report
 * nothing without it.
 */
import { describe, expect, it } from 'vitest';
import type { Ask } from './joint-history.ts';
import { ADA, change, EVE, found, foundInLog, granted, NET, refund, unanswered } from './joint-judged.ts';

/** A receipt in partition 1 by default, with its group time. */
function receipt(timeMillis: number, group = 1): Pick<Ask, 'receipt'> {
  return { receipt: { group, index: timeMillis, position: 0, term: 1, timeMillis } };
}

/** All requests were made and answered at the same times, so only the receipts show when they were decided. */
function together(...timesMillis: readonly number[]): Ask[] {
  const completeNanos = 9_000e6;
  return timesMillis.map((time, i) => granted(1_000 + i, [ADA], { completeNanos, ...receipt(time) }));
}

describe('receipts', () => {
  it('reveal a violation by one millisecond', () => {
    // The window is widened by 600 ppm and a millisecond, so that it holds in real time.
    expect(foundInLog(together(1_000, 1_100, 2_002))).toEqual([]);
    const tooMuch = together(1_000, 1_100, 2_001);
    expect(foundInLog(tooMuch)).toEqual([
      "key 'user=ada' under rule 'user': 3 count at partition 1, index 2001, limit 2",
    ]);
    expect(found(tooMuch)).toEqual([]);
  });

  it('of refunds count like those of grants', () => {
    const lost = granted(1_000, [ADA], { listener: 'redis', receipt: null });
    const back = refund(1_300, lost, receipt(1_000));
    expect(foundInLog([lost, granted(1_100, [ADA]), granted(1_200, [ADA]), back])).toHaveLength(1);
    expect(foundInLog([lost, granted(1_100, [ADA]), granted(1_400, [ADA]), back])).toEqual([]);
  });

  it('count for limits in the partition of the first key, and not for others', () => {
    const net = granted(900, [NET], receipt(900));
    const joint = [granted(1_000, [ADA, NET]), granted(1_100, [EVE, NET])];
    expect(foundInLog([net, ...joint])).toEqual([expect.stringContaining("key 'net=1'")]);
    expect(foundInLog([{ ...net, ...receipt(900, 2) }, ...joint])).toEqual([]);
  });

  it('count earlier grants after a limit was lowered', () => {
    const [first, second] = [granted(1_000, [ADA]), granted(1_100, [ADA])];
    expect(foundInLog([first, change(1_050, 1), second])).toEqual([
      expect.stringContaining('2 count at partition 1, index 1100, limit 1'),
    ]);
    expect(foundInLog([first, second, change(1_150, 1)])).toEqual([]);
  });

  it('count one request once, even if several answers report it', () => {
    const first = granted(1_000, [ADA]);
    const { receipt: same, requestId } = first;
    const again = [1_100, 1_200].map((at) => granted(at, [ADA], { receipt: same, requestId }));
    expect(
      foundInLog([unanswered(990, [ADA], { requestId }), first, ...again, granted(1_300, [ADA])]),
    ).toEqual([]);
  });
});
