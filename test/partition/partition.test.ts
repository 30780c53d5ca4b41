/** One partition over a driver that does what the test says. */
import { describe, expect, it } from 'vitest';
import type { Entry } from '../../raft/types.ts';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import { GroupClock } from '../../raft/driver/group-clock.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import { type Rule, type RuleTable, validateRuleTable } from '../../src/limiter/rules.ts';
import type { Answer } from '../../src/partition/answer.ts';
import { Partition, PARTITION_DEFAULTS, type PartitionOptions } from '../../src/partition/partition.ts';
import { chunksOf, restoreFrom } from '../raft/driver/whole-snapshots.ts';

const START = 1_700_000_000_000;

function tableOf(version: number, ...rules: Partial<Rule>[]): RuleTable {
  return validateRuleTable({
    version,
    clockDriftPpm: 0,
    rules: rules.map((rule, i) => ({
      id: `rule${i}`,
      limit: 3,
      windowMillis: 1_000,
      clock: 'cluster',
      ...rule,
    })),
  });
}

/** Stands in for Raft: a log that commits when told, and loses its end when another leader says so. */
class FakeDriver {
  now = 0;
  /** What the wall shows besides `now`; a test may set it wrong. */
  wallOffset = START;
  readonly partition: Partition;
  readonly leaders: number[] = [];
  requested = 0;
  term = 0;
  isLeader = false;
  /** Not committed yet. */
  log: Entry[] = [];
  commit = 0;
  readonly committed: Entry[] = [];
  refusesNext = false;
  /** For want of room. */
  refused = 0;

  constructor(options: { table?: RuleTable; partition?: Partial<PartitionOptions> } = {}) {
    this.partition = new Partition({
      partition: 7,
      nodeId: 1,
      clock: new GroupClock(
        () => this.now,
        () => this.now + START,
      ),
      options: { ...PARTITION_DEFAULTS, ...options.partition },
      monotonicMillis: () => this.now,
      wallMillis: () => this.now + this.wallOffset,
      ruleTable: options.table ?? tableOf(1, {}),
      requestProposal: () => {
        this.requested += 1;
      },
      leaderChanged: (partition, leader) => this.leaders.push(partition === 7 ? leader : -1),
      refusedAtCapacity: () => {
        this.refused += 1;
      },
    });
  }

  /** A leader with its rules in place. */
  static leading(options: ConstructorParameters<typeof FakeDriver>[0] = {}): FakeDriver {
    const driver = new FakeDriver(options);
    driver.lead();
    driver.turn();
    driver.commitAll();
    driver.requested = 0;
    return driver;
  }

  lead(): void {
    this.isLeader = true;
    this.term += 1;
    this.partition.statusChanged({ isLeader: true, term: this.term, leader: 1 });
    this.append('noop', new Uint8Array(0));
  }

  follow(leader = 2): void {
    this.isLeader = false;
    this.term += 1;
    this.partition.statusChanged({ isLeader: false, term: this.term, leader });
  }

  get lastIndex(): number {
    return this.commit + this.log.length;
  }

  append(kind: Entry['kind'], data: Uint8Array): Entry {
    const timeMillis = this.partition.clock.nowMillis();
    const entry: Entry = { index: this.lastIndex + 1, term: this.term, timeMillis, kind, data };
    this.partition.clock.anchor(entry.term, entry.timeMillis);
    this.log.push(entry);
    return entry;
  }

  /** What the driver does once per turn. Returns the entry that was appended, if any. */
  turn(): Entry | undefined {
    const data = this.partition.takeProposal();
    if (data === undefined) return undefined;
    const entry = this.refusesNext ? undefined : this.append('command', data);
    this.refusesNext = false;
    this.partition.proposed(entry);
    return entry;
  }

  commitAll(): void {
    for (const entry of this.log.splice(0)) this.#commit(entry);
  }

