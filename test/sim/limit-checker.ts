/**
 * The limiter's law, checked against the committed log: no window over its limit in log time or in real time, every
 * answer as the log says, every denial for a reason, no request id charged twice, and nothing in the log of what was
 * said to have counted nowhere.
 */
import type { Entry, GroupId } from '../../raft/types.ts';
import { decodeCommand } from '../../src/limiter/command.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import type { AllowRequest } from '../../src/limiter/request.ts';
import type { Rule, RuleTable } from '../../src/limiter/rules.ts';
import { LimiterStateMachine } from '../../src/limiter/state-machine.ts';
import { takeDecisions } from './decision-watch.ts';
import { STATE_HASH_EVERY } from './raft-checker.ts';
import type { Committed, Outcome } from './group-history.ts';
import { type Asked, askedBy, askedIn, IdLedger, wordsOf } from './id-ledger.ts';
import { costAround, forgottenAtGrowth, type TimedGrant } from './rolling-window.ts';
import { check } from './story.ts';

interface Grant extends TimedGrant {
  readonly index: number;
  /** Undefined for a grant judged at a caller's time. */
  readonly realMillis: number | undefined;
}

interface GroupLedger {
  readonly machine: LimiterStateMachine;
  table: RuleTable | undefined;
  readonly grants: Map<string, Grant[]>;
  /** By rule and user: up to here grants may be forgotten, since the window was shorter once. */
  readonly forgotten: Map<string, number>;
  /** What the log granted, by receipt. */
  readonly receipts: Map<string, { readonly words: string; readonly hasId: boolean; isTold: boolean }>;
  /** What the log decided, by index and position. */
  readonly requests: Map<string, string>;
  readonly ids: IdLedger;
}

interface Logged {
  readonly entry: Entry;
  /** The place in the entry. */
  readonly i: number;
  readonly asked: Asked;
  readonly decision: Decision;
  readonly stamp: Stamp | undefined;
}

/** When the leader stamped an entry. */
interface Stamp {
  readonly atMillis: number;
  /** As far as what a wrong clock made pass for real time, before it was found out, tells. */
  readonly seemingMillis: number;
}

/** More than any grant of these clients adds to a state. */
const REQUEST_STATE_BYTES_MAX = 512;

export interface LimitCheckerInit {
  /** The tables as they are meant, whatever a node made of them. */
  readonly tables: readonly RuleTable[];
  /** What every replica must decide in entry `index`, and how large its state must be after it. */
  readonly expectOutcome: (group: GroupId, index: number, outcome: Outcome) => void;
  /** The state every replica must have after `index`. */
  readonly expectState: (group: GroupId, index: number, hash: string) => void;
  /** The log charges a request, in an entry that its leader stamped at `stampedMillis`. */
  readonly charged?: (asked: Asked, stampedMillis: number, where: string) => void;
}

/** The product's promise in group time, written down again on purpose: longer windows hide drift and rounding. */
function groupWindowMillis(windowMillis: number, driftPpm: number): number {
  const leaderPpm = driftPpm + Math.ceil(driftPpm / 5);
  return windowMillis + Math.ceil((windowMillis * leaderPpm) / 1_000_000) + 1;
}

export class LimitChecker {
  readonly #init: LimitCheckerInit;
  readonly #groups = new Map<GroupId, GroupLedger>();
  /** Request ids that were said to have reached no log. */
  readonly #forbidden = new Set<string>();
  readonly #logged = new Set<string>();
  grants = 0;

  constructor(init: LimitCheckerInit) {
    this.#init = init;
  }

