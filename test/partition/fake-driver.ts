/** One partition with a driver that the test controls. */
import type { Answer, UserRequest } from '../../src/api/user-request.ts';
import type { Entry } from '../../raft/types.ts';
import type { ReadDone } from '../../raft/driver/group-application.ts';
import { GroupClock } from '../../raft/driver/group-clock.ts';
import { requestsOf } from '../../src/limiter/log/batch.ts';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import { type RuleTable, validateRuleTable } from '../../src/limiter/rules.ts';
import { Partition } from '../../src/partition/partition.ts';
import { chunksOf, restoreFrom } from '../raft/driver/whole-snapshots.ts';
import type { Rule } from '../../src/api/rule.ts';
import { PARTITION_DEFAULTS, type PartitionOptions } from '../../src/partition/partition-options.ts';

export const START = 1_700_000_000_000;

export function tableOf(version: number, ...rules: Partial<Rule>[]): RuleTable {
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

/** Replaces Raft: a log that commits when the test says so and loses its end when another leader takes over. */
export class FakeDriver {
  now = 0;
  /** The wall clock, which a test may set wrong independently of `now`. */
  wallOffset = START;
  readonly partition: Partition;
  readonly leaders: number[] = [];
  requested = 0;
  term = 0;
  isLeader = false;
  /** Entries that are not committed yet. */
  log: Entry[] = [];
  commit = 0;
  readonly committed: Entry[] = [];
  refusesNext = false;
  /** Set by a test to delay reads; otherwise reads are confirmed at once. */
  confirmsReads = true;
  readonly reads: ReadDone[] = [];
  /** True to refuse proposals. */
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
      requestProposal: () => {
        this.requested += 1;
      },
      readIndex: (done) => {
        if (this.confirmsReads) done(this.isLeader ? this.commit : undefined);
        else this.reads.push(done);
      },
      leaderChanged: (partition, leader) => this.leaders.push(partition === 7 ? leader : -1),
      refusedAtCapacity: () => {
        this.refused += 1;
      },
    });
    this.partition.wantRules(options.table ?? tableOf(1, {}));
  }

  /** A leader whose rules are applied. */
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

  /** One turn of the driver. Returns the appended entry, if any. */
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

  /** Another leader's entries replace those that are not committed. */
  overwrite(count: number): void {
    this.log = [];
    for (let i = 0; i < count; i += 1) this.append('noop', new Uint8Array(0));
    this.commitAll();
  }

  /** Sends a request; the answers arrive in the returned array. */
  ask(request: UserRequest | string, deadline = 1_000): Answer[] {
    const answers: Answer[] = [];
    const asked = typeof request === 'string' ? { userId: request } : request;
    this.partition.decide(asked, this.now + deadline, (answer) => answers.push(answer));
    return answers;
  }

  /** Sends a request and runs turns until it is answered. */
  decide(request: UserRequest | string): Answer {
    const answers = this.ask(request);
    // Another entry may come first in the log.
    for (let turns = 0; turns < 2 && answers.length === 0; turns += 1) {
      this.turn();
      this.commitAll();
    }
    const [answer] = answers;
    if (answer === undefined || answers.length !== 1) throw new Error(`${answers.length} answers`);
    return answer;
  }
}

/** True if a decision grants; undefined for an answer that is no decision. */
export function allowed(answer: Answer | undefined): boolean | undefined {
  return answer?.kind === 'decision' ? answer.decision.allowed : undefined;
}

/** Gives `driver` a snapshot of the state of `other` that ends at this position. */
export function restoreAt(
  driver: FakeDriver,
  end: { readonly index: number; readonly term: number },
  other: FakeDriver,
): void {
  const chunks = chunksOf(other.partition.snapshot());
  const byteLength = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  const meta = { ...end, timeMillis: START, voters: [1], chunkCount: chunks.length, byteLength };
  restoreFrom(driver.partition, { meta, chunks });
}

/** The users of the requests in an entry. */
export function usersOf(entry: Entry | undefined): string[] {
  const command = entry && decodeCommand(entry.data);
  return command?.type === 'allow' ? requestsOf(command.batch).map(({ userId }) => userId) : [];
}

/** The proposals of the next five turns. */
export function proposedTypes(driver: FakeDriver): string[] {
  const types: string[] = [];
  for (let i = 0; i < 5; i += 1) {
    const entry = driver.turn();
    if (entry !== undefined) types.push(decodeCommand(entry.data).type);
  }
  return types;
}