  #commit(entry: Entry): void {
    this.commit = entry.index;
    this.committed.push(entry);
    this.partition.apply(entry);
  }

  /** Another leader's entries replace what is not committed. */
  overwrite(count: number): void {
    this.log = [];
    for (let i = 0; i < count; i += 1) this.append('noop', new Uint8Array(0));
    this.commitAll();
  }

  /** Asks; the answers arrive in the returned array. */
  ask(request: AllowRequest | string, deadline = 1_000): Answer[] {
    const answers: Answer[] = [];
    const asked = typeof request === 'string' ? { userId: request } : request;
    this.partition.decide(asked, this.now + deadline, (answer) => answers.push(answer));
    return answers;
  }

  /** Asks, and does everything until it is answered. */
  decide(request: AllowRequest | string): Answer {
    const answers = this.ask(request);
    // Something else may take the first place in the log.
    for (let turns = 0; turns < 2 && answers.length === 0; turns += 1) {
      this.turn();
      this.commitAll();
    }
    const [answer] = answers;
    if (answer === undefined || answers.length !== 1) throw new Error(`${answers.length} answers`);
    return answer;
  }
}

function allowed(answer: Answer | undefined): boolean | undefined {
  return answer?.kind === 'decision' ? answer.decision.allowed : undefined;
}

describe('decisions', () => {
  it('are made by the log: granted up to the limit, then denied, then granted when the window has passed', () => {
    const driver = FakeDriver.leading();
    const answers = [1, 2, 3, 4].map(() => allowed(driver.decide('ada')));
    expect(answers).toEqual([true, true, true, false]);
    driver.now += 1_002;
    expect(allowed(driver.decide('ada'))).toBe(true);
  });

  it('come only when the entry is applied, and carry its place in the log', () => {
    const driver = FakeDriver.leading();
    const answers = driver.ask('ada');
    const entry = driver.turn();
    expect(answers).toEqual([]);
    driver.commitAll();
    expect(answers).toMatchObject([
      { kind: 'decision', decision: { allowed: true, decided: { term: entry?.term, index: entry?.index } } },
    ]);
  });

  it('of one turn share one entry', () => {
    const driver = FakeDriver.leading();
    const answers = ['ada', 'bob', 'ada', 'ada', 'ada'].map((user) => driver.ask(user));
    expect(driver.requested).toBe(1);
    driver.turn();
    expect(driver.log).toHaveLength(1);
    driver.commitAll();
    expect(answers.map(([answer]) => allowed(answer))).toEqual([true, true, true, true, false]);
  });

  it('are told when the whole entry is applied: who asks again at once sees all of it', () => {
    const driver = FakeDriver.leading();
    const again: Answer[] = [];
    driver.partition.decide({ userId: 'ada' }, driver.now + 1_000, () => again.push(...driver.ask('bob')));
    for (const user of ['bob', 'bob', 'bob']) driver.ask(user);
    driver.turn();
    driver.commitAll();
    expect(again).toMatchObject([{ kind: 'decision', decision: { allowed: false, remaining: 0 } }]);
  });

  it('of more requests than fit into one entry take several', () => {
    const driver = FakeDriver.leading({ partition: { batchMax: 4 } });
    const answers = Array.from({ length: 10 }, (_, i) => driver.ask(`user${i}`));
    const sizes: number[] = [];
    while (driver.requested > 0) {
      driver.requested = 0;
      const entry = driver.turn();
      const command = entry && decodeCommand(entry.data);
      if (command?.type === 'allow') sizes.push(command.batch.userIds.length);
    }
    expect(sizes).toEqual([4, 4, 2]);
    driver.commitAll();
    for (const [answer] of answers) expect(allowed(answer)).toBe(true);
  });

  it('a full window is denied at once, and leaves nothing in the log', () => {
    const driver = FakeDriver.leading();
    for (let i = 0; i < 3; i += 1) driver.decide('ada');
    const { lastIndex } = driver;
    driver.requested = 0;
    expect(driver.ask('ada')).toMatchObject([{ kind: 'decision', decision: { allowed: false } }]);
    expect(driver.turn()).toBeUndefined();
    expect([driver.requested, driver.lastIndex, driver.partition.waitingCount]).toEqual([0, lastIndex, 0]);
  });

  it('a node that does not lead names the leader and proposes nothing', () => {
    const driver = new FakeDriver();
    driver.follow(3);
    expect(driver.ask('ada')).toEqual([{ kind: 'notLeader', leader: 3, term: driver.term }]);
    expect(driver.leaders).toEqual([3]);
    expect(driver.partition.waitingCount).toBe(0);
  });

  it('are denied, without a trace, until the first rules are applied', () => {
    const driver = new FakeDriver();
    driver.lead();
    const answers = driver.ask('ada');
    driver.commitAll();
    expect(answers).toEqual([{ kind: 'unavailable', reason: 'starting', proposed: false }]);
  });
});

