/**
 * Checks answers to clients against the committed log. A grant is in the log and answers no other request. A denial
 * follows from the log, in group time and in real time. Every answer contains all that was decided.
 */
import type { PeekRequest, KeyStatus } from '../../src/api/peek.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { GroupId } from '../../raft/types.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import type { CustomerLedger } from './customer-ledger.ts';
import {
  costSince,
  countsAt,
  type GroupLedger,
  grantsOf,
  type Receipt,
  realCostSince,
  receiptOf,
  ruleOf,
} from './group-ledger.ts';
import { type Asked, askedBy, identityOf, limitsOf, wordsOf } from './id-ledger.ts';
import { reportingLimit } from './naive-joint.ts';
import { sayingOf, wordsOfStatus } from './naive-judgement.ts';
import { groupWindowMillis } from './naive-keys.ts';
import { reportedAt } from './naive-record.ts';
import { axisOf } from './naive-utc.ts';
import { check } from './story.ts';

export interface AnswerCheckerInit {
  /** The intended tables, regardless of what a node made of them. */
  readonly tables: readonly RuleTable[];
  /** How much group time may lag since then; undefined if unknown. */
  readonly lagMax?: (group: GroupId, sinceMillis: number) => number | undefined;
  /** Real time. */
  readonly now?: () => number;
}

export interface Answered {
  readonly committedIndex: number;
  /** When this request id was first asked, and when the attempt that got the answer was made. */
  readonly invokedMillis?: number;
  readonly attemptMillis?: number;
}

export class AnswerChecker {
  readonly #init: AnswerCheckerInit;
  readonly #customers: CustomerLedger;

  constructor(init: AnswerCheckerInit, customers: CustomerLedger) {
    this.#init = init;
    this.#customers = customers;
  }

  /** A client got a decision from a node. */
  answered(group: GroupLedger, request: AllowRequest, decision: Decision, when: Answered): void {
    const { committedIndex, invokedMillis, attemptMillis } = when;
    const { index } = decision.decided;
    check(
      index <= committedIndex,
      () =>
        `${request.userId} got an answer from entry ${index} of group ${group.id}, which is not committed`,
    );
    const asked = askedBy(request);
    // A deposed leader may deny at once by an earlier state.
    if (decision.decided.position !== undefined && invokedMillis !== undefined) {
      const where = `${wordsOf(asked)} at entry ${index} of group ${group.id}`;
      for (const { userId } of limitsOf(asked))
        this.#customers.binds(userId, decision.decided, invokedMillis, where);
    }
    if (decision.isBlocked === true) this.#checkBlocked(group, asked, decision);
    else if (decision.allowed) {
      const granted = this.#checkGrant(group, asked, decision);
      if (attemptMillis !== undefined) this.#checkRemembered(group, asked, granted, attemptMillis);
    } else {
      const denied = this.#checkDenial(group, asked, decision);
      if (invokedMillis !== undefined) this.#checkInRealTime(group, denied, decision, invokedMillis);
    }
  }

  /** A client got the status of a user. */
  peeked(
    group: GroupLedger,
    { userId, ruleId, cost = 1, timestampMillis }: PeekRequest,
    keyStatus: KeyStatus,
    committedIndex: number,
  ): void {
    const { limits, decided, rulesVersion } = keyStatus;
    const { machine, id } = group;
    const where = `in group ${id}, by entry ${decided.index}`;
    check(decided.index <= committedIndex, () => `a peek shows an entry that is not committed, ${where}`);
    const rules =
      ruleId === undefined ? machine.past.tableAt(decided.index)?.rules.map((rule) => rule.id) : [ruleId];
    const expected = rules?.map((rule) =>
      machine.past.statusAt(decided, { userId, rule, cost, timestampMillis }),
    );
    const inForce = machine.past.tableAt(decided.index)?.version;
    check(
      rulesVersion === inForce,
      () => `a peek uses rules ${rulesVersion}, but ${inForce} are in force, ${where}`,
    );
    const block = reportedAt(machine.past.records.at(userId, decided.index), decided.timeMillis);
    check(
      (keyStatus.isBlocked ?? false) === block.isBlocked &&
        keyStatus.blockedUntilMillis === block.blockedUntilMillis,
      () => `the answer is wrong about a block of ${userId}, ${where}`,
    );
    const words = JSON.stringify(limits.map(wordsOfStatus));
    const expectedWords = JSON.stringify(expected?.map((limit) => limit && wordsOfStatus(limit)));
    check(
      words === expectedWords,
      () => `the limits of ${userId} are ${expectedWords}, not ${words}, ${where}`,
    );
  }

