/** Rules come from the log: which leader proposes them, and which requests they decide. */
import { describe, expect, it } from 'vitest';
import { chunksOf, restoreFrom } from '../raft/driver/whole-snapshots.ts';
import { allowed, FakeDriver, proposedTypes, START, tableOf } from './fake-driver.ts';

/** A denial, and a peek. */
function decidedBy(rulesVersion: number): object[] {
  return [{ decision: { allowed: false, rulesVersion } }, { keyStatus: { rulesVersion } }];
}

describe('rules', () => {
  it('are proposed first, once per term', () => {
    const driver = new FakeDriver();
    driver.lead();
    expect(driver.requested).toBe(1);
    expect(proposedTypes(driver)).toEqual(['rules']);
    // The entry never committed: the next term tries again.
    driver.follow(2);
    driver.overwrite(1);
    driver.lead();
    expect(proposedTypes(driver)).toEqual(['rules']);
    driver.commitAll();
    expect(allowed(driver.decide('ada'))).toBe(true);
  });

  it('are proposed again in the same term if raft refused them', () => {
    const driver = new FakeDriver();
    driver.lead();
    driver.refusesNext = true;
    expect(driver.turn()).toBeUndefined();
    expect(proposedTypes(driver)).toEqual(['rules']);
  });

  it('that raft refused are proposed again when an entry is applied, not at once: that would block all other work', () => {
    const driver = FakeDriver.leading();
    driver.partition.wantRules(tableOf(2, {}));
    const answers = driver.ask('ada');
    driver.refusesNext = true;
    driver.requested = 0;
    expect(driver.turn()).toBeUndefined();
    expect(driver.requested).toBe(0);
    driver.append('noop', new Uint8Array(0));
    driver.commitAll();
    expect(driver.requested).toBe(1);
    expect(proposedTypes(driver)).toEqual(['rules', 'allow']);
    driver.commitAll();
    expect(answers).toMatchObject([{ kind: 'decision' }]);
  });

  it('are proposed only if they are newer than the replicated ones', () => {
    const newer = FakeDriver.leading({ table: tableOf(5, { limit: 9 }) });
    const chunks = chunksOf(newer.partition.snapshot());
    const byteLength = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    const meta = { index: 2, term: 1, timeMillis: START, voters: [1], chunkCount: chunks.length, byteLength };
    for (const version of [4, 5, 6]) {
      const driver = new FakeDriver({ table: tableOf(version, { limit: 2 }) });
      restoreFrom(driver.partition, { meta, chunks });
      driver.commit = 2;
      driver.term = 1;
      driver.lead();
      expect(proposedTypes(driver)).toEqual(version === 6 ? ['rules'] : []);
      driver.commitAll();
      const answer = driver.decide('ada');
      expect(answer.kind === 'decision' && answer.decision.limit).toBe(version === 6 ? 2 : 9);
    }
  });

  it('that arrive later are proposed in the same term, once, and only by the leader', () => {
    const driver = FakeDriver.leading({ table: tableOf(1, { limit: 3 }) });
    driver.partition.wantRules(tableOf(2, { limit: 2 }));
    driver.partition.wantRules(tableOf(2, { limit: 2 }));
    driver.partition.wantRules(tableOf(1, { limit: 9 }));
    expect(proposedTypes(driver)).toEqual(['rules']);
    expect(proposedTypes(driver)).toEqual([]);
    driver.commitAll();
    expect(driver.partition.ruleTable).toEqual(tableOf(2, { limit: 2 }));
    driver.follow(2);
    const { requested } = driver;
    driver.partition.wantRules(tableOf(3, { limit: 1 }));
    expect(driver.requested).toBe(requested);
    driver.lead();
    expect(proposedTypes(driver)).toEqual(['rules']);
  });

  it('that are not applied yet do not appear in answers: those report the version that decided', () => {
    const driver = FakeDriver.leading({ table: tableOf(3, { limit: 1 }) });
    expect(driver.decide('ada')).toMatchObject({ decision: { allowed: true, rulesVersion: 3 } });
    expect(driver.decide('ada')).toMatchObject({ decision: { allowed: false, rulesVersion: 3 } });
    driver.partition.wantRules(tableOf(7, { limit: 1 }));
    const answers = (): unknown[] => [...driver.ask('ada'), ...driver.ask({ ask: 'peek', userId: 'ada' })];
    expect(answers()).toMatchObject(decidedBy(3));
    expect(proposedTypes(driver)).toEqual(['rules']);
    expect(answers()).toMatchObject(decidedBy(3));
    driver.commitAll();
    expect(answers()).toMatchObject(decidedBy(7));
  });

  it('never decide a request that was matched by another version, even before they are applied', () => {
    const driver = FakeDriver.leading({ table: tableOf(1, { limit: 3 }) });
    const changed = { kind: 'unavailable', reason: 'rules_changed', proposed: false };
    const waiting = driver.ask({ userId: 'ada', matchedBy: 1 });
    const named = driver.ask({ userId: 'ada' });
    driver.partition.wantRules(tableOf(2, { limit: 2 }));
    driver.turn();
    expect(waiting).toEqual([changed]);
    // The new rules are in the log, and later requests will be after them.
    expect(driver.ask({ userId: 'ada', matchedBy: 1 })).toEqual([changed]);
    const newer = driver.ask({ userId: 'ada', matchedBy: 2 });
    driver.turn();
    driver.commitAll();
    expect([named, newer]).toMatchObject([[{ kind: 'decision' }], [{ kind: 'decision' }]]);
    expect(driver.ask({ userId: 'ada', matchedBy: 1 })).toEqual([changed]);
  });

  it("that are older than the request's do not decide it, and do not report an earlier grant of it either", () => {
    const driver = FakeDriver.leading({ table: tableOf(1, { limit: 3 }) });
    const newer = { userId: 'ada', requestId: 'r1', matchedBy: 2, askedDigest: 1 } as const;
    const recalled = { ...newer, ifRemembered: true } as const;
    const changed = { kind: 'unavailable', reason: 'rules_changed', proposed: false };
    for (const request of [newer, recalled]) expect(driver.ask(request)).toEqual([changed]);
    expect(driver.turn()).toBeUndefined();
    // An attempt under the old rules is in the log, before the answer.
    const before = driver.ask({ ...newer, matchedBy: 1 });
    driver.turn();
    driver.partition.wantRules(tableOf(2, { limit: 3 }));
    driver.turn();
    const recalledAnswer = driver.ask(recalled);
    driver.turn();
    driver.commitAll();
    expect([before, recalledAnswer]).toMatchObject([[{ decision: { allowed: true } }], [{ isRepeat: true }]]);
  });

  it('that are applied do not refuse a request that was matched by newer rules in the log', () => {
    const driver = FakeDriver.leading({ table: tableOf(1, { limit: 1 }) });
    for (let i = 0; i < 2; i += 1) driver.decide('ada');
    driver.partition.wantRules(tableOf(2, { limit: 3 }));
    driver.turn();
    const changed = { kind: 'unavailable', reason: 'rules_changed', proposed: false };
    expect(driver.ask({ userId: 'ada', matchedBy: 2 })).toEqual([changed]);
    expect(driver.ask({ userId: 'eve', cost: 2, matchedBy: 2 })).toEqual([changed]);
    // A request by rule name is decided by the rules in force then.
    expect(driver.ask({ userId: 'ada' })).toMatchObject([{ kind: 'decision', decision: { allowed: false } }]);
    driver.commitAll();
    expect(allowed(driver.decide({ userId: 'ada', matchedBy: 2 }))).toBe(true);
  });

  it('that replace others keep all grants, and decide every request after them', () => {
    const driver = FakeDriver.leading({ table: tableOf(1, { limit: 3 }) });
    for (let i = 0; i < 3; i += 1) driver.decide('ada');
    const follower = new FakeDriver({ table: tableOf(2, { limit: 4 }) });
    for (const entry of driver.committed) follower.partition.apply(entry);
    follower.commit = driver.commit;
    follower.term = driver.term;
    follower.lead();
    follower.turn();
    follower.commitAll();
    expect([allowed(follower.decide('ada')), allowed(follower.decide('ada'))]).toEqual([true, false]);
  });
});

describe('replicas', () => {
  it('that applied the same entries are equal, under any leaders', () => {
    const driver = FakeDriver.leading();
    for (let i = 0; i < 50; i += 1) {
      driver.decide({ userId: `u${i % 7}`, ...(i % 3 === 0 && { requestId: `r${i % 12}` }) });
      driver.now += 37;
    }
    const follower = new FakeDriver();
    for (const entry of driver.committed) follower.partition.apply(entry);
    expect(follower.partition.stateHash()).toBe(driver.partition.stateHash());
    expect(follower.partition.stats()).toEqual(driver.partition.stats());
  });
});