describe('requests that cannot be decided under the rules', () => {
  const driver = FakeDriver.leading({
    table: tableOf(1, { id: 'a', limit: 5 }, { id: 'event', clock: 'request' }, { id: 'never', limit: 0 }),
  });

  it.each([
    ['cost', { userId: 'u', cost: 6 }, '5'],
    ['rule', { userId: 'u', ruleId: 'unknown' }, 'unknown'],
    ['timestampMillis', { userId: 'u', timestampMillis: 5 }, 'cluster'],
    ['timestampMillis', { userId: 'u', ruleId: 'event', timestampMillis: START + 60_001 }, '60000 ms'],
  ] as const)('are refused by naming %s and its bound: %j', (field, request, bound) => {
    const [answer] = driver.ask(request);
    expect(answer).toMatchObject({ kind: 'invalid', field });
    expect(answer?.kind === 'invalid' && answer.message).toContain(bound);
    expect(driver.turn()).toBeUndefined();
  });

  it('the latest timestamp that is accepted is relative to the later of group time and wall clock', () => {
    const own = FakeDriver.leading({ table: tableOf(1, { clock: 'request' }) });
    const latest = START + PARTITION_DEFAULTS.maxAheadMillis;
    expect(allowed(own.decide({ userId: 'u', timestampMillis: latest }))).toBe(true);
    own.wallOffset = START + 5_000;
    expect(allowed(own.decide({ userId: 'v', timestampMillis: latest + 5_000 }))).toBe(true);
    own.wallOffset = START - 99_000;
    expect(own.ask({ userId: 'w', timestampMillis: latest + 1 })).toMatchObject([{ kind: 'invalid' }]);
    expect(allowed(own.decide({ userId: 'w', timestampMillis: latest }))).toBe(true);
  });

  it('a rule with limit 0 denies instead of complaining about the cost', () => {
    expect(allowed(driver.ask({ userId: 'u', ruleId: 'never', cost: 9 })[0])).toBe(false);
  });
});

describe('retries with a request id', () => {
  const again = { userId: 'ada', requestId: 'r1' };

  it('join the attempt in flight and get the same answer, charged once', () => {
    const driver = FakeDriver.leading();
    const answers = [driver.ask(again), driver.ask(again)];
    driver.turn();
    answers.push(driver.ask(again));
    expect(driver.log).toHaveLength(1);
    driver.commitAll();
    expect(answers.map((list) => list.length)).toEqual([1, 1, 1]);
    expect(new Set(answers.map(([answer]) => JSON.stringify(answer))).size).toBe(1);
    // Two more fit: only one was charged.
    expect([1, 2, 3].map(() => allowed(driver.decide('ada')))).toEqual([true, true, false]);
  });

  it('get the remembered answer once the attempt is decided, without a log entry', () => {
    const driver = FakeDriver.leading();
    const first = driver.decide(again);
    for (let i = 0; i < 2; i += 1) driver.decide('ada');
    const { lastIndex } = driver;
    expect(driver.ask(again)).toEqual([first]);
    expect(driver.lastIndex).toBe(lastIndex);
  });

  it('of another user are other requests', () => {
    const driver = FakeDriver.leading();
    const answers = [
      driver.ask(again),
      driver.ask({ ...again, userId: 'bob' }),
      // The lengths of the parts keep keys apart that read the same when joined.
      driver.ask({ userId: 'adar', requestId: '1' }),
    ];
    const entry = driver.turn();
    const command = entry && decodeCommand(entry.data);
    expect(command?.type === 'allow' && command.batch.userIds).toEqual(['ada', 'bob', 'adar']);
    driver.commitAll();
    for (const [answer] of answers) expect(allowed(answer)).toBe(true);
  });

  it('a retry of a denied request is a new question', () => {
    const driver = FakeDriver.leading({ table: tableOf(1, { limit: 1 }) });
    driver.decide('ada');
    expect(allowed(driver.ask(again)[0])).toBe(false);
    driver.now += 1_002;
    expect(allowed(driver.decide(again))).toBe(true);
  });

  it('that wait are bounded', () => {
    const driver = FakeDriver.leading();
    const answers = Array.from({ length: 100 }, () => driver.ask(again));
    const refused = answers.filter(([answer]) => answer?.kind === 'unavailable');
    expect(refused.length).toBe(100 - 1 - 64);
    expect(refused[0]).toEqual([{ kind: 'unavailable', reason: 'overloaded', proposed: false }]);
    driver.turn();
    driver.commitAll();
    for (const list of answers) expect(list).toHaveLength(1);
  });
});

