/**
 * Generates histories from a seed: clients of a simulated limiter that is right, or wrong in one chosen way. The
 * generator knows the true outcome of every request, so it can also produce what the logs would show. Uses no code of
 * the checkers except the sequential model.
 */
import type { Fate } from './checkers/fates.ts';
import { type Operation, operationOf, type Question } from './history.ts';
import type { NemesisBand } from './nemesis-log.ts';
import { type Bug, type Decision, Leader, type Rule } from './random-leaders.ts';
import { Truth } from './random-truth.ts';
import { Timeline } from './timeline.ts';

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
  /** The fates that the log would show for the operations that ended as `info`. */
  readonly fates: ReadonlyMap<Operation, Fate>;
  /** The number of answers that a limiter without the bug would not have given. */
  readonly wrongAnswers: number;
}

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
  /** The client no longer waits for the answer. */
  isAbandoned: boolean;
}

class Simulation {
  readonly #options: RandomHistoryOptions;
  readonly #time: Timeline;
  readonly #truth = new Truth();
  readonly #operations: Operation[] = [];
  readonly #bands: NemesisBand[] = [];
  readonly #users: User[] = [];
  readonly #groups: Group[] = [];
  #started = 0;
  #nextProcess = 0;

  constructor(options: RandomHistoryOptions) {
    this.#options = options;
    this.#time = new Timeline(options.seed);
    const { random } = this.#time;
    const groups = 1 + random(2);
    for (let id = 0; id < groups; id += 1) {
      const leader = new Leader({
        term: 1,
        index: 1 + random(5),
        lagMillis: random(50),
        newestMillis: 0,
        bug: options.bug,
      });
      this.#groups.push({ id, leader, downUntilMillis: 0, stale: undefined, waiting: [] });
    }
    const users = 1 + random(3);
    for (let i = 0; i < users; i += 1) {
      const rule = {
        id: `rule-${i}`,
        limit: 1 + random(6),
        windowMillis: 20 + random(60),
        // Callers' timestamps matter to few of the bugs, so only correct histories have them.
        isEventTime: options.bug === undefined && random(6) === 0,
      };
      const group = this.#groups[random(groups)] ?? this.#group(0);
      this.#users.push({ id: `user-${i}`, rule, group });
    }
  }

