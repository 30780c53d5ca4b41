/**
 * Histories from a seed: clients of a simulated limiter that is right, or wrong in one chosen way. It knows what
 * happened behind the clients' backs, so it can also tell what a log would tell. Shares no code with the checkers
 * but the sequential model.
 */
import type { RandomBelow } from '../../raft/core-state.ts';
import { seeded } from '../raft/seeded.ts';
import type { Fate, Placement } from './checkers/fates.ts';
import { type Operation, operationOf, type Question } from './history.ts';
import { UserModel } from './model.ts';
import type { NemesisBand } from './nemesis-log.ts';
import { type Bug, type Decision, Leader, type Rule, windowOf } from './random-leaders.ts';

export interface RandomHistoryOptions {
  readonly seed: number;
  readonly operations: number;
  /** No leader changes, and every answer arrives. */
  readonly isHealthy: boolean;
  readonly bug?: Bug;
}

export interface RandomHistory {
  readonly operations: readonly Operation[];
  readonly bands: readonly NemesisBand[];
  /** What the log would tell of the operations that ended as `info`. */
  readonly fates: ReadonlyMap<Operation, Fate>;
  /** Answers that a limiter without the bug would not have given. */
  readonly wrongAnswers: number;
}

const NANOS_PER_MILLI = 1e6;
const START_MILLIS = 5_000;
const CLIENT_TIMEOUT_MILLIS = 60;

interface User {
  readonly id: string;
  readonly rule: Rule;
  readonly group: Group;
}

interface Group {
  readonly id: number;
  leader: Leader;
  downUntilMillis: number;
  stale: { readonly leader: Leader; readonly untilMillis: number } | undefined;
  waiting: Request[];
}

interface Request {
  readonly user: User;
  readonly question: Question;
  readonly leader: 'current' | 'stale';
  /** Nobody waits for the answer any more. */
  isAbandoned: boolean;
}

export function randomHistory(options: RandomHistoryOptions): RandomHistory {
  return new Simulation(options).run();
}

class Simulation {
  readonly #options: RandomHistoryOptions;
  readonly #random: RandomBelow;
  readonly #operations: Operation[] = [];
  readonly #bands: NemesisBand[] = [];
  readonly #users: User[] = [];
  readonly #groups: Group[] = [];
  /** What was really granted, by a limiter without the bug's effect on decisions. */
  readonly #truth = new Map<User, UserModel>();
  /** Where a request took effect, by its id. */
  readonly #granted = new Map<string, Placement>();
  #queue: { readonly at: number; readonly run: () => void }[] = [];
  #now = START_MILLIS;
  #started = 0;
  #nextProcess = 0;
  #wrongAnswers = 0;

  constructor(options: RandomHistoryOptions) {
    this.#options = options;
    this.#random = seeded(options.seed);
    const groups = 1 + this.#random(2);
    for (let id = 0; id < groups; id += 1) {
      const leader = new Leader({
        term: 1,
        index: 1 + this.#random(5),
        lagMillis: this.#random(50),
        newestMillis: 0,
        bug: options.bug,
      });
      this.#groups.push({ id, leader, downUntilMillis: 0, stale: undefined, waiting: [] });
    }
    const users = 1 + this.#random(3);
    for (let i = 0; i < users; i += 1) {
      const rule = {
        id: `rule-${i}`,
        limit: 1 + this.#random(6),
        windowMillis: 20 + this.#random(60),
        // Their own clocks have no part in most of the bugs.
        isEventTime: options.bug === undefined && this.#random(6) === 0,
      };
      const group = this.#groups[this.#random(groups)] ?? this.#group(0);
      const user = { id: `user-${i}`, rule, group };
      this.#users.push(user);
      this.#truth.set(user, new UserModel(rule.limit, windowOf(rule)));
    }
  }

  run(): RandomHistory {
    const processes = 3 + this.#random(6);
    for (let i = 0; i < processes; i += 1) this.#later(this.#millis(5), () => this.#ask(this.#process()));
    if (!this.#options.isHealthy) {
      for (const group of this.#groups) this.#later(40 + this.#millis(150), () => this.#failOver(group));
    }
    for (;;) {
      this.#queue.sort((a, b) => a.at - b.at);
      const event = this.#queue.shift();
      if (event === undefined) break;
      this.#now = event.at;
      event.run();
    }
    const fates = new Map<Operation, Fate>();
    for (const op of this.#operations) {
      if (op.class !== 'info') continue;
      const at = this.#granted.get(op.requestId ?? '');
      fates.set(op, at === undefined ? { kind: 'uncharged' } : { kind: 'granted', at: [at] });
    }
    return {
      operations: this.#operations,
      bands: this.#bands,
      fates,
      wrongAnswers: this.#wrongAnswers,
    };
  }

  #group(id: number): Group {
    const group = this.#groups[id];
    if (group === undefined) throw new Error(`there is no group ${id}`);
    return group;
  }