describe('a leader that has not applied what former leaders decided', () => {
  const request: AllowRequest = { userId: 'ada', timestampMillis: START + 5_000, requestId: 'r1' };
  const table = tableOf(1, { id: 'a', clock: 'request', limit: 1 });

  function newLeader(): FakeDriver {
    const driver = FakeDriver.leading({ table });
    driver.decide('ada');
    driver.follow();
    driver.lead();
    return driver;
  }

  it('denies nothing: further on in its log the request may be granted', () => {
    const driver = newLeader();
    const answers = driver.ask({ userId: 'ada' });
    expect(answers).toEqual([]);
    expect(driver.partition.waitingCount).toBe(1);
    driver.commitAll();
    expect(answers.map(allowed)).toEqual([false]);
    expect(driver.partition.waitingCount).toBe(0);
  });

  it('tells who leads if it loses the lead before', () => {
    const driver = newLeader();
    const answers = driver.ask(request);
    driver.follow(3);
    expect(answers).toMatchObject([{ kind: 'notLeader', leader: 3 }]);
  });
});

describe('a request id reused with another cost, rule or timestamp', () => {
  const first: AllowRequest = { userId: 'ada', cost: 2, requestId: 'r1' };
  const table = tableOf(1, { id: 'a', clock: 'request', limit: 9 }, { id: 'b', limit: 9 });
  const others: readonly [string, AllowRequest, RegExp][] = [
    ['cost', { ...first, cost: 3 }, /'r1' was used before, with cost 2/],
    ['rule', { ...first, ruleId: 'b' }, /'r1' was used before, without rule/],
    [
      'timestampMillis',
      { ...first, timestampMillis: START },
      /'r1' was used before, without timestampMillis/,
    ],
  ];

  it.each(others)('is a conflict that names what differs: %s', (field, other, message) => {
    const driver = FakeDriver.leading({ table });
    const granted = driver.decide(first);
    const { lastIndex } = driver;
    expect(driver.ask(other)).toEqual([{ kind: 'conflict', field, message: expect.stringMatching(message) }]);
    expect(driver.lastIndex).toBe(lastIndex);
    expect(driver.ask(first)).toEqual([granted]);
  });

  it.each(others)('does not join the first while that is in flight: %s', (field, other) => {
    const driver = FakeDriver.leading({ table });
    const answers = driver.ask(first);
    const others = [driver.ask(other)];
    driver.turn();
    others.push(driver.ask(other));
    const joined = driver.ask(first);
    driver.turn();
    driver.commitAll();
    expect(answers.map(allowed)).toEqual([true]);
    expect(joined).toEqual(answers);
    for (const told of others) expect(told).toMatchObject([{ kind: 'conflict', field }]);
  });

  it('is not refused for one in flight, when the log holds that very request already', () => {
    const elsewhere = FakeDriver.leading({ table });
    elsewhere.ask(first);
    const entry = elsewhere.turn();
    const driver = FakeDriver.leading({ table });
    driver.append('command', entry?.data ?? new Uint8Array(0));
    const other = driver.ask({ ...first, cost: 3 });
    driver.turn();
    // Its first attempt was lost with the former leader, and counts.
    const again = driver.ask(first);
    driver.turn();
    driver.commitAll();
    expect(again.map(allowed)).toEqual([true]);
    expect(other).toMatchObject([{ kind: 'conflict', field: 'cost' }]);
  });

  it.each(others)('is told so by the log, when it got there under another leader: %s', (field, other) => {
    const elsewhere = FakeDriver.leading({ table });
    elsewhere.ask(first);
    const entry = elsewhere.turn();
    // It is in the log, and not applied yet.
    const driver = FakeDriver.leading({ table });
    driver.append('command', entry?.data ?? new Uint8Array(0));
    const answers = driver.ask(other);
    driver.turn();
    driver.commitAll();
    expect(answers).toMatchObject([{ kind: 'conflict', field }]);
  });

  it('is named though it could not be decided by these rules at all', () => {
    const driver = FakeDriver.leading({ table });
    driver.decide(first);
    expect(driver.ask({ ...first, cost: 10 })).toMatchObject([{ kind: 'conflict', field: 'cost' }]);
    expect(driver.ask({ ...first, ruleId: 'none' })).toMatchObject([{ kind: 'conflict', field: 'rule' }]);
  });
});

