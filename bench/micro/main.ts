/**
 * `npm run bench:micro`: measures the processor time of a request, a group and a round, in one process and a few
 * seconds, so that a change to the hot path shows at once. In a round each group gets some requests at once and answers
 * all of them, with one log entry for each group and one write for all. Sockets, HTTP and disks are not measured.
 */
import { Command } from 'commander';
import type { Decision } from '../../src/api/answer.ts';
import { questionOf } from '../../src/api/question.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { Answer } from '../../src/api/user-request.ts';
import { integerFrom } from '../../src/cli/options.ts';
import { ListenerUsage } from '../../src/node/listener-usage.ts';
import { median } from '../statistics.ts';
import { fitRoundCost, type MeasuredRound } from './cost-model.ts';
import { GroupsInMemory, WINDOW_ROUNDS } from './groups-in-memory.ts';

const GROUPS = [1, 4, 16, 64];
const REQUESTS_PER_GROUP = [1, 8, 64];
const USERS = 1_024;
const REPEATS = 5;
const FAR = Number.MAX_SAFE_INTEGER;

interface MicroOptions {
  readonly nodes: 1 | 3;
  readonly cellMillis: number;
}

/** Processor time of one call in microseconds, all threads together. It repeats the call until `millis` are used. */
function microsPerCall(call: () => void, millis: number): number {
  const perCall: number[] = [];
  for (let repeat = 0; repeat < REPEATS; repeat += 1) {
    const before = process.cpuUsage();
    let calls = 0;
    let used = 0;
    do {
      call();
      calls += 1;
      const { user, system } = process.cpuUsage(before);
      used = user + system;
    } while (used < (millis * 1_000) / REPEATS);
    perCall.push(used / calls);
  }
  return median(perCall);
}

/** Counts answers and checks them: unexpected answers make the numbers worthless. */
class Answers {
  #isAllowed: boolean;
  #unexpected = 0;
  #count = 0;

  constructor(isAllowed: boolean) {
    this.#isAllowed = isAllowed;
  }