  #group(id: GroupId): GroupLedger {
    let group = this.#groups.get(id);
    if (group === undefined) {
      group = {
        machine: new LimiterStateMachine(),
        table: undefined,
        grants: new Map(),
        forgotten: new Map(),
        receipts: new Map(),
        requests: new Map(),
        ids: new IdLedger(),
      };
      this.#groups.set(id, group);
    }
    return group;
  }

  /** Of the state that follows from the committed log. */
  stateHash(id: GroupId): string {
    return this.#group(id).machine.hash();
  }

  committed(id: GroupId, { entry, stampedAt, gainedMillis }: Committed): void {
    const group = this.#group(id);
    takeDecisions();
    const stamp =
      stampedAt === undefined ? undefined : { atMillis: stampedAt, seemingMillis: stampedAt + gainedMillis };
    if (entry.kind === 'command') this.#apply(id, group, entry, stamp);
    const size = group.machine.stateBytes;
    this.#init.expectOutcome(id, entry.index, { decisions: takeDecisions(), size });
    if (entry.index % STATE_HASH_EVERY === 0) {
      this.#init.expectState(id, entry.index, group.machine.hash());
    }
  }

  #apply(id: GroupId, group: GroupLedger, entry: Entry, stamp: Stamp | undefined): void {
    const command = decodeCommand(entry.data);
    const before = group.machine.stateBytes;
    switch (command.type) {
      case 'sweep':
        group.machine.apply(command, entry);
        break;
      case 'rules':
        group.machine.apply(command, entry);
        if (command.table.version <= (group.table?.version ?? 0)) break;
        this.#rulesChanged(
          group,
          this.#init.tables.find((table) => table.version === command.table.version),
          entry.timeMillis,
        );
        check(group.table !== undefined, () => `rule table ${command.table.version} comes from nowhere`);
        break;
      case 'allow':
        group.machine.apply(command, entry, (i, decision) => {
          const asked = askedIn(command.batch, i);
          this.#decided(id, group, { entry, i, asked, decision, stamp });
        });
    }
    const cap = group.table?.partitionBytesMax ?? Infinity;
    const after = group.machine.stateBytes;
    check(
      after <= Math.max(before, cap + Math.floor(cap / 8)),
      () => `entry ${entry.index} of group ${id} makes the state ${after} bytes large, the cap is ${cap}`,
    );
  }

  /** Of a longer window the beginning may be forgotten: see `SlidingLogs`. */
  #rulesChanged(group: GroupLedger, table: RuleTable | undefined, nowMillis: number): void {
    const before = group.table;
    group.table = table;
    for (const { id, windowMillis } of before?.rules ?? []) {
      const after = table?.rules.find((rule) => rule.id === id);
      if (after === undefined || after.windowMillis <= windowMillis) continue;
      const shorter = groupWindowMillis(windowMillis, before?.clockDriftPpm ?? 0);
      for (const [key, grants] of group.grants) {
        if (!key.startsWith(`${id}/`)) continue;
        const through = forgottenAtGrowth(grants, { windowMillis: shorter, nowMillis });
        group.forgotten.set(key, Math.max(through, group.forgotten.get(key) ?? -Infinity));
      }
    }
  }

  #decided(id: GroupId, group: GroupLedger, decided: Logged): void {
    const { entry, i, asked, decision } = decided;
    const { requestId } = asked;
    if (requestId !== undefined) {
      this.#logged.add(requestId);
      check(
        !this.#forbidden.has(requestId),
        () => `request ${requestId} was said to have reached no log and is entry ${entry.index}`,
      );
    }
    group.ids.logged(entry, i, asked, decision, group.table?.requestIdHorizonMillis ?? 0);
    if (decision.refusal === 'at_capacity') {
      const { stateBytes } = group.machine;
      const cap = group.table?.partitionBytesMax ?? Infinity;
      check(
        stateBytes + REQUEST_STATE_BYTES_MAX > cap,
        () => `refused at ${stateBytes} of ${cap} bytes: ${wordsOf(asked)}, group ${id}`,
      );
    }
    const { index, position } = decision.decided;
    // A repetition within the entry has the receipt of the first, as the ledger of ids demands.
    const isEarlier = index === entry.index && position !== undefined && position < i;
    const isEqual = group.requests.get(`${index}/${position}`) === wordsOf(asked);
    if (requestId !== undefined && isEarlier && isEqual) return;
    if (index === entry.index) group.requests.set(`${index}/${position ?? ''}`, wordsOf(asked));
    if (!decision.allowed || index !== entry.index) return;
    check(position === i, () => `request ${i} of entry ${index}, group ${id}, has position ${position}`);
    this.#granted(id, group, decided);
  }

  #granted(id: GroupId, group: GroupLedger, { entry, asked, decision, stamp }: Logged): void {
    const { userId, cost, requestId } = asked;
    const hasTime = asked.timestampMillis !== undefined;
    const { ruleId, decided } = decision;
    const rule = ruleOf(group, ruleId);
    const isEvent = hasTime && rule.clock === 'request';
    const grants = grantsOf(group, ruleId, userId);
    const forgotten = group.forgotten.get(`${ruleId}/${userId}`) ?? -Infinity;
    const grant = {
      timeMillis: decided.timeMillis,
      madeMillis: entry.timeMillis,
      cost,
      index: decided.index,
      realMillis: isEvent ? undefined : stamp?.seemingMillis,
    };
    grants.push(grant);
    this.grants += 1;
    const window = isEvent ? rule.windowMillis : this.#windowInGroupTime(group, rule);
    const isOrdered = !userId.startsWith('mixed') && !userId.startsWith('event');
    const logged = isOrdered
      ? costSince(grants, Math.max(forgotten, decided.timeMillis - window), Infinity)
      : costAround(grants, grant, { windowMillis: window, forgottenMillis: forgotten });
    const where = `user ${userId}, rule ${ruleId}, entry ${decided.index} of group ${id}`;
    check(
      logged <= rule.limit,
      () => `over-grant in log time: ${logged} of ${rule.limit} in ${window} ms, ${where}`,
    );
    if (grant.realMillis !== undefined) {
      const remembered =
        forgotten === -Infinity ? grants : grants.filter(({ timeMillis }) => timeMillis > forgotten);
      const real = realCostSince(remembered, grant.realMillis - rule.windowMillis);
      check(
        real <= rule.limit,
        () => `over-grant in real time: ${real} of ${rule.limit} in ${rule.windowMillis} ms, ${where}`,
      );
    }
    this.#init.charged?.(asked, stamp?.atMillis ?? Infinity, where);
    // A receipt of its own, that no other grant has.
    const receipt = receiptOf(decision);
    check(!group.receipts.has(receipt), () => `two grants of group ${id} have the receipt ${receipt}`);
    group.receipts.set(receipt, { words: wordsOf(asked), isTold: false, hasId: requestId !== undefined });
  }

  #windowInGroupTime(group: GroupLedger, rule: Rule): number {
    return groupWindowMillis(rule.windowMillis, group.table?.clockDriftPpm ?? 0);
  }

  /** A client got a decision from a node. */
  answered(id: GroupId, request: AllowRequest, decision: Decision, committedIndex: number): void {
    const group = this.#group(id);
    const { index } = decision.decided;
    check(
      index <= committedIndex,
      () => `${request.userId} got an answer from entry ${index} of group ${id}, which is not committed`,
    );
    if (decision.allowed) this.#checkGrant(id, group, request, decision);
    else this.#checkDenial(id, group, request, decision);
  }

  #checkGrant(id: GroupId, group: GroupLedger, request: AllowRequest, decision: Decision): void {
    const receipt = receiptOf(decision);
    const words = wordsOf(askedBy(request));
    const granted = group.receipts.get(receipt);
    check(granted?.words === words, () => `the log of group ${id} has no such grant: ${words} at ${receipt}`);
    check(
      granted.hasId || !granted.isTold,
      () => `the grant at ${receipt} of group ${id} was told to two who asked: ${words}`,
    );
    granted.isTold = true;
  }

  /** In group time a denial must follow from the log up to where it was read. */
  #checkDenial(id: GroupId, group: GroupLedger, request: AllowRequest, decision: Decision): void {
    const { ruleId, decided } = decision;
    const rule = ruleOf(group, ruleId);
    const asked = askedBy(request);
    if (decided.position !== undefined) {
      const logged = group.requests.get(`${decided.index}/${decided.position}`);
      check(
        logged === wordsOf(asked),
        () => `${wordsOf(asked)} got the denial of ${logged ?? 'nobody'} in group ${id}`,
      );
    }
    // A caller's own times say nothing about the horizon.
    if (request.timestampMillis === undefined) group.ids.denied(asked, decision);
    // Users of both kinds are held back to their own timestamps.
    if (request.userId.startsWith('mixed') || request.userId.startsWith('event')) return;
    const window = groupWindowMillis(decision.windowMillis, this.#init.tables[0]?.clockDriftPpm ?? 0);
    const grants = grantsOf(group, ruleId, request.userId);
    const live = costSince(grants, decided.timeMillis - window, decided.index);
    check(
      live + (request.cost ?? 1) > decision.limit,
      () =>
        `wrong denial: ${live} of ${decision.limit} in ${window} ms for ${request.userId}, rule ${rule.id}, ` +
        `entry ${decided.index} of group ${id}`,
    );
  }

  /** A client was told that its request, the only one with this id, reached no log. */
  refused(requestId: string): void {
    check(
      !this.#logged.has(requestId),
      () => `request ${requestId} was said to have reached no log and is in one`,
    );
    this.#forbidden.add(requestId);
  }
}