/** `driver` gets a snapshot with the state of `other` that ends here. */
function restoreAt(
  driver: FakeDriver,
  end: { readonly index: number; readonly term: number },
  other: FakeDriver,
): void {
  const chunks = chunksOf(other.partition.snapshot());
  const byteLength = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  const meta = { ...end, timeMillis: START, voters: [1], chunkCount: chunks.length, byteLength };
  restoreFrom(driver.partition, { meta, chunks });
}

describe('losing the leadership', () => {
  it('fails what was not proposed, and leaves what was proposed to the log', () => {
    const driver = FakeDriver.leading();
    const proposed = driver.ask('ada');
    driver.turn();
    const waiting = driver.ask('bob');
    driver.follow(2);
    expect(waiting).toEqual([{ kind: 'notLeader', leader: 2, term: driver.term }]);
    expect(proposed).toEqual([]);
    // The new leader has the entry, and commits it.
    driver.commitAll();
    expect(proposed.map(allowed)).toEqual([true]);
    expect(driver.partition.waitingCount).toBe(0);
  });

  it('an entry that was overwritten answers that it was never proposed', () => {
    const driver = FakeDriver.leading();
    const answers = [driver.ask('ada'), driver.ask({ userId: 'bob', requestId: 'r' })];
    driver.turn();
    driver.follow(2);
    driver.overwrite(1);
    for (const list of answers) {
      expect(list).toEqual([{ kind: 'unavailable', reason: 'no_leader', proposed: false }]);
    }
    expect(driver.partition.waitingCount).toBe(0);
  });

  it('an entry covered by a snapshot has an unknown outcome', () => {
    const driver = FakeDriver.leading();
    const answers = driver.ask('ada');
    const entry = driver.turn();
    const other = FakeDriver.leading();
    other.decide('ada');
    driver.follow(2);
    restoreAt(driver, { index: (entry?.index ?? 0) + 5, term: 9 }, other);
    expect(answers).toEqual([{ kind: 'unavailable', reason: 'unknown_outcome', proposed: true }]);
    expect(driver.partition.waitingCount).toBe(0);
    expect(driver.partition.stateHash()).toBe(other.partition.stateHash());
  });

  it.each([
    ['in its term has an unknown outcome: whoever leads now may hold it', 0, 'unknown_outcome', true],
    ['of a later term is nowhere: terms do not decrease along a log', 1, 'no_leader', false],
  ] as const)('an entry behind a snapshot that ends %s', (_, later, reason, proposed) => {
    const driver = FakeDriver.leading();
    driver.ask('ada');
    const covered = driver.turn();
    const answers = driver.ask('bob');
    driver.turn();
    const other = FakeDriver.leading();
    other.decide('ada');
    driver.follow(2);
    const { index = 0, term = 0 } = covered ?? {};
    restoreAt(driver, { index, term: term + later }, other);
    expect(answers).toEqual([{ kind: 'unavailable', reason, proposed }]);
    expect(driver.partition.waitingCount).toBe(0);
  });

  it('twice, with entries of both terms at the same index: everyone is answered, and nothing is counted for ever', () => {
    const driver = FakeDriver.leading();
    // Term 1: three entries that reach nobody.
    const first = [driver.ask('ada'), [], []];
    driver.turn();
    first[1] = driver.ask('bob');
    driver.turn();
    first[2] = driver.ask('cy');
    driver.turn();
    // Another leader's no-op takes the first place; then this node leads again and proposes at the third.
    driver.follow(2);
    driver.overwrite(1);
    driver.lead();
    const second = driver.ask('dan');
    driver.commitAll();
    driver.turn();
    driver.commitAll();
    expect(second.map(allowed)).toEqual([true]);
    for (const list of first) expect(list).toHaveLength(1);
    expect(driver.partition.waitingCount).toBe(0);
  });

  it('a retry does not wait for an attempt that the log has lost', () => {
    const driver = FakeDriver.leading();
    driver.ask('ada');
    driver.turn();
    const request = { userId: 'bob', requestId: 'r' };
    driver.ask(request);
    driver.turn();
    // Another leader replaced both entries by one; nothing stands where bob's was.
    driver.follow(2);
    driver.overwrite(1);
    driver.lead();
    driver.commitAll();
    const retry = driver.ask(request);
    driver.turn();
    driver.commitAll();
    expect(retry.map(allowed)).toEqual([true]);
  });

  it('tells about leaders only when they change, or take office again', () => {
    const driver = new FakeDriver();
    driver.follow(2);
    driver.partition.statusChanged({ isLeader: false, term: driver.term, leader: 2 });
    expect(driver.leaders).toEqual([2]);
    driver.follow(2);
    driver.lead();
    driver.follow(0);
    driver.follow(0);
    expect(driver.leaders).toEqual([2, 2, 1, 0]);
  });
});

