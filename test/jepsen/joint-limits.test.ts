/**
 * Handwritten histories, each with one error and once without it. The checkers must find the error, and report nothing
 * without it.
 */
import { describe, expect, it } from 'vitest';
import type { Ask } from './joint-history.ts';
import { ADA, change, EVE, found, granted, NET, refund, unanswered, under } from './joint-judged.ts';

describe('limits that rules find', () => {
  const [first, second] = [granted(1_000, [ADA, NET]), granted(1_100, [ADA, NET])];

  it('may be used up, and again a window later', () => {
    expect(found([first, second, granted(2_010, [ADA, NET])])).toEqual([]);
  });

  it('are exceeded if the limit of one of two keys is: the other one may have room', () => {
    expect(
      found([first, granted(1_100, [EVE, NET]), granted(1_200, [under('user', 'user=joe'), NET])]),
    ).toEqual([expect.stringMatching(/^key 'net=1' under rule 'net': 3 granted within 1000 ms, limit 2/)]);
  });

  it('count the whole cost', () => {
    expect(
      found([
        first,
        granted(1_100, [ADA], { cost: 2, reported: [{ rule: 'user', limit: 2, remaining: 0 }] }),
      ]),
    ).toEqual([expect.stringContaining("key 'user=ada' under rule 'user': 3 granted")]);
  });

  it('are not certainly exceeded if a grant may be a window older than the last one', () => {
    const lost = unanswered(900, [ADA], { requestId: 'late' });
    const reported = granted(1_200, [ADA], { requestId: 'late' });
    expect(found([lost, reported, granted(1_500, [ADA]), granted(1_950, [ADA])])).toEqual([]);
  });

  it('do not count requests without an answer', () => {
    expect(found([first, unanswered(1_050, [ADA, NET]), second])).toEqual([]);
  });

  it('allow for the time that a fast clock may have gained', () => {
    const bands = [{ kind: 'fast-clock', nodes: [1], startNanos: 0, endNanos: 1e10 }];
    const [a, b, c] = [granted(1_000, [ADA]), granted(1_100, [ADA]), granted(1_960, [ADA])];
    expect(found([a, b, c])).toHaveLength(1);
    expect(found([a, b, c], { bands })).toEqual([]);
  });
});

describe('a refunded grant', () => {
  const [first, second] = [granted(1_000, [ADA]), granted(1_100, [ADA])];
  const third = granted(1_300, [ADA]);

  it('has room again, from the request for its refund on', () => {
    expect(found([first, second, refund(1_200, first), third])).toEqual([]);
    expect(found([first, second, third, refund(1_400, first)])).toEqual([
      expect.stringContaining('3 granted within 1000 ms, limit 2'),
    ]);
  });

  it('has room once, even if the refund is repeated', () => {
    const events = [first, second, refund(1_150, first), refund(1_200, first), third];
    expect(found(events)).toEqual([]);
    expect(found([...events, granted(1_400, [ADA])])).toEqual([
      expect.stringContaining('3 granted within 1000 ms, limit 2'),
    ]);
  });

  it('may have room if the refund got no answer, and has none if the refund found nothing', () => {
    const lost = refund(1_200, first, { status: 0, class: 'info', refunded: null, receipt: null });
    expect(found([first, second, lost, third])).toEqual([]);
    const none = refund(1_200, first, {
      status: 404,
      refunded: false,
      receipt: null,
      rule: null,
      cost: null,
    });
    expect(found([first, second, none, third])).toEqual([
      expect.stringContaining('3 granted within 1000 ms'),
      "'r1000' was granted, and its refund found nothing",
    ]);
  });

  it('has room in the partitions of all its keys, and only after the refund', () => {
    const both = granted(1_000, [ADA, NET]);
    const alone = granted(1_100, [NET], {
      receipt: { group: 2, index: 5, position: 0, term: 1, timeMillis: 1 },
    });
    const again = granted(1_300, [NET], {
      receipt: { group: 2, index: 6, position: 0, term: 1, timeMillis: 1 },
    });
    expect(found([both, alone, refund(1_200, both), again])).toEqual([]);
    expect(found([both, alone, again])).toEqual([
      expect.stringContaining("key 'net=1' under rule 'net': 3 granted"),
    ]);
  });

  it('is refunded with its cost and rule, and its id gets no grant again', () => {
    expect(found([first, refund(1_200, first, { cost: 2 })])).toEqual([
      expect.stringContaining('gave back 2'),
    ]);
    expect(found([first, refund(1_200, first, { rule: 'net' })])).toEqual([
      expect.stringContaining("under 'net'"),
    ]);
    const other = { group: 1, index: 9, position: 0, term: 1, timeMillis: 9 };
    expect(found([first, refund(1_200, first, { receipt: other })])).toEqual([
      expect.stringContaining('index 9, position 0 instead of partition 1, index 1000'),
    ]);
    const again = { requestId: first.requestId, receipt: first.receipt };
    expect(found([first, refund(1_200, first), granted(1_300, [ADA], again)])).toEqual([
      "'r1000' was refunded, and then its retry was granted",
    ]);
    const refused = {
      ...again,
      status: 422,
      class: 'fail',
      allowed: null,
      reported: [],
      receipt: null,
    } as const;
    expect(found([first, refund(1_200, first), granted(1_300, [ADA], refused)])).toEqual([]);
  });
});