function ruleOf(group: GroupLedger, ruleId: string): Rule {
  const rule = group.table?.rules.find(({ id }) => id === ruleId);
  check(rule !== undefined, () => `a decision by rule ${ruleId}, which is not in force`);
  return rule;
}

function grantsOf(group: GroupLedger, ruleId: string, userId: string): Grant[] {
  const key = `${ruleId}/${userId}`;
  let grants = group.grants.get(key);
  if (grants === undefined) {
    grants = [];
    group.grants.set(key, grants);
  }
  return grants;
}

/** Of grants up to entry `throughIndex` that are later than `afterMillis`. Times never decrease along a key. */
function costSince(grants: readonly Grant[], afterMillis: number, throughIndex: number): number {
  let cost = 0;
  for (let i = grants.length - 1; i >= 0; i -= 1) {
    const grant = grants[i];
    if (grant === undefined || grant.timeMillis <= afterMillis) break;
    if (grant.index <= throughIndex) cost += grant.cost;
  }
  return cost;
}

function realCostSince(grants: readonly Grant[], afterMillis: number): number {
  let cost = 0;
  for (let i = grants.length - 1; i >= 0; i -= 1) {
    const grant = grants[i];
    if (grant === undefined || (grant.realMillis !== undefined && grant.realMillis <= afterMillis)) break;
    if (grant.realMillis !== undefined) cost += grant.cost;
  }
  return cost;
}

function receiptOf({ decided, ruleId }: Decision): string {
  return JSON.stringify([decided.index, decided.position ?? null, decided.term, decided.timeMillis, ruleId]);
}