describe('bounds', () => {
  it('a full waiting queue refuses as overloaded', () => {
    const driver = FakeDriver.leading({ partition: { pendingMax: 3 } });
    const answers = ['a', 'b', 'c', 'd'].map((user) => driver.ask(user));
    expect(answers[3]).toEqual([{ kind: 'unavailable', reason: 'overloaded', proposed: false }]);
    driver.turn();
    driver.commitAll();
    expect(answers.map(([answer]) => allowed(answer))).toEqual([true, true, true, undefined]);
  });

  it('too many requests in the log refuse as overloaded, until some are applied', () => {
    const driver = FakeDriver.leading({ partition: { inflightMax: 3 } });
    for (const user of ['a', 'b', 'c']) driver.ask(user);
    driver.turn();
    expect(driver.ask('d')).toEqual([{ kind: 'unavailable', reason: 'overloaded', proposed: false }]);
    driver.commitAll();
    expect(allowed(driver.decide('d'))).toBe(true);
  });

  it('a proposal that raft refuses answers overloaded, and charges nothing', () => {
    const driver = FakeDriver.leading();
    const answers = driver.ask({ userId: 'ada', requestId: 'r' });
    driver.refusesNext = true;
    driver.turn();
    expect(answers).toEqual([{ kind: 'unavailable', reason: 'overloaded', proposed: false }]);
    expect(driver.partition.waitingCount).toBe(0);
    expect(allowed(driver.decide({ userId: 'ada', requestId: 'r' }))).toBe(true);
  });

  it('a request whose deadline has passed is not proposed', () => {
    const driver = FakeDriver.leading();
    const late = driver.ask('ada', 10);
    const timely = driver.ask('bob', 100);
    driver.now += 10;
    const entry = driver.turn();
    expect(late).toEqual([{ kind: 'unavailable', reason: 'deadline', proposed: false }]);
    const command = entry && decodeCommand(entry.data);
    expect(command?.type === 'allow' && command.batch.userIds).toEqual(['bob']);
    driver.commitAll();
    expect(timely.map(allowed)).toEqual([true]);
  });

  it('what cannot be answered in time, by how long commits take lately, is not proposed', () => {
    const driver = FakeDriver.leading();
    for (const [i, millis] of [90, 50, 80, 70, 60, 90, 90, 90].entries()) {
      driver.ask(`user ${i}`);
      driver.turn();
      driver.now += millis;
      driver.commitAll();
    }
    driver.ask('ada');
    driver.turn();
    const late = driver.ask('bob', 50);
    const timely = driver.ask('cyd', 51);
    driver.turn();
    expect(late).toEqual([{ kind: 'unavailable', reason: 'deadline', proposed: false }]);
    driver.commitAll();
    expect(timely.map(allowed)).toEqual([true]);
  });

  it('something is always tried, however long commits took', () => {
    const driver = FakeDriver.leading();
    for (let i = 0; i < 8; i += 1) {
      driver.ask(`user ${i}`);
      driver.turn();
      driver.now += 900;
      driver.commitAll();
    }
    const first = driver.ask('bob', 100);
    driver.turn();
    const second = driver.ask('cyd', 100);
    driver.turn();
    expect(second).toEqual([{ kind: 'unavailable', reason: 'deadline', proposed: false }]);
    // The disk is quick again: one commit is enough to know it.
    driver.now += 5;
    driver.commitAll();
    expect(first.map(allowed)).toEqual([true]);
    driver.ask('dan', 100);
    driver.turn();
    const fourth = driver.ask('eve', 100);
    driver.turn();
    driver.commitAll();
    expect(fourth.map(allowed)).toEqual([true]);
  });

  it('nothing is proposed if all have expired', () => {
    const driver = FakeDriver.leading();
    driver.ask('ada', 10);
    driver.now += 11;
    const { lastIndex } = driver;
    expect(driver.turn()).toBeUndefined();
    expect(driver.lastIndex).toBe(lastIndex);
  });

  it('close to a full disk nothing is proposed, but what is denied anyway is denied', () => {
    const driver = FakeDriver.leading({ table: tableOf(1, { limit: 1 }) });
    driver.decide('ada');
    driver.partition.refuseProposals(true);
    expect(driver.ask('bob')).toEqual([{ kind: 'unavailable', reason: 'low_disk', proposed: false }]);
    expect(allowed(driver.ask('ada')[0])).toBe(false);
    driver.partition.refuseProposals(false);
    expect(allowed(driver.decide('bob'))).toBe(true);
  });
});

