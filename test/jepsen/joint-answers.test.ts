/**
 * Handwritten histories, each with one error and once without it. The checkers must find the error, and report nothing
 * without it.
 */
import { describe, expect, it } from 'vitest';
import { type Ask, decodeJoint, encodeJoint } from './joint-history.ts';
import {
  ADA,
  change,
  denied,
  EVE,
  found,
  granted,
  NET,
  refund,
  type Surroundings,
  unanswered,
  under,
  keyChange,
} from './joint-judged.ts';
import { answer } from './judged.ts';

describe('one request id', () => {
  const first = granted(1_000, [ADA]);
  const again = (more: Partial<Ask>): Ask => granted(1_200, [ADA], { requestId: first.requestId, ...more });

  it('has one answer, and is counted once', () => {
    const { receipt } = first;
    expect(found([first, again({ receipt }), again({ receipt }), granted(1_300, [ADA])])).toEqual([]);
    expect(found([first, again({})])).toEqual([expect.stringContaining("'r1000' was granted twice")]);
  });

  it('is remembered for its horizon, and no longer', () => {
    const denial = { status: 429, allowed: false, receipt: null } as const;
    const full = [granted(1_050, [ADA])];
    expect(found([first, ...full, again(denial)])).toEqual(["'r1000' was granted, and its retry was denied"]);
    const conflict = { status: 422, class: 'fail', allowed: null, reported: [], receipt: null } as const;
    expect(found([first, again(conflict)])).toEqual([expect.stringContaining('its retry was refused')]);
    const late = granted(20_000, [ADA], { requestId: first.requestId });
    expect(found([first, late])).toEqual([]);
  });

  it('has a log position that no other request has', () => {
    const { receipt } = first;
    expect(found([first, granted(1_200, [EVE], { receipt })])).toEqual([
      expect.stringContaining("two requests at partition 1, index 1000, position 0: 'r1000' and 'r1200'"),
    ]);
    const single = answer(1, { group: 1, index: 1_000, position: 0 });
    expect(found([first], { history: [single] })).toEqual([
      expect.stringContaining('the single request of ada'),
    ]);
  });
});

describe('the reported limits', () => {
  it('are all limits of the request, and no others', () => {
    const half = { reported: [{ rule: 'user', limit: 2, remaining: 1 }] };
    expect(found([granted(1_000, [ADA, NET], half)])).toEqual([
      "'r1000' was granted under 1 of its 2 limits",
    ]);
    expect(found([granted(1_000, [NET], half)])).toContain("'r1000' was answered with rule 'user'");
    expect(found([granted(1_000, [ADA], { reported: [] })])).toContain("'r1000' was granted under no limit");
    expect(found([granted(1_000, [ADA, NET], { ...half, listener: 'redis' })])).toEqual([]);
  });

  it('may be those of one partition for a settlement during a change of rules, because its node repeats it', () => {
    const half = { reported: [{ rule: 'user', limit: 2, remaining: 1 }] };
    const under = change(990, 2, { completeNanos: 1_005e6 });
    const missing = ["'r1000' was granted under 1 of its 2 limits"];
    expect(found([granted(1_000, [ADA, NET], { ...half, settled: true }), under])).toEqual([]);
    expect(found([granted(1_000, [ADA, NET], half), under])).toEqual(missing);
    expect(found([granted(1_000, [ADA, NET], { ...half, settled: true })])).toEqual(missing);
  });

  it('have at most the remainder that the request leaves', () => {
    const reported = [{ rule: 'user', limit: 2, remaining: 2 }];
    expect(found([granted(1_000, [ADA], { reported })])).toEqual([
      "'r1000' was answered that 2 of 2 remain under 'user'",
    ]);
  });

  it('show the current remainder of a settlement: its cost may have left the window meanwhile', () => {
    const more = { reported: [{ rule: 'user', limit: 2, remaining: 2 }], settled: true };
    expect(found([granted(1_000, [ADA], { ...more, completeNanos: 2_001e6 })])).toEqual([]);
    expect(found([granted(1_000, [ADA], { ...more, completeNanos: 1_999e6 })])).toEqual([
      "'r1000' was answered that 2 of 2 remain under 'user'",
    ]);
  });
});

describe('a key', () => {
  it('belongs to one partition', () => {
    const elsewhere = { receipt: { group: 2, index: 5, position: 0, term: 1, timeMillis: 1 } };
    expect(found([granted(1_000, [ADA]), granted(1_100, [ADA], elsewhere)])).toEqual([
      "key 'user=ada' was decided by groups 1, 2",
    ]);
  });
});

function broken(endMillis: number): Surroundings {
  return { bands: [{ kind: 'kill', nodes: [1], startNanos: 0, endNanos: endMillis * 1e6 }] };
}