  #checkGrant(group: GroupLedger, asked: Asked, decision: Decision): Receipt {
    const receipt = receiptOf(decision);
    const granted = group.receipts.get(receipt);
    check(
      granted?.identity === identityOf(asked),
      () => `the log of group ${group.id} has no such grant: ${wordsOf(asked)} at ${receipt}`,
    );
    check(
      granted.hasId || !granted.isReported,
      () => `the grant at ${receipt} of group ${group.id} answered two requests: ${wordsOf(asked)}`,
    );
    granted.isReported = true;
    reportedLimit(this.#checkLogged(group, asked, decision), decision);
    return granted;
  }

  /**
   * A request that comes after its id was forgotten does not get the old grant, unless it came while the first attempt
   * was in flight and waited with it.
   */
  #checkRemembered(group: GroupLedger, asked: Asked, granted: Receipt, attemptMillis: number): void {
    const { stampedMillis, committedMillis, horizonMillis } = granted;
    if (committedMillis !== undefined && attemptMillis <= committedMillis) return;
    const lag = this.#init.lagMax?.(group.id, attemptMillis - horizonMillis) ?? Infinity;
    const since = attemptMillis - horizonMillis - lag;
    if (stampedMillis === undefined || this.#init.lagMax?.(group.id, since) === undefined) return;
    check(
      stampedMillis >= since,
      () =>
        `${wordsOf(asked)} got a grant of group ${group.id} that was ${attemptMillis - stampedMillis} ms old when it was asked, ` +
        `remembered for ${horizonMillis} + ${lag} ms`,
    );
  }