  run(): RandomHistory {
    const processes = 3 + this.#time.random(6);
    for (let i = 0; i < processes; i += 1)
      this.#time.later(this.#time.millisBelow(5), () => this.#ask(this.#process()));
    if (!this.#options.isHealthy) {
      for (const group of this.#groups)
        this.#time.later(40 + this.#time.millisBelow(150), () => this.#failOver(group));
    }
    this.#time.run();
    return {
      operations: this.#operations,
      bands: this.#bands,
      fates: this.#truth.fatesOf(this.#operations),
      wrongAnswers: this.#truth.wrongAnswers,
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

  /** One attempt of a client, for a new request or a repeated one. */
  #ask(process: number, repeated?: Request): void {
    if (this.#started >= this.#options.operations) return;
    this.#started += 1;
    const user = repeated?.user ?? this.#users[this.#time.random(this.#users.length)];
    if (user === undefined) return;
    const { group, rule } = user;
    const isStale =
      group.stale !== undefined && this.#time.nowMillis < group.stale.untilMillis && this.#time.chance(50);
    const leader = isStale ? 'stale' : 'current';
    const groupMillis = group.leader.groupMillis(this.#time.nowMillis);
    const first = repeated?.question;
    const question: Question = {
      process,
      user: user.id,
      rule: rule.id,
      node: 1 + this.#time.random(3),
      invokeNanos: this.#time.nowNanos,
      limit: rule.limit,
      windowMillis: rule.windowMillis,
      cost: first?.cost ?? (this.#time.chance(85) ? 1 : 1 + this.#time.random(rule.limit)),
      timestampMillis: rule.isEventTime
        ? (first?.timestampMillis ?? groupMillis - this.#time.random(4))
        : null,
      requestId: first?.requestId ?? `r${this.#started}`,
    };
    const request: Request = { user, question, leader, isAbandoned: false };
    if (this.#time.nowMillis < group.downUntilMillis && this.#time.chance(40)) {
      this.#refuse(request);
      return;
    }
    const wait = Math.max(0, group.downUntilMillis - this.#time.nowMillis);
    const isLost = !this.#options.isHealthy && this.#time.chance(this.#options.bug === undefined ? 6 : 1);
    if (isLost) {
      // The request may arrive, also late, but its answer never does.
      if (this.#time.chance(50))
        this.#time.later(wait + this.#time.millisBelow(100), () => this.#arrive(request));
      this.#giveUp(request);
      return;
    }
    this.#time.later(wait + 0.1 + this.#time.millisBelow(2), () => this.#arrive(request));
  }

  #refuse(request: Request): void {
    const isConnected = this.#time.chance(50);
    this.#time.later(0.1 + this.#time.millisBelow(3), () => {
      this.#complete(
        request,
        isConnected
          ? { kind: 'answer', status: 503, body: { reason: 'no_leader', proposed: false } }
          : { kind: 'broken', code: 'ECONNREFUSED', sent: false },
      );
      this.#time.later(this.#time.millisBelow(10), () => this.#ask(request.question.process));
    });
  }

  /** The client stops waiting. Its process is never used again; another process may repeat the request. */
  #giveUp(request: Request): void {
    request.isAbandoned = true;
    this.#time.later(CLIENT_TIMEOUT_MILLIS, () => {
      this.#complete(request, { kind: 'broken', code: 'ETIMEDOUT', sent: true });
      const isRepeated = this.#time.chance(70);
      this.#time.later(this.#time.millisBelow(5), () =>
        this.#ask(this.#process(), isRepeated ? request : undefined),
      );
    });
  }

