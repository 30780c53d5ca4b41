/** Each check alone, with an error that it must find: a check that cannot fail is worth nothing. */
import { describe, expect, test } from 'vitest';
import type { GroupApplication } from '../../raft/driver/group-application.ts';
import type { Entry, Message, NodeId } from '../../raft/types.ts';
import { encodeRules } from '../../src/limiter/log/command.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import { validateRuleTable } from '../../src/limiter/rules.ts';
import { encodePeerMessages } from '../../src/wire/peer-messages.ts';
import { entryOf } from '../limiter/harness.ts';
import { askedBy } from './id-ledger.ts';
import { LimitChecker, type LimitCheckerInit } from './limit-checker.ts';
import { RaftChecker } from './raft-checker.ts';
import { Random } from './random.ts';
import { RejectionChecker } from './rejection-checker.ts';
import { drawSettings } from './draw-settings.ts';
import { Story } from './story.ts';
import { TimeChecker } from './time-checker.ts';

const GROUP = 1;

function raftChecker(): RaftChecker {
  return new RaftChecker({
    now: () => 0,
    story: new Story(() => 0, undefined),
    driftPpm: 0,
    mayBeLate: true,
    gainedBetween: () => 0,
    foundersOf: () => [1, 2, 3],
    led: () => {},
    committed: () => {},
  });
}

function never(): never {
  throw new Error('not asked for here');
}

function application(): GroupApplication {
  return {
    clock: { nowMillis: () => 0, anchor: () => {} },
    takeProposal: never,
    proposed: () => {},
    apply: never,
    snapshot: never,
    restore: never,
    statusChanged: () => {},
  };
}

function say(raft: RaftChecker, message: Message): void {
  for (const payload of encodePeerMessages([{ kind: 'message', group: GROUP, message }]))
    raft.sending(message.from, message.to, payload);
}

function entry(index: number, term: number, data: Uint8Array = new Uint8Array(0)): Entry {
  return { index, term, timeMillis: 1_000 * index, kind: 'command', data };
}

function writes(raft: RaftChecker, node: NodeId, held: Entry, commit = 0): void {
  const hardState = { term: held.term, vote: 0, commit };
  raft.written(node, [{ group: GROUP, entries: [held], hardState }]);
}

describe('the laws of Raft', () => {
  test('a leader without a majority of votes on disk is found', () => {
    const raft = raftChecker();
    for (const node of [1, 2])
      raft.written(node, [{ group: GROUP, entries: [], hardState: { term: 1, vote: 1, commit: 0 } }]);
    const app = application();
    raft.observe(1, GROUP, app, 0);
    // The vote of node 2 is on its disk, but has not reached node 1.
    expect(() => app.statusChanged({ isLeader: true, term: 1, leader: 1 })).toThrow('majority of votes');

    const other = raftChecker();
    for (const node of [1, 2])
      other.written(node, [{ group: GROUP, entries: [], hardState: { term: 1, vote: 1, commit: 0 } }]);
    say(other, { type: 'voteResponse', from: 2, to: 1, term: 1, granted: true });
    const elected = application();
    other.observe(1, GROUP, elected, 0);
    elected.statusChanged({ isLeader: true, term: 1, leader: 1 });
  });

  test('a campaign that no majority agreed to is found, even if a majority agreed to an earlier one', () => {
    const raft = raftChecker();
    raft.written(1, [{ group: GROUP, entries: [], hardState: { term: 2, vote: 1, commit: 0 } }]);
    const campaign = (): void =>
      say(raft, { type: 'vote', from: 1, to: 3, term: 2, lastIndex: 0, lastTerm: 0, isTransfer: false });
    say(raft, { type: 'preVoteResponse', from: 2, to: 1, term: 1, granted: true });
    expect(campaign).toThrow('no majority said that it could win');
    say(raft, { type: 'preVoteResponse', from: 2, to: 1, term: 2, granted: true });
    campaign();
  });

  test('a commit index on a disk is found if its entry is on no quorum of disks', () => {
    const raft = raftChecker();
    expect(() => writes(raft, 1, entry(1, 1), 1)).toThrow('is committed, but it is not');
    writes(raft, 2, entry(1, 1), 1);
  });

  test('a request that is reported as nowhere is found in an entry that may still be committed', () => {
    const raft = raftChecker();
    const proposed = entry(1, 1, entryOf([{ userId: 'ada', requestId: 'r1' }]));
    const app = application();
    raft.observe(1, GROUP, app, 0);
    app.proposed(proposed);
    raft.nowhere(GROUP, 'r1');
    writes(raft, 1, proposed);
    expect(() => raft.nowhere(GROUP, 'r1')).toThrow('may still be committed');
    raft.nowhere(GROUP, 'r2');
    // With these entries no node elects node 1 again.
    for (const node of [2, 3]) writes(raft, node, entry(1, 2));
    raft.nowhere(GROUP, 'r1');
  });
});