  readonly done = (answer: Answer): void => {
    this.#count += 1;
    if (answer.kind !== 'decision' || answer.decision.allowed !== this.#isAllowed) this.#unexpected += 1;
  };

  check(asked: number): void {
    if (this.#unexpected > 0 || this.#count !== asked)
      throw new Error(`${asked} requests, ${this.#count} answers, ${this.#unexpected} of them unexpected`);
  }
}

function requestsOf(ruleId: string): AllowRequest[] {
  return Array.from({ length: USERS }, (_, user) => ({ userId: `user-${user}`, ruleId }));
}

function measureRounds({ nodes, cellMillis }: MicroOptions, groups: number, perGroup: number): MeasuredRound {
  const cluster = GroupsInMemory.start({ nodes, groups });
  const requests = requestsOf('open');
  const answers = new Answers(true);
  let asked = 0;
  const round = (): void => {
    for (const partition of cluster.partitions)
      for (let i = 0; i < perGroup; i += 1) {
        const request = requests[(asked + i * 7) % USERS];
        if (request !== undefined) partition.decide(request, FAR, answers.done);
      }
    asked += groups * perGroup;
    cluster.round();
  };
  for (let i = 0; i < WINDOW_ROUNDS; i += 1) round();
  microsPerCall(round, cellMillis / 2);
  const micros = microsPerCall(round, cellMillis);
  answers.check(asked);
  return { groups, requestsPerGroup: perGroup, micros };
}

/** Measures a denial that the leader decides from its own state, without a log entry. */
function measureDenial({ nodes, cellMillis }: MicroOptions): number {
  const cluster = GroupsInMemory.start({ nodes, groups: 1 });
  const requests = requestsOf('spent');
  const [partition] = cluster.partitions;
  for (const request of requests) partition?.decide(request, FAR, () => undefined);
  cluster.round();
  const answers = new Answers(false);
  const deny = (): void => {
    for (const request of requests) partition?.decide(request, FAR, answers.done);
  };
  let calls = 0;
  const counted = (): void => {
    deny();
    calls += 1;
  };
  microsPerCall(counted, cellMillis / 2);
  const micros = microsPerCall(counted, cellMillis) / USERS;
  answers.check(calls * USERS);
  return micros;
}

/** Measures the cost of counting an answer in the usage figures. */
function measureCounting({ cellMillis }: MicroOptions, users: number): number {
  const usage = new ListenerUsage({ monotonicMillis: () => performance.now(), wallMillis: () => Date.now() });
  const requests = Array.from({ length: users }, (_, user) => questionOf({ userId: `user-${user}` }));
  const decision: Decision = {
    allowed: true,
    ruleId: 'open',
    limit: 1,
    windowMillis: 1_000,
    remaining: 0,
    retryAfterMillis: 0,
    resetMillis: 0,
    decided: { term: 1, index: 1, position: 0, timeMillis: 0 },
    rulesVersion: 1,
  };
  const answer = { kind: 'decision', decision } as const;
  const startedMillis = performance.now();
  const count = (): void => {
    for (const request of requests) usage.answered(request, answer, startedMillis);
  };
  microsPerCall(count, cellMillis / 2);
  return microsPerCall(count, cellMillis) / users;
}

/** Measures the cost of idle groups: timers, and heartbeats if there are other nodes. */
function measureIdleTick({ nodes, cellMillis }: MicroOptions, groups: number): number {
  const cluster = GroupsInMemory.start({ nodes, groups });
  const tick = (): void => cluster.tick();
  microsPerCall(tick, cellMillis / 2);
  return microsPerCall(tick, cellMillis) / groups;
}

function column(value: number | string): string {
  return (typeof value === 'number' ? value.toFixed(2) : value).padStart(12);
}

function main(options: MicroOptions): void {
  const { nodes } = options;
  console.log(`microseconds of processor time, ${nodes === 1 ? 'one node' : 'three nodes together'}\n`);
  console.log(['groups', 'requests', 'round', 'per group', 'per request'].map(column).join(''));
  // Warms up the compiler: unoptimised code costs many times as much.
  measureRounds(options, 16, 8);
  measureRounds(options, 1, 1);
  const rounds: MeasuredRound[] = [];
  for (const groups of GROUPS)
    for (const perGroup of REQUESTS_PER_GROUP) {
      const round = measureRounds(options, groups, perGroup);
      rounds.push(round);
      const { micros } = round;
      const cells = [micros, micros / groups, micros / groups / perGroup];
      console.log([String(groups), String(perGroup), ...cells].map(column).join(''));
    }
  const { perRoundMicros, perGroupMicros, perRequestMicros } = fitRoundCost(rounds);
  console.log(`\nfitted: a round ${perRoundMicros.toFixed(1)}, each group in it ${perGroupMicros.toFixed(1)}, \
each request ${perRequestMicros.toFixed(2)}`);
  console.log(`a denial at once ${measureDenial(options).toFixed(2)}`);
  const [few, many] = [USERS / 2, 200 * USERS].map((users) => measureCounting(options, users).toFixed(2));
  console.log(`counting an answer: ${few} of ${USERS / 2} users, ${many} of ${200 * USERS} in turn`);
  console.log(`a tick (10 ms) of an idle group, of 64: ${measureIdleTick(options, 64).toFixed(2)}`);
}

const program = new Command('npm run bench:micro --')
  .description('Measure the processor time of requests, groups and rounds in one process.')
  .option('--nodes <n>', '1, or 3 with everything that travels between them', integerFrom(1, 3), 1)
  .option('--cell-millis <n>', 'processor time per measured cell', integerFrom(10, 60_000), 200)
  .action((options: { readonly nodes: number; readonly cellMillis: number }) => {
    if (options.nodes === 2) throw new Error('--nodes must be 1 or 3');
    main({ ...options, nodes: options.nodes === 1 ? 1 : 3 });
  });

program.parseAsync().catch((error: unknown) => {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
});