  #leaderFor(request: Request): Leader {
    const { group } = request.user;
    return request.leader === 'stale' && group.stale !== undefined ? group.stale.leader : group.leader;
  }

  #arrive(request: Request): void {
    const { group } = request.user;
    if (this.#time.nowMillis < group.downUntilMillis) {
      this.#time.later(group.downUntilMillis - this.#time.nowMillis + this.#time.millisBelow(3), () =>
        this.#arrive(request),
      );
      return;
    }
    const leader = this.#leaderFor(request);
    const known = leader.stateOf(request.user).answers.get(request.question.requestId ?? '');
    if (known === undefined) {
      const t = leader.timeOf(request.user, request.question.timestampMillis, this.#time.nowMillis);
      const { model } = leader.stateOf(request.user);
      // Denied at once, from the applied state.
      if (model.liveAtLeast(t) + request.question.cost > model.limit) {
        const remaining = Math.max(0, model.limit - model.liveAtLeast(t));
        const { index, term } = leader;
        const denial = { allowed: false, remaining, t, index, position: undefined, term };
        this.#truth.judge(request, denial);
        this.#answer(request, denial);
        return;
      }
    }
    group.waiting.push(request);
    if (group.waiting.length === 1)
      this.#time.later(0.5 + this.#time.millisBelow(3), () => this.#commit(group));
  }

  /** All waiting requests become one entry. */
  #commit(group: Group): void {
    const requests = group.waiting;
    group.waiting = [];
    for (const kind of ['current', 'stale'] as const) {
      const batch = requests.filter(({ leader }) => leader === kind);
      const first = batch[0];
      if (first === undefined) continue;
      const leader = this.#leaderFor(first);
      leader.index += 1 + (this.#time.chance(20) ? 1 : 0);
      leader.newestMillis = leader.groupMillis(this.#time.nowMillis);
      const isAtOnePlace = this.#options.bug === 'onePlace';
      for (const [i, request] of batch.entries()) this.#decide(leader, request, isAtOnePlace ? 0 : i);
      if (isAtOnePlace && batch.length > 1) this.#truth.wrongAnswers += 1;
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
    if (known !== undefined) this.#truth.blame(request);
    const t = leader.timeOf(request.user, request.question.timestampMillis, this.#time.nowMillis);
    const { allowed, remaining } = state.model.ask(t, question.cost);
    const { index, term } = leader;
    const decision = { allowed, remaining, t, index, position, term };
    this.#truth.judge(request, decision);
    // The decision is right for its moment, but it was made by a former leader, or at a time that has not come yet.
    const isOutOfPlace = request.leader === 'stale' || (bug === 'clockAhead' && term > 1);
    if (allowed && isOutOfPlace) this.#truth.blame(request);
    if (allowed) {
      state.grants.push({ index, t, cost: question.cost });
      state.answers.set(id, decision);
      this.#truth.granted(request, decision);
      if (bug === 'duplicateApply' && this.#time.chance(20)) state.model.record(t, question.cost);
    }
    this.#answer(request, decision);
  }

  #answer(request: Request, { allowed, remaining, t, index, position, term }: Decision): void {
    if (request.isAbandoned) return;
    const status = allowed ? 200 : 429;
    const decided = { partition: request.user.group.id, term, index, position, timeMillis: t };
    this.#time.later(0.1 + this.#time.millisBelow(3), () => {
      if (request.isAbandoned) return;
      this.#complete(request, { kind: 'answer', status, body: { allowed, remaining, decided } });
      // Some clients repeat even answered requests.
      const isRepeated = this.#time.chance(4);
      this.#time.later(this.#time.millisBelow(6), () =>
        this.#ask(request.question.process, isRepeated ? request : undefined),
      );
    });
  }

  #complete(request: Request, outcome: Parameters<typeof operationOf>[2]): void {
    this.#operations.push(operationOf(request.question, this.#time.nowNanos, outcome));
  }

  #failOver(group: Group): void {
    if (this.#started >= this.#options.operations) return;
    const { bug } = this.#options;
    const old = group.leader;
    const downMillis = 5 + this.#time.millisBelow(30);
    const until = this.#time.nowMillis + downMillis;
    const band = { kind: 'kill', nodes: [1 + this.#time.random(3)], startNanos: this.#time.nowNanos };
    this.#bands.push({ ...band, endNanos: this.#time.nanosAt(until) });
    group.downUntilMillis = until;
    // Requests that waited for the old leader are lost, or wait for the new one.
    for (const request of group.waiting.splice(0)) {
      if (this.#time.chance(50)) this.#giveUp(request);
      if (this.#time.chance(70))
        this.#time.later(downMillis + this.#time.millisBelow(20), () => this.#arrive(request));
      else if (!request.isAbandoned) this.#giveUp(request);
    }
    const next = new Leader({
      term: old.term + 1 + this.#time.random(2),
      index: old.index + 1,
      lagMillis: old.lagMillis + this.#time.millisBelow(15),
      newestMillis: old.newestMillis,
      bug,
    });
    const isLosing = bug === 'lostGrants' || bug === 'lostGrantsReusedIndexes';
    const through = isLosing ? old.index - 4 - this.#time.random(6) : Infinity;
    next.learnFrom(old, through);
    if (bug === 'lostGrantsReusedIndexes') next.index = through + 1;
    if (bug === 'clockAhead') next.lagMillis -= 80 + this.#time.millisBelow(100);
    if (bug === 'staleAllow') group.stale = { leader: old, untilMillis: until + 60 };
    group.leader = next;
    this.#time.later(downMillis + 40 + this.#time.millisBelow(150), () => this.#failOver(group));
  }
}

export function randomHistory(options: RandomHistoryOptions): RandomHistory {
  return new Simulation(options).run();
}
