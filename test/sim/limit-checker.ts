/**
 * The laws of the limiter, checked against the committed log: no window exceeds its limit in log time or in real time,
 * every answer matches the log, every denial has a reason, no request id is charged twice, and no request reported as
 * not proposed is in the log.
 */
import type { Entry, GroupId } from '../../raft/types.ts';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import type { PeekRequest, KeyStatus } from '../../src/api/peek.ts';
import type { Refund, RefundRequest } from '../../src/api/refund.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { CustomerRecord } from '../../src/api/customer-record.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import { CustomerLedger } from './customer-ledger.ts';
import { takeDecisions, reportDecision } from './decision-watch.ts';
import type { Committed, Outcome } from './group-history.ts';
import { type Asked, identityOf, wordsOf } from './id-ledger.ts';
import { rowsOf } from './logged-entries.ts';
import { sayingOf } from './naive-judgement.ts';
import { groupWindowMillis } from './naive-keys.ts';
import { ruleOfKey } from './naive-record.ts';
import type { GrantedLimit } from './naive-requests.ts';
import { forgottenAtGrowth } from './guarantees.ts';
import { check } from './story.ts';
import { type Answered, AnswerChecker, type AnswerCheckerInit } from './answer-checker.ts';
import { meterKindOf } from './naive-meters.ts';
import {
  changedBy,
  countsAt,
  type Grant,
  type GroupLedger,
  grantsOf,
  newLedger,
  receiptOf,
  ruleOf,
} from './group-ledger.ts';
import { checkWindow } from './window-law.ts';

interface Logged {
  readonly entry: Entry;
  /** The position in the entry: its first row. */
  readonly i: number;
  readonly asked: Asked;
  readonly decision: Decision;
  /** Under each limit, or nothing. */
  readonly charged: readonly GrantedLimit[];
  readonly stamp: Stamp | undefined;
}

/** When the leader stamped an entry. */
interface Stamp {
  readonly atMillis: number;
  /** The same moment by the leader's clock, if that was wrong and not found out yet. */
  readonly seemingMillis: number;
}

/** More than any grant of these clients adds to a state, under one limit. */
const REQUEST_STATE_BYTES_MAX = 512;

export interface LimitCheckerInit extends AnswerCheckerInit {
  /** Called with the decisions that every replica must make in entry `index`, and with its state after it. */
  readonly expectOutcome: (group: GroupId, index: number, outcome: Outcome) => void;
  /** A request is in the log, in an entry that its leader stamped at `stampedMillis`. */
  readonly logged?: (asked: Asked, stampedMillis: number, where: string) => void;
  /** The log charges a request by the rules of `version`, in an entry that its leader stamped at `stampedMillis`. */
  readonly charged?: (
    asked: Asked,
    charge: { stampedMillis: number; where: string; version: number },
  ) => void;
  /** The log refunds a request. */
  readonly tookBack?: (asked: Asked) => void;
}

export class LimitChecker {
  readonly #init: LimitCheckerInit;
  readonly #groups = new Map<GroupId, GroupLedger>();
  readonly #answers: AnswerChecker;
  /** Ids of requests that were reported as not proposed. */
  readonly #forbidden = new Set<string>();
  readonly #logged = new Set<string>();
  grants = 0;
  /** The operators' changes of keys. */
  readonly customers: CustomerLedger;

  constructor(init: LimitCheckerInit) {
    this.#init = init;
    this.customers = new CustomerLedger(init.now ?? (() => 0));
    this.#answers = new AnswerChecker(init, this.customers);
  }