describe('a denial', () => {
  const [first, second] = [granted(1_000, [ADA]), granted(1_100, [ADA])];

  it('needs a limit that may be used up', () => {
    expect(found([first, second, denied(1_200, [ADA])])).toEqual([]);
    expect(found([first, denied(1_200, [ADA])])).toEqual([
      expect.stringContaining("'r1200' of cost 1 was denied"),
    ]);
    expect(found([first, denied(1_200, [ADA], { cost: 2 })])).toEqual([]);
  });

  it('is wrong once the window is over, also that of a reservation for a denied request', () => {
    const far = under('net', 'net=far');
    const reserved = denied(1_000, [ADA, far], { requestId: 'given up' });
    const full = [granted(900, [ADA]), granted(950, [ADA])];
    const elsewhere = { group: 2, index: 5, position: 0, term: 1, timeMillis: 1 };
    const other = granted(990, [far], { receipt: elsewhere });
    expect(found([...full, reserved, other, denied(1_500, [far])])).toEqual([]);
    expect(found([...full, reserved, other, denied(2_100, [far])])).toEqual([
      expect.stringContaining("key 'net=far' under rule 'net' had room"),
    ]);
  });

  it('is found if a fresh key does not get its whole limit, also with a second key in another partition', () => {
    const last = denied(1_100, [ADA, NET]);
    expect(found([granted(1_000, [ADA, NET]), last])).toEqual([expect.stringContaining("'r1100'")]);
  });

  it('may be wrong during a fault, and until the cluster has settled', () => {
    const events = [denied(1_200, [ADA])];
    expect(found(events, broken(1_150))).toEqual([]);
    expect(found(events, broken(1_000))).toHaveLength(1);
  });

  it('may come from rules that were replaced while its leader was cut off, unlike a grant', () => {
    // Rules with smaller limits were in force until 1,005, and longer for a leader that was cut off from the change.
    const replaced = [change(10, 1), change(1_000, 3)];
    const reported = [{ rule: 'user', limit: 1, remaining: 0 }];
    const wrong = ["'r1020' was decided by limits that were never in force together then: user 1"];
    const cut = { bands: [{ kind: 'partition', nodes: [1], startNanos: 900e6, endNanos: 950e6 }] };
    const late = { bands: [{ kind: 'partition', nodes: [1], startNanos: 1_010e6, endNanos: 1_050e6 }] };
    const old = [denied(1_020, [ADA], { reported })];
    const findings = (events: readonly Ask[], surroundings: Surroundings): readonly string[] =>
      found([...replaced, ...events], surroundings).filter((each) => each.includes('never in force'));
    expect(findings(old, cut)).toEqual([]);
    expect(findings(old, {})).toEqual(wrong);
    expect(findings(old, late)).toEqual(wrong);
    expect(findings([granted(1_020, [ADA], { reported })], cut)).toEqual(wrong);
  });

  it('may come from requests that were charged without an answer', () => {
    const lost = [unanswered(1_000, [ADA]), unanswered(1_050, [ADA])];
    expect(found([...lost, denied(1_200, [ADA])])).toEqual([]);
    expect(found([...lost, denied(2_100, [ADA])])).toHaveLength(1);
  });
});

describe('a line of the history', () => {
  it('can be read back unchanged', () => {
    const ask = granted(1_000, [ADA, NET]);
    const blocked = denied(1_150, [ADA], { status: 403, blocked: true, reported: [] });
    const settled = granted(1_250, [ADA], { settled: true, cost: 7 });
    const changes = [change(1_300, 1), keyChange(1_400, 'block'), keyChange(1_500, 'reset')];
    const events = [ask, unanswered(1_100, [ADA]), blocked, refund(1_200, ask), settled, ...changes];
    expect(events.map((event) => decodeJoint(JSON.parse(encodeJoint(event)), 1))).toEqual(events);
  });

  it('is refused with the name of the wrong field', () => {
    const { listener: _, ...line } = JSON.parse(encodeJoint(granted(1_000, [ADA]))) as Record<
      string,
      unknown
    >;
    expect(() => decodeJoint(line, 7)).toThrow(
      'line 7: listener must be one of http, batch, redis, but is undefined',
    );
    expect(() => decodeJoint({ ...line, listener: 'http', limits: [] }, 8)).toThrow(
      'line 8: limits must be one or more',
    );
    expect(() => decodeJoint({ ...line, op: 'peek' }, 9)).toThrow(
      'line 9: op must be one of ask, refund, rules, key',
    );
    expect(() => decodeJoint({ ...line, listener: 'http', allowed: null }, 10)).toThrow(
      'line 10: an answered request needs allowed',
    );
  });
});
