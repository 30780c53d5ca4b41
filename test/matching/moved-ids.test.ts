/**
 * Tests retries whose id was kept by another key under earlier rules: that key is asked first, and nothing is
 * charged.
 */
import { describe, expect, it } from 'vitest';
import { Bench, ruleSetOf, decision, FROM, GONE, LOST } from './bench.ts';

const NONE = { kind: 'invalid', field: 'requestId', message: 'no grant is remembered' } as const;
const RULES_CHANGED = { kind: 'unavailable', reason: 'rules_changed', proposed: false } as const;
const OF_USER = '{ id: user, key: user, windows: { limit: 2, per: minute } }';
const OF_NET = '{ id: net, key: ip, windows: { limit: 10, per: minute } }';
const OF_ALL = '{ id: all, windows: { limit: 100, per: minute } }';

function written(rules: readonly string[]): string {
  return `rules: [${rules.join(', ')}]`;
}

/** @param now the rules in force @param before earlier rules, the newest first */
function bench(now: readonly string[], ...before: readonly (readonly string[])[]): Bench {
  const made = new Bench();
  made.ruleSet = ruleSetOf(7, written(now));
  made.earlier = before.map((rules) => ruleSetOf(0, written(rules)));
  return made;
}

function asked(made: Bench): readonly string[] {
  return made.asked.map(({ request }) => {
    const isRecall = 'ifRemembered' in request && request.ifRemembered === true;
    return `${isRecall ? 'recall ' : ''}${request.userId}`;
  });
}

/** In two partitions under the earlier rules, in one under the current ones. */
function settled(): Bench {
  const made = bench([OF_USER], [OF_NET, OF_ALL]);
  made.ask(FROM, { requestId: 'r1', settle: true });
  return made;
}

describe('a request with an id that another key has kept', () => {
  it('gets the grant that is stored there, and is asked nowhere else', () => {
    const made = bench([OF_USER], [OF_NET]);
    made.ask(FROM, { requestId: 'r1' });
    expect(made.asked[0]?.request).toMatchObject({ requestId: 'r1', matchedBy: 7, ifRemembered: true });
    expect(asked(made)).toEqual(['recall ip=10.0.0.1']);
    made.of('ip').answer(decision());
    expect(made.reported).toMatchObject([{ answer: { decision: { allowed: true }, key: 'ip=10.0.0.1' } }]);
    expect(made.asked).toHaveLength(1);
  });

  it('gets the conflict, or the error if no partition answers', () => {
    const conflict = { kind: 'conflict', field: 'cost', message: 'another cost' } as const;
    for (const answer of [conflict, GONE, LOST]) {
      const made = bench([OF_USER], [OF_NET]);
      made.ask(FROM, { requestId: 'r1' });
      made.of('ip').answer(answer);
      expect([made.reported, asked(made)]).toMatchObject([[{ answer }], ['recall ip=10.0.0.1']]);
    }
  });

  it('is decided normally if none of the earlier keys remembers it; each is asked once', () => {
    const made = bench([OF_USER], [OF_NET], [OF_ALL], [OF_NET, OF_ALL], [OF_USER, OF_NET]);
    made.ask(FROM, { requestId: 'r1' });
    made.of('ip').answer(NONE);
    made.of('*').answer(NONE);
    expect(asked(made)).toEqual(['recall ip=10.0.0.1', 'recall *', 'user=ada']);
    made.of('user').answer(decision());
    expect(made.reported).toHaveLength(1);
  });

  it('is recognised even if no rule limits it now', () => {
    const made = bench(['{ id: org, key: org, windows: { limit: 1, per: minute } }'], [OF_NET]);
    made.ask(FROM, { requestId: 'r1' });
    made.of('ip').answer(decision());
    expect(made.reported).toMatchObject([{ answer: { decision: { allowed: true } } }]);
  });

  it('is matched again if the partition of the earlier key has older rules', () => {
    const made = bench([OF_USER], [OF_NET]);
    made.ask(FROM, { requestId: 'r1' });
    made.of('ip').answer(RULES_CHANGED);
    expect(made.reported).toEqual([]);
    made.requests.tick();
    expect(asked(made)).toEqual(['recall ip=10.0.0.1', 'recall ip=10.0.0.1']);
  });

  it('is decided at once if it has no id, or the same key keeps it', () => {
    const other = '{ id: other, key: user, windows: { limit: 3, per: hour } }';
    for (const [before, requestId] of [
      [[OF_NET], undefined],
      [[other], 'r1'],
      [[OF_USER, OF_NET], 'r1'],
    ] as const) {
      const made = bench([OF_USER], before);
      made.ask(FROM, { requestId });
      made.ask({ user: 'ada' }, { requestId });
      expect(asked(made)).toEqual(['user=ada', 'user=ada']);
    }
  });
});

describe('a settlement whose id another key has kept', () => {
  it('counts as charged if all of its partitions remember it; the first gives the answer', () => {
    const made = settled();
    made.of('ip').answer(decision());
    made.of('*').answer(decision({ ruleId: 'all/minute' }));
    expect(asked(made)).toEqual(['recall ip=10.0.0.1', 'recall *']);
    expect(made.reported).toMatchObject([{ answer: { decision: { ruleId: 'all/minute' }, key: '*' } }]);
  });

  it('is charged if one of its partitions does not remember it', () => {
    const made = settled();
    made.of('ip').answer(decision());
    made.of('*').answer(NONE);
    expect(asked(made)).toEqual(['recall ip=10.0.0.1', 'recall *', 'user=ada']);
    expect(made.of('user').request).toMatchObject({ settle: true, requestId: 'r1' });
  });
});