  /** An answer that denies because of a block contains nothing else, and the key is blocked there. */
  #checkBlocked(group: GroupLedger, asked: Asked, decision: Decision): void {
    const { decided } = decision;
    if (decided.position !== undefined) this.#checkLogged(group, asked, decision);
    else {
      const expected = group.machine.denialAt(decided, asked, decided.timeMillis);
      const saying = sayingOf(decision);
      check(
        expected !== undefined && sayingOf(expected) === saying,
        () => `${wordsOf(asked)} got ${saying} in group ${group.id}, must be ${JSON.stringify(expected)}`,
      );
    }
    if (asked.timestampMillis === undefined) group.ids.denied(asked, decision);
  }

  /**
   * In group time a denial must follow from the log up to where it was read. Returns the limit that the answer reports.
   */
  #checkDenial(group: GroupLedger, request: Asked, decision: Decision): Asked {
    const { ruleId, decided } = decision;
    const rule = ruleOf(group, ruleId);
    const isLogged = decided.position !== undefined;
    const denied = reportedLimit(isLogged ? this.#checkLogged(group, request, decision) : request, decision);
    if (!isLogged) this.#checkQuickDenial(group, request, denied, decision);
    // Callers' timestamps say nothing about the horizon.
    if (request.timestampMillis === undefined) group.ids.denied(request, decision);
    // Other meters have no single window to check. The naive limiter checks their decisions.
    if (!group.machine.past.isPlainLog(ruleId)) return denied;
    const { userId, cost } = denied;
    // Users of both kinds are held back to their own timestamps.
    if (userId.startsWith('mixed') || userId.startsWith('event')) return denied;
    if (group.machine.past.isNewAt(decided.index, denied, decided.timeMillis)) return denied;
    const window = groupWindowMillis(decision.windowMillis, this.#init.tables[0]?.clockDriftPpm ?? 0);
    const grants = grantsOf(group, ruleId, userId);
    const live = costSince(grants, decided.timeMillis - window, decided.index);
    check(
      live + cost > decision.limit,
      () =>
        `wrong denial: ${live} of ${decision.limit} in ${window} ms for ${userId}, rule ${rule.id}, ` +
        `entry ${decided.index} of group ${group.id}`,
    );
    return denied;
  }

  /** A denial is justified in real time too: group time may neither stand still nor fall back. */
  #checkInRealTime(
    group: GroupLedger,
    { userId, cost, timestampMillis }: Asked,
    decision: Decision,
    invokedMillis: number,
  ): void {
    if (!userId.startsWith('user') || timestampMillis !== undefined) return;
    if (!group.machine.past.isPlainLog(decision.ruleId)) return;
    const { ruleId, limit, windowMillis } = decision;
    const window = groupWindowMillis(windowMillis, this.#init.tables[0]?.clockDriftPpm ?? 0);
    // Longer than necessary, since the lag may grow a little during the lag itself.
    const lag = this.#init.lagMax?.(group.id, invokedMillis - window) ?? Infinity;
    const since = invokedMillis - window - lag;
    if (this.#init.lagMax?.(group.id, since) === undefined) return;
    const grants = grantsOf(group, ruleId, userId).filter(
      (grant) => grant.index <= decision.decided.index && countsAt(grant, decision.decided.index),
    );
    const live = realCostSince(grants, since);
    check(
      live + cost > limit,
      () =>
        `denied out of time: ${live} of ${limit} in ${window} + ${lag} ms of real time for ${userId}, ` +
        `rule ${ruleId}, entry ${decision.decided.index} of group ${group.id}`,
    );
  }

  /**
   * An answer from the log contains all that the log decided, and answers only this request, however often it is
   * repeated. Returns the logged request: it is the same, although another attempt of it may have other limits.
   */
  #checkLogged(group: GroupLedger, asked: Asked, decision: Decision): Asked {
    const { index, position = '' } = decision.decided;
    const logged = group.requests.get(`${index}/${position}`);
    const words = wordsOf(asked);
    check(
      logged?.identity === identityOf(asked),
      () => `${words} got the answer of ${logged?.identity} in group ${group.id}`,
    );
    const saying = sayingOf(decision);
    check(
      logged.saying === saying,
      () => `${words} must get ${logged.saying} in group ${group.id}, but got ${saying}`,
    );
    return logged.asked;
  }

  /** A leader that denies without the log must deny by the state it read. */
  #checkQuickDenial(group: GroupLedger, asked: Asked, denied: Asked, decision: Decision): void {
    const { machine } = group;
    const { decided, ruleId, resetMillis } = decision;
    const rule = ruleOf(group, ruleId);
    const isEvent = asked.timestampMillis !== undefined && rule.clock === 'request';
    // A request in group time that is held back to its user's timestamps gets its wait counted from when it asked.
    const groupMillis = decided.timeMillis - axisOf(rule, machine.past.stepsAt(decided.index));
    const emptyMillis = machine.past.emptyMillisAt(decided.index, denied, groupMillis);
    const sinceMillis = Math.max(0, resetMillis - emptyMillis);
    const nowMillis = groupMillis - sinceMillis;
    const expected = machine.denialAt(decided, asked, isEvent ? Infinity : nowMillis);
    const saying = sayingOf(decision);
    check(
      expected !== undefined && sayingOf(expected) === saying,
      () =>
        `${wordsOf(asked)} got ${saying} in group ${group.id}, must be ${JSON.stringify(expected)} at ${nowMillis}`,
    );
  }
}

/** The limit that the answer must report. A request under several limits lists all of them, other requests none. */
function reportedLimit(asked: Asked, decision: Decision): Asked {
  const all = limitsOf(asked);
  const { allowed, limits = [decision] } = decision;
  const isListed = (decision.limits !== undefined) === all.length > 1 && limits.length === all.length;
  check(isListed, () => `${wordsOf(asked)} is answered with other limits: ${JSON.stringify(decision)}`);
  // A settled request is never denied, so its wait does not matter.
  const at = reportingLimit(
    allowed,
    limits.map((limit, i) =>
      all[i]!.isSettled === true && !allowed ? { ...limit, limit: 1, retryAfterMillis: -1 } : limit,
    ),
  );
  check(
    wordsOfStatus(limits[at]!) === wordsOfStatus(decision),
    () => `${wordsOf(asked)} is not answered by its limit ${at}: ${JSON.stringify(decision)}`,
  );
  return all[at]!;
}