  #process(): number {
    this.#nextProcess += 1;
    return this.#nextProcess;
  }

  #later(millis: number, run: () => void): void {
    this.#queue.push({ at: this.#now + millis, run });
  }

  /** A duration below `bound`, in steps of a microsecond. */
  #millis(bound: number): number {
    return this.#random(bound * 1_000) / 1_000;
  }

  #chance(percent: number): boolean {
    return this.#random(100) < percent;
  }

  /** One attempt of a client, a new request or a repeated one. */
  #ask(process: number, repeated?: Request): void {
    if (this.#started >= this.#options.operations) return;
    this.#started += 1;
    const user = repeated?.user ?? this.#users[this.#random(this.#users.length)];
    if (user === undefined) return;
    const { group, rule } = user;
    const isStale = group.stale !== undefined && this.#now < group.stale.untilMillis && this.#chance(50);
    const leader = isStale ? 'stale' : 'current';
    const groupMillis = group.leader.groupMillis(this.#now);
    const first = repeated?.question;
    const question: Question = {
      process,
      user: user.id,
      rule: rule.id,
      node: 1 + this.#random(3),
      invokeNanos: this.#nanos(),
      limit: rule.limit,
      windowMillis: rule.windowMillis,
      cost: first?.cost ?? (this.#chance(85) ? 1 : 1 + this.#random(rule.limit)),
      timestampMillis: rule.isEventTime ? (first?.timestampMillis ?? groupMillis - this.#random(4)) : null,
      requestId: first?.requestId ?? `r${this.#started}`,
    };
    const request: Request = { user, question, leader, isAbandoned: false };
    if (this.#now < group.downUntilMillis && this.#chance(40)) {
      this.#refuse(request);
      return;
    }
    const wait = Math.max(0, group.downUntilMillis - this.#now);
    const isLost = !this.#options.isHealthy && this.#chance(this.#options.bug === undefined ? 6 : 1);
    if (isLost) {
      // Perhaps it arrives, perhaps late, and its answer never does.
      if (this.#chance(50)) this.#later(wait + this.#millis(100), () => this.#arrive(request));
      this.#giveUp(request);
      return;
    }
    this.#later(wait + 0.1 + this.#millis(2), () => this.#arrive(request));
  }

  #refuse(request: Request): void {
    const isConnected = this.#chance(50);
    this.#later(0.1 + this.#millis(3), () => {
      this.#complete(
        request,
        isConnected
          ? { kind: 'answer', status: 503, body: { reason: 'no_leader', proposed: false } }
          : { kind: 'broken', code: 'ECONNREFUSED', sent: false },
      );
      this.#later(this.#millis(10), () => this.#ask(request.question.process));
    });
  }

  /** The client waits no longer; its process is never used again, another may repeat the request. */
  #giveUp(request: Request): void {
    request.isAbandoned = true;
    this.#later(CLIENT_TIMEOUT_MILLIS, () => {
      this.#complete(request, { kind: 'broken', code: 'ETIMEDOUT', sent: true });
      const isRepeated = this.#chance(70);
      this.#later(this.#millis(5), () => this.#ask(this.#process(), isRepeated ? request : undefined));
    });
  }

  #leaderFor(request: Request): Leader {
    const { group } = request.user;
    return request.leader === 'stale' && group.stale !== undefined ? group.stale.leader : group.leader;
  }

  #arrive(request: Request): void {
    const { group } = request.user;
    if (this.#now < group.downUntilMillis) {
      this.#later(group.downUntilMillis - this.#now + this.#millis(3), () => this.#arrive(request));
      return;
    }
    const leader = this.#leaderFor(request);
    const known = leader.stateOf(request.user).answers.get(request.question.requestId ?? '');
    if (known === undefined) {
      const t = leader.timeOf(request.user, request.question.timestampMillis, this.#now);
      const { model } = leader.stateOf(request.user);
      // Denied at once, from what is applied.
      if (model.liveAtLeast(t) + request.question.cost > model.limit) {
        const remaining = Math.max(0, model.limit - model.liveAtLeast(t));
        this.#judge(request, t, false, remaining);
        const { index, term } = leader;
        this.#answer(request, { allowed: false, remaining, t, index, position: undefined, term });
        return;
      }
    }
    group.waiting.push(request);
    if (group.waiting.length === 1) this.#later(0.5 + this.#millis(3), () => this.#commit(group));
  }

  /** Everything that waits becomes one entry. */
  #commit(group: Group): void {
    const requests = group.waiting;
    group.waiting = [];
    for (const kind of ['current', 'stale'] as const) {
      const batch = requests.filter(({ leader }) => leader === kind);
      const first = batch[0];
      if (first === undefined) continue;
      const leader = this.#leaderFor(first);
      leader.index += 1 + (this.#chance(20) ? 1 : 0);
      leader.newestMillis = leader.groupMillis(this.#now);
      const isAtOnePlace = this.#options.bug === 'onePlace';
      for (const [i, request] of batch.entries()) this.#decide(leader, request, isAtOnePlace ? 0 : i);
      if (isAtOnePlace && batch.length > 1) this.#wrongAnswers += 1;
    }
  }

  #decide(leader: Leader, request: Request, position: number): void {
    const { user, question } = request;
    const { bug } = this.#options;
    const state = leader.stateOf(user);
    const id = question.requestId ?? '';
    const known = state.answers.get(id);
    if (known !== undefined && bug !== 'retryCharged') {
      this.#answer(request, known);
      return;
    }
    if (known !== undefined) this.#wrongAnswers += request.isAbandoned ? 0 : 1;
    const t = leader.timeOf(request.user, request.question.timestampMillis, this.#now);
    const { allowed, remaining } = state.model.ask(t, question.cost);
    const { index, term } = leader;
    const decision = { allowed, remaining, t, index, position, term };
    this.#judge(request, t, allowed, remaining);
    // Right by the truth of the moment, and made where none may be made, or at a time that has not come.
    const isOutOfPlace = request.leader === 'stale' || (bug === 'clockAhead' && term > 1);
    if (allowed && isOutOfPlace && !request.isAbandoned) this.#wrongAnswers += 1;
    if (allowed) {
      state.grants.push({ index, t, cost: question.cost });
      state.answers.set(id, decision);
      if (!this.#granted.has(id))
        this.#granted.set(id, { group: user.group.id, index, position, timeMillis: t });
      this.#truth.get(user)?.record(t, question.cost);
      if (bug === 'duplicateApply' && this.#chance(20)) state.model.record(t, question.cost);
    }
    this.#answer(request, decision);
  }

  /** Would a limiter without the bug have answered the same? */
  #judge(request: Request, t: number, allowed: boolean, remaining: number): void {
    const truth = this.#truth.get(request.user);
    if (truth === undefined || request.isAbandoned) return;
    const live = truth.liveAtLeast(t);
    const { cost } = request.question;
    const right = live + cost <= truth.limit;
    const rightRemaining = Math.max(0, truth.limit - live - (right ? cost : 0));
    if (right !== allowed || rightRemaining !== remaining) this.#wrongAnswers += 1;
  }

  #answer(request: Request, { allowed, remaining, t, index, position, term }: Decision): void {
    if (request.isAbandoned) return;
    const status = allowed ? 200 : 429;
    const decided = { partition: request.user.group.id, term, index, position, timeMillis: t };
    this.#later(0.1 + this.#millis(3), () => {
      if (request.isAbandoned) return;
      this.#complete(request, { kind: 'answer', status, body: { allowed, remaining, decided } });
      // Some clients repeat even what was answered.
      const isRepeated = this.#chance(4);
      this.#later(this.#millis(6), () =>
        this.#ask(request.question.process, isRepeated ? request : undefined),
      );
    });
  }

  #complete(request: Request, outcome: Parameters<typeof operationOf>[2]): void {
    this.#operations.push(operationOf(request.question, this.#nanos(), outcome));
  }

  #failOver(group: Group): void {
    if (this.#started >= this.#options.operations) return;
    const { bug } = this.#options;
    const old = group.leader;
    const downMillis = 5 + this.#millis(30);
    const until = this.#now + downMillis;
    const band = { kind: 'kill', nodes: [1 + this.#random(3)], startNanos: this.#nanos() };
    this.#bands.push({ ...band, endNanos: Math.round(until * NANOS_PER_MILLI) });
    group.downUntilMillis = until;
    // What waited for the old leader got lost, or waits for the new one.
    for (const request of group.waiting.splice(0)) {
      if (this.#chance(50)) this.#giveUp(request);
      if (this.#chance(70)) this.#later(downMillis + this.#millis(20), () => this.#arrive(request));
      else if (!request.isAbandoned) this.#giveUp(request);
    }
    const next = new Leader({
      term: old.term + 1 + this.#random(2),
      index: old.index + 1,
      lagMillis: old.lagMillis + this.#millis(15),
      newestMillis: old.newestMillis,
      bug,
    });
    const isLosing = bug === 'lostGrants' || bug === 'lostGrantsReusedIndexes';
    const through = isLosing ? old.index - 4 - this.#random(6) : Infinity;
    next.learnFrom(old, through);
    if (bug === 'lostGrantsReusedIndexes') next.index = through + 1;
    if (bug === 'clockAhead') next.lagMillis -= 80 + this.#millis(100);
    if (bug === 'staleAllow') group.stale = { leader: old, untilMillis: until + 60 };
    group.leader = next;
    this.#later(downMillis + 40 + this.#millis(150), () => this.#failOver(group));
  }

  #nanos(): number {
    return Math.round(this.#now * NANOS_PER_MILLI);
  }
}