describe('at capacity', () => {
  const table: RuleTable = { ...tableOf(1, { limit: 100 }), partitionBytesMax: 4_096 };
  const refused = [{ kind: 'unavailable', reason: 'at_capacity', proposed: false }];

  function full(): FakeDriver {
    const driver = FakeDriver.leading({ table });
    for (let i = 0; i < 200; i += 1) driver.decide(`user${i}`);
    driver.commitAll();
    return driver;
  }

  it('new users and new request ids are refused at the door, known users are served', () => {
    const driver = full();
    const { lastIndex } = driver;
    expect(driver.ask('stranger')).toEqual(refused);
    expect(driver.ask({ userId: 'user1', requestId: 'new' })).toEqual(refused);
    expect(driver.lastIndex).toBe(lastIndex);
    expect(allowed(driver.decide('user1'))).toBe(true);
    expect(driver.partition.stateBytes).toBeLessThanOrEqual(4_096);
    expect(driver.refused).toBeGreaterThan(100);
  });

  it('is found out by the log when many come at once', () => {
    const driver = FakeDriver.leading({ table });
    const answers = Array.from({ length: 100 }, (_, i) => driver.ask(`user${i}`));
    driver.turn();
    driver.commitAll();
    const granted = answers.filter(([answer]) => allowed(answer) === true);
    expect(granted).toHaveLength(34);
    // It is in the log, though it counted nowhere.
    expect(answers[99]).toEqual([{ kind: 'unavailable', reason: 'at_capacity', proposed: true }]);
    expect(driver.partition.stateBytes).toBeLessThanOrEqual(4_096);
  });

  it('what is idle is forgotten by sweeps, which nobody has to be granted for', () => {
    const driver = full();
    driver.now += 1_500;
    driver.requested = 0;
    expect(driver.ask('stranger')).toEqual(refused);
    expect(driver.requested).toBe(1);
    expect(proposedTypes(driver)).toEqual(['sweep']);
    driver.commitAll();
    expect(driver.partition.stateBytes).toBe(0);
    expect(allowed(driver.decide('stranger'))).toBe(true);
  });

  it('sweeps are few, and fewer when there is nothing to forget', () => {
    const driver = full();
    let sweeps = 0;
    for (let millis = 0; millis < 60_000; millis += 10) {
      driver.now += 10;
      // They are asked every now and then, so they are not idle.
      if (millis % 500 === 0) for (let i = 0; i < 40; i += 1) driver.decide(`user${i}`);
      driver.ask('stranger');
      sweeps += proposedTypes(driver).filter((type) => type === 'sweep').length;
      driver.commitAll();
    }
    expect(sweeps).toBeGreaterThan(10);
    expect(sweeps).toBeLessThan(40);
  });

  it('a sweep that found no place in the log is asked for again', () => {
    const driver = full();
    driver.now += 1_500;
    driver.ask('stranger');
    driver.refusesNext = true;
    expect(driver.turn()).toBeUndefined();
    driver.now += 200;
    driver.ask('stranger');
    expect(proposedTypes(driver)).toEqual(['sweep']);
  });

  it('and close to a full disk nothing is swept: that takes place in the log, too', () => {
    const driver = full();
    driver.now += 1_500;
    driver.partition.refuseProposals(true);
    driver.ask('stranger');
    driver.partition.limitRoom('full');
    expect(proposedTypes(driver)).toEqual([]);
    driver.partition.refuseProposals(false);
    driver.partition.limitRoom('full');
    expect(proposedTypes(driver)).toEqual(['sweep']);
  });

  it('of the node, or of another that keeps a copy, is the same for those who ask', () => {
    const driver = FakeDriver.leading();
    driver.decide('ada');
    driver.partition.limitRoom('full');
    expect(driver.ask('stranger')).toEqual(refused);
    expect(allowed(driver.decide('ada'))).toBe(true);
    driver.now += 1;
    driver.partition.limitRoom('exhausted');
    expect(driver.ask('ada')).toEqual(refused);
    driver.partition.limitRoom('free');
    expect(allowed(driver.decide('stranger'))).toBe(true);
  });

  it('of the node makes room also where nobody asks any more', () => {
    const driver = FakeDriver.leading();
    driver.decide('ada');
    driver.now += 1_500;
    driver.partition.limitRoom('full');
    expect(proposedTypes(driver)).toEqual(['sweep']);
    driver.commitAll();
    expect(driver.partition.stateBytes).toBe(0);
    driver.now += 10_000;
    driver.partition.limitRoom('full');
    expect(proposedTypes(driver)).toEqual([]);
  });
});

function proposedTypes(driver: FakeDriver): string[] {
  const types: string[] = [];
  for (let i = 0; i < 5; i += 1) {
    const entry = driver.turn();
    if (entry !== undefined) types.push(decodeCommand(entry.data).type);
  }
  return types;
}

describe('rules', () => {
  it('are proposed first, once per term', () => {
    const driver = new FakeDriver();
    driver.lead();
    expect(driver.requested).toBe(1);
    expect(proposedTypes(driver)).toEqual(['rules']);
    // It never committed: the next term tries again.
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

  it('a change keeps what was granted, and decides everything after it', () => {
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
  it('that applied the same entries are equal, whoever led', () => {
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