describe('requests of clients and their answers', () => {
  const asked = askedBy({ userId: 'ada' });

  test('a request without an id that is in the log twice is found', () => {
    const rejections = new RejectionChecker();
    rejections.begun(asked, 1);
    rejections.logged(asked, { stampedMillis: 2, where: 'entry 1' });
    expect(() => rejections.logged(asked, { stampedMillis: 3, where: 'entry 2' })).toThrow(
      'in the log 2 times',
    );
  });

  test('a request without an id is found in the log though it was reported as nowhere', () => {
    const rejections = new RejectionChecker();
    const attempt = rejections.begun(asked, 1);
    rejections.logged(asked, { stampedMillis: 2, where: 'entry 1' });
    expect(() => rejections.nowhere(attempt)).toThrow('in the log 1 times');
  });
});

describe('the naive limiter', () => {
  const table = validateRuleTable({ version: 1, rules: [{ id: 'default', limit: 1, windowMillis: 1_000 }] });
  const request = { userId: 'user1' };

  /** One grant in entry 2, at 2,000 in group time and in real time. */
  function checker(init: Partial<LimitCheckerInit> = {}): { limits: LimitChecker; granted: Decision } {
    const limits = new LimitChecker({ tables: [table], expectOutcome: () => {}, ...init });
    const committed = (index: number, data: Uint8Array): void =>
      limits.committed(GROUP, {
        entry: entry(index, 1, data),
        digest: 0,
        stampedAt: 1_000 * index,
        gainedMillis: 0,
      });
    committed(1, encodeRules(table));
    committed(2, entryOf([{ userId: 'user1' }]));
    const granted = {
      allowed: true,
      ruleId: 'default',
      limit: 1,
      windowMillis: 1_000,
      remaining: 0,
      retryAfterMillis: 1_002,
      resetMillis: 1_002,
      decided: { term: 1, index: 2, position: 0, timeMillis: 2_000 },
      rulesVersion: 1,
    };
    return { limits, granted };
  }

  test('a wrong number in an answer is found', () => {
    for (const field of [
      'remaining',
      'retryAfterMillis',
      'resetMillis',
      'limit',
      'windowMillis',
      'rulesVersion',
    ] as const) {
      const { limits, granted } = checker();
      const wrong = { ...granted, [field]: granted[field] + 1 };
      expect(() => limits.answered(GROUP, request, wrong, { committedIndex: 2 })).toThrow('must get');
    }
    const { limits, granted } = checker();
    limits.answered(GROUP, request, granted, { committedIndex: 2 });
  });

  const denial: Decision = {
    allowed: false,
    ruleId: 'default',
    limit: 1,
    windowMillis: 1_000,
    remaining: 0,
    retryAfterMillis: 902,
    resetMillis: 902,
    decided: { term: 1, index: 2, timeMillis: 2_100 },
    rulesVersion: 1,
  };

  test('a wrong number in a denial without an entry is found', () => {
    for (const field of ['remaining', 'retryAfterMillis', 'resetMillis', 'rulesVersion'] as const) {
      const wrong = { ...denial, [field]: denial[field] + 1 };
      expect(() => checker().limits.answered(GROUP, request, wrong, { committedIndex: 2 })).toThrow(
        'must be',
      );
    }
    checker().limits.answered(GROUP, request, denial, { committedIndex: 2 });
  });

  test('a denial that is right only because group time stands still is found', () => {
    const { limits } = checker({ lagMax: () => 50 });
    const answered = (invokedMillis: number): void =>
      limits.answered(GROUP, request, denial, { committedIndex: 2, invokedMillis });
    answered(3_000);
    expect(() => answered(3_100)).toThrow('denied out of time');
  });
});