function reporting(limit: number): Pick<Ask, 'reported'> {
  return { reported: [{ rule: 'user', limit, remaining: 0 }] };
}

describe('limits that change', () => {
  const [first, second] = [granted(1_000, [ADA]), granted(1_100, [ADA])];

  it('apply once the change is answered, together with earlier grants', () => {
    const lowered = change(1_150, 1);
    expect(found([first, second, lowered, granted(2_120, [ADA], reporting(1))])).toEqual([]);
    expect(found([first, lowered, granted(1_200, [ADA], reporting(1))])).toEqual([
      expect.stringContaining('2 granted within 1000 ms, limit 1'),
    ]);
  });

  it('allow the larger one while the change has no answer or is not in force everywhere', () => {
    const open = change(1_050, 1, { completeNanos: 1_300e6 });
    expect(found([first, open, second])).toEqual([]);
    const lost = change(1_050, 1, { status: 0, class: 'info', version: null });
    expect(found([first, lost, granted(1_900, [ADA])])).toEqual([]);
    const partly = change(1_050, 1, { status: 202 });
    expect(found([first, partly, granted(1_900, [ADA])])).toEqual([]);
  });

  it('are raised only by a change that took effect', () => {
    const more = [granted(1_200, [ADA], reporting(3))];
    expect(found([first, second, change(1_150, 3), ...more])).toEqual([]);
    const refused = change(1_150, 3, { status: 412, class: 'fail', version: null });
    expect(found([first, second, refused, ...more])).toEqual([
      expect.stringContaining('3 granted within 1000 ms, limit 2'),
      "'r1200' was decided by limits that were never in force together then: user 3",
    ]);
  });

  it('do not return by a late attempt: it finds another version', () => {
    const lost = change(500, 3, { status: 0, class: 'info', version: null, ifVersion: 1 });
    const after = change(800, 2, { ifVersion: 1 });
    expect(found([lost, granted(700, [ADA], reporting(3)), after])).toEqual([]);
    expect(found([lost, after, first, second, granted(1_200, [ADA])])).toEqual([
      expect.stringContaining('3 granted within 1000 ms, limit 2'),
    ]);
  });

  it('come from one version for all limits of a request', () => {
    const mixed = [
      { rule: 'user', limit: 2, remaining: 0 },
      { rule: 'net', limit: 3, remaining: 0 },
    ];
    expect(
      found([change(990, 3, { completeNanos: 1_100e6 }), granted(1_000, [ADA, NET], { reported: mixed })]),
    ).toEqual(["'r1000' was decided by limits that were never in force together then: user 2, net 3"]);
  });
});