  #group(id: GroupId): GroupLedger {
    const group = this.#groups.get(id) ?? newLedger(id);
    this.#groups.set(id, group);
    return group;
  }

  /** The version of the newest rules in the log. */
  versionOf(id: GroupId): number {
    return this.#group(id).table?.version ?? 0;
  }

  /** The index of the last command that some replica has applied. */
  lastIndexOf(id: GroupId): number {
    return this.#group(id).lastIndex;
  }

  /** The rules that were in force after entry `index`. */
  tableAt(id: GroupId, index: number): RuleTable | undefined {
    return this.#group(id).machine.past.tableAt(index);
  }

  /** The operators' record of this key after entry `index`. */
  recordAt(id: GroupId, index: number, userId: string): CustomerRecord {
    return this.#group(id).machine.past.records.at(userId, index);
  }

  /** After entry `index` something is remembered of this user under this rule. */
  isKnownAt(id: GroupId, index: number, asked: Asked): boolean {
    return this.#group(id).machine.past.isKnownAt(index, asked);
  }

  /** The digest of the state that follows from the committed log. */
  stateDigest(id: GroupId): number {
    return this.#group(id).machine.digest;
  }

  committed(id: GroupId, { entry, stampedAt, gainedMillis }: Committed): void {
    const group = this.#group(id);
    takeDecisions();
    const stamp =
      stampedAt === undefined ? undefined : { atMillis: stampedAt, seemingMillis: stampedAt + gainedMillis };
    if (entry.kind === 'command') this.#apply(group, entry, stamp);
    const { bytes, digest } = group.machine;
    this.#init.expectOutcome(id, entry.index, { decisions: takeDecisions(), size: bytes, digest });
  }

  #apply(group: GroupLedger, entry: Entry, stamp: Stamp | undefined): void {
    const command = decodeCommand(entry.data);
    const { machine } = group;
    const before = machine.bytes;
    group.lastIndex = entry.index;
    machine.apply(command, entry, {
      onDecided: (i, asked, { decision, charged }) => {
        reportDecision(i, decision);
        this.#decided(group, { entry, i, asked, decision, charged, stamp });
      },
      onSaid: (i, said, decision) => {
        reportDecision(i, decision);
        changedBy(group, said, decision, { index: entry.index, realMillis: stamp?.seemingMillis });
        this.customers.logged(group.id, entry.index, i, {
          ...said,
          decision,
          stampedMillis: stamp?.atMillis,
        });
      },
      onForgotten: (userId) => this.customers.forgotten(userId),
    });
    if (command.type === 'rules' && command.table.version > (group.table?.version ?? 0)) {
      this.#rulesChanged(
        group,
        this.#init.tables.find((table) => table.version === command.table.version),
        entry,
      );
      check(group.table !== undefined, () => `no operator made rule table ${command.table.version}`);
    }
    const cap = group.table?.partitionBytesMax ?? Infinity;
    const after = machine.bytes;
    const parts = command.type === 'customers' ? 2 : 1;
    check(
      after <= Math.max(before, cap + parts * Math.floor(cap / 8)),
      () =>
        `entry ${entry.index} of group ${group.id} makes the state ${after} bytes large, the cap is ${cap}`,
    );
  }

  /** With a longer window its beginning may be forgotten: see `SlidingLogs`. With another meter everything is. */
  #rulesChanged(
    group: GroupLedger,
    table: RuleTable | undefined,
    { index, timeMillis: nowMillis }: Entry,
  ): void {
    const before = group.table;
    group.table = table;
    for (const after of table?.rules ?? []) {
      const { id } = after;
      const rule = group.rules.get(id) ?? after;
      const { windowMillis } = rule;
      group.rules.set(id, after);
      group.changed.set(id, index);
      const isOther = meterKindOf(rule) !== meterKindOf(after);
      if (after.windowMillis <= windowMillis && !isOther) continue;
      const shorter = groupWindowMillis(windowMillis, before?.clockDriftPpm ?? 0);
      for (const [key, grants] of group.grants) {
        if (!key.startsWith(`${id}/`)) continue;
        const through = forgottenAtGrowth(grants, { windowMillis: isOther ? 0 : shorter, nowMillis });
        group.forgotten.set(key, Math.max(through, group.forgotten.get(key) ?? -Infinity));
      }
    }
  }

  #decided(group: GroupLedger, decided: Logged): void {
    const { entry, i, asked, decision, charged, stamp } = decided;
    const { requestId } = asked;
    if (asked.isRefund === true) {
      this.#refunded(group, entry, asked, decision);
      return;
    }
    if (asked.isRecall === true) {
      group.ids.logged(entry, i, asked, decision, group.table?.requestIdHorizonMillis ?? 0);
      return;
    }
    if (requestId !== undefined) {
      this.#logged.add(requestId);
      check(
        !this.#forbidden.has(requestId),
        () => `request ${requestId} was reported as not proposed, but is in entry ${entry.index}`,
      );
    }
    group.ids.logged(entry, i, asked, decision, group.table?.requestIdHorizonMillis ?? 0);
    if (decision.refusal === 'at_capacity') {
      const stateBytes = group.machine.bytes;
      const cap = group.table?.partitionBytesMax ?? Infinity;
      check(
        stateBytes + rowsOf(asked) * REQUEST_STATE_BYTES_MAX > cap,
        () => `refused at ${stateBytes} of ${cap} bytes: ${wordsOf(asked)}, group ${group.id}`,
      );
    }
    const { index, position } = decision.decided;
    // A repetition within the entry has the receipt of the first attempt, as the ledger of ids requires.
    const isEarlier = index === entry.index && position !== undefined && position < i;
    const identity = identityOf(asked);
    const isEqual = group.requests.get(`${index}/${position}`)?.identity === identity;
    if (requestId !== undefined && isEarlier && isEqual) return;
    this.#init.logged?.(asked, stamp?.atMillis ?? Infinity, `entry ${entry.index} of group ${group.id}`);
    if (index === entry.index)
      group.requests.set(`${index}/${position ?? ''}`, { identity, asked, saying: sayingOf(decision) });
    if (!decision.allowed || index !== entry.index) return;
    check(
      position !== undefined && position >= i && position < i + rowsOf(asked),
      () => `request ${i} of entry ${index}, group ${group.id}, has position ${position}`,
    );
    check(
      charged.length === rowsOf(asked),
      () => `${wordsOf(asked)} is granted under ${charged.length} limits, group ${group.id}`,
    );
    this.#granted(group, decided);
  }

  /** Under all limits of the request, or none. */
  #refunded(group: GroupLedger, entry: Entry, asked: Asked, decision: Decision): void {
    if (!group.ids.refunded(entry, asked, decision)) return;
    const receipt = receiptOf(decision);
    const grants = group.charged.get(receipt) ?? [];
    const reported = grants.find((each) => each.receipt === receipt);
    check(
      grants.every(({ refundedIndex }) => refundedIndex === undefined),
      () => `${wordsOf(asked)} refunds the grant ${receipt} twice`,
    );
    check(
      reported !== undefined && reported.cost === decision.refund?.cost,
      () => `${wordsOf(asked)} refunds another cost than was granted: ${JSON.stringify(decision)}`,
    );
    for (const grant of grants) grant.refundedIndex = entry.index;
    this.#init.tookBack?.(asked);
  }

  #granted(group: GroupLedger, { entry, asked, decision, charged, stamp }: Logged): void {
    const { index } = entry;
    const isTimed = asked.timestampMillis !== undefined;
    const grants = charged.map((limit): Grant => {
      const { ruleId, decided } = limit.decision;
      const isEvent = isTimed && ruleOf(group, ruleId).clock === 'request';
      const grant = {
        timeMillis: decided.timeMillis,
        madeMillis: entry.timeMillis,
        cost: limit.asked.cost,
        index: decided.index,
        realMillis: isEvent ? undefined : stamp?.seemingMillis,
        receipt: receiptOf(limit.decision),
      };
      grantsOf(group, ruleId, limit.asked.userId).push(grant);
      return grant;
    });
    group.charged.set(receiptOf(decision), grants);
    this.grants += 1;
    for (const [i, grant] of grants.entries()) {
      const { asked: limit, decision: own } = charged[i]!;
      const { userId } = limit;
      const rule = ruleOfKey(ruleOf(group, own.ruleId), group.machine.past.records.at(userId, index));
      const all = grantsOf(group, own.ruleId, userId).filter((one) => countsAt(one, Infinity));
      const where = `user ${userId}, rule ${own.ruleId}, entry ${index} of group ${group.id}`;
      const isEvent = isTimed && rule.clock === 'request';
      // A settled cost may exceed the limit. It counts for all later requests.
      if (limit.isSettled !== true) checkWindow(group, rule, { grants: all, grant, userId, isEvent, where });
    }
    this.#init.charged?.(asked, {
      stampedMillis: stamp?.atMillis ?? Infinity,
      where: `entry ${index} of group ${group.id}`,
      version: group.table?.version ?? 0,
    });
    for (const { receipt } of grants) this.#newReceipt(group, receipt, asked, stamp);
  }

  /** No other grant has its receipt. */
  #newReceipt(group: GroupLedger, receipt: string, asked: Asked, stamp: Stamp | undefined): void {
    check(!group.receipts.has(receipt), () => `two grants of group ${group.id} have the receipt ${receipt}`);
    group.receipts.set(receipt, {
      identity: identityOf(asked),
      isReported: false,
      hasId: asked.requestId !== undefined,
      stampedMillis: stamp?.atMillis,
      committedMillis: this.#init.now?.(),
      horizonMillis: group.table?.requestIdHorizonMillis ?? 0,
    });
  }

  /** A client got a decision from a node. */
  answered(id: GroupId, request: AllowRequest, decision: Decision, when: Answered): void {
    this.#answers.answered(this.#group(id), request, decision, when);
  }

  /** A client got the answer to a refund. */
  refunded(id: GroupId, request: RefundRequest, refund: Refund, committedIndex: number): void {
    const words = `${JSON.stringify(request)}: ${JSON.stringify(refund)}, group ${id}`;
    check(refund.decided.index <= committedIndex, () => `refunded in no committed entry: ${words}`);
    if (!refund.refunded) return;
    const receipt = receiptOf({ decided: refund.decided, ruleId: refund.ruleId });
    const grants = this.#group(id).charged.get(receipt) ?? [];
    const isTakenBack = grants.length > 0 && grants.every(({ refundedIndex }) => refundedIndex !== undefined);
    check(isTakenBack, () => `the log refunds no such grant: ${words}`);
    const inForce = this.#group(id).machine.past.tableAt(refund.decided.index)?.version;
    check(refund.rulesVersion === inForce, () => `the grant was made by rules ${inForce}: ${words}`);
  }

  /** A client got the status of a user. */
  peeked(id: GroupId, request: PeekRequest, keyStatus: KeyStatus, committedIndex: number): void {
    this.#answers.peeked(this.#group(id), request, keyStatus, committedIndex);
  }

  /** A client got the answer that its request, the only one with this id, was not proposed. */
  refused(requestId: string): void {
    check(
      !this.#logged.has(requestId),
      () => `request ${requestId} is reported as not proposed, but is in a log`,
    );
    this.#forbidden.add(requestId);
  }
}