describe('a request under several limits', () => {
  const rules = [
    { id: 'default', limit: 5, windowMillis: 1_000 },
    { id: 'cluster', limit: 2, windowMillis: 60_000 },
  ];
  const table = validateRuleTable({ version: 1, rules });
  const request = {
    userId: 'user1',
    ruleId: 'default',
    requestId: 'r1',
    askedDigest: 7,
    further: [{ userId: 'user2', ruleId: 'cluster' }],
  };
  const byDefault = {
    ruleId: 'default',
    limit: 5,
    windowMillis: 1_000,
    remaining: 4,
    retryAfterMillis: 0,
    resetMillis: 1_002,
  };
  const byCluster = {
    ruleId: 'cluster',
    limit: 2,
    windowMillis: 60_000,
    remaining: 1,
    retryAfterMillis: 0,
    resetMillis: 60_037,
  };
  /** The second limit has the least remaining. */
  const granted = {
    allowed: true,
    ...byCluster,
    decided: { term: 1, index: 2, position: 1, timeMillis: 2_000 },
    rulesVersion: 1,
    limits: [byDefault, byCluster],
  };

  function checker(): LimitChecker {
    const limits = new LimitChecker({ tables: [table], expectOutcome: () => {} });
    for (const held of [entry(1, 1, encodeRules(table)), entry(2, 1, entryOf([request]))])
      limits.committed(GROUP, { entry: held, digest: 0, stampedAt: held.timeMillis, gainedMillis: 0 });
    return limits;
  }

  test('is charged under each limit, and its answer lists them all', () => {
    const limits = checker();
    limits.answered(GROUP, request, granted, { committedIndex: 2 });
    const keys = [
      { userId: 'user1', rule: 'default' },
      { userId: 'user2', rule: 'cluster' },
      { userId: 'user1', rule: 'cluster' },
    ];
    const known = keys.map((key) =>
      limits.isKnownAt(GROUP, 2, { ...key, cost: 1, timestampMillis: undefined, requestId: undefined }),
    );
    expect(known).toEqual([true, true, false]);
  });

  const byAnother = { ...byDefault, decided: { ...granted.decided, position: 0 } };
  test.each([
    ['the receipt and numbers of another limit', byAnother, 'got the answer of undefined'],
    ['the `remaining` of another limit', { remaining: 4 }, 'must get'],
    ['no limits', { limits: [] }, 'must get'],
    ['a wrong number in a limit', { limits: [{ ...byDefault, limit: 6 }, byCluster] }, 'must get'],
    ['its limits in another order', { limits: [byCluster, byDefault] }, 'must get'],
  ])('an answer with %s is found to be wrong', (_, wrong, message) => {
    const reported = { ...granted, ...wrong };
    expect(() => checker().answered(GROUP, request, reported, { committedIndex: 2 })).toThrow(message);
  });

  test('a denial at once that names a limit with room left is found to be wrong', () => {
    const further = [{ userId: 'user2', ruleId: 'cluster', cost: 2 }];
    const denial = { term: 1, index: 2, timeMillis: 2_000 };
    const left = { ...byCluster, retryAfterMillis: 60_037 };
    const reported = { allowed: false, ...left, decided: denial, rulesVersion: 1, limits: [byDefault, left] };
    const asked = { ...request, further, requestId: 'r2' };
    checker().answered(GROUP, asked, reported, { committedIndex: 2 });
    const wrong = { ...reported, ...byDefault };
    expect(() => checker().answered(GROUP, asked, wrong, { committedIndex: 2 })).toThrow(
      'not answered by its limit 1',
    );
  });

  test('is the same request under its id if only its limits differ, and another one if something else was asked', () => {
    const renamed = { ...request, further: [{ userId: 'user1', ruleId: 'cluster' }] };
    checker().answered(GROUP, renamed, granted, { committedIndex: 2 });
    const other = { ...request, askedDigest: 8 };
    expect(() => checker().answered(GROUP, other, granted, { committedIndex: 2 })).toThrow('no such grant');
  });
});

describe('group time', () => {
  test('time that falls behind from one stamp to the next is found', () => {
    let now = 0;
    const settings = drawSettings(new Random(1));
    const times = new TimeChecker({ settings, nodes: () => [], now: () => now, after: () => {} });
    times.healed();
    const committed = (atMillis: number, timeMillis: number): void => {
      now = atMillis;
      const stamped = { ...entry(1, 1), timeMillis };
      times.committed(GROUP, { entry: stamped, digest: 0, stampedAt: atMillis, gainedMillis: 0 });
    };
    committed(10_000, 500);
    committed(11_000, 1_500);
    expect(() => committed(3_611_000, 3_000)).toThrow('lost 3598500 of 3600000 ms');
  });
});
