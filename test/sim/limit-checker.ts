/**
 * The limiter's law, checked against the committed log: no window over its limit in log time or in real time, every
 * answer as the log says, every denial for a reason, no request id charged twice, and nothing in the log of what was
 * said to have counted nowhere.
 */
import type { Entry, GroupId } from '../../raft/types.ts';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { Rule, RuleTable } from '../../src/limiter/rules.ts';
import { takeDecisions, tellDecision } from './decision-watch.ts';
import type { Committed, Outcome } from './group-history.ts';
import { type Asked, askedBy, IdLedger, wordsOf } from './id-ledger.ts';
import { sayingOf } from './naive-judgement.ts';
import { groupWindowMillis, NaiveLimiter } from './naive-limiter.ts';
import { costAround, forgottenAtGrowth, type TimedGrant } from './rolling-window.ts';
import { check } from './story.ts';

interface Grant extends TimedGrant {
  readonly index: number;
  /** Undefined for a grant judged at a caller's time. */
  readonly realMillis: number | undefined;
}

interface GroupLedger {
  readonly machine: NaiveLimiter;
  table: RuleTable | undefined;
  /** As it last was in force, under its id: it may have left the table. */
  readonly rules: Map<string, Rule>;
  readonly grants: Map<string, Grant[]>;
  /** By rule and user: up to here grants may be forgotten, since the window was shorter once. */
  readonly forgotten: Map<string, number>;
  /** What the log granted, by receipt. */
  readonly receipts: Map<string, Receipt>;
  /** What the log decided, by index and position. */
  readonly requests: Map<string, { readonly words: string; readonly saying: string }>;
  readonly ids: IdLedger;
}

interface Receipt {
  readonly words: string;
  readonly hasId: boolean;
  /** In real time; undefined if nobody knows. */
  readonly stampedMillis: number | undefined;
  readonly horizonMillis: number;
  isTold: boolean;
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
  /** What every replica must decide in entry `index`, and what its state must be after it. */
  readonly expectOutcome: (group: GroupId, index: number, outcome: Outcome) => void;
  /** By how much group time may lag since then; undefined if nobody can say. */
  readonly lagMax?: (group: GroupId, sinceMillis: number) => number | undefined;
  /** A request is in the log, in an entry that its leader stamped at `stampedMillis`. */
  readonly logged?: (asked: Asked, stampedMillis: number, where: string) => void;
  /** The log charges a request, in an entry that its leader stamped at `stampedMillis`. */
  readonly charged?: (asked: Asked, stampedMillis: number, where: string) => void;
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
        machine: new NaiveLimiter(),
        table: undefined,
        rules: new Map(),
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

  /** The rules that were in force after entry `index`. */
  tableAt(id: GroupId, index: number): RuleTable | undefined {
    return this.#group(id).machine.tableAt(index);
  }

  /** After entry `index` something is remembered of this user under this rule. */
  isKnownAt(id: GroupId, index: number, asked: Asked): boolean {
    return this.#group(id).machine.isKnownAt(index, asked);
  }

  /** Of the state that follows from the committed log. */
  stateDigest(id: GroupId): number {
    return this.#group(id).machine.digest;
  }

  committed(id: GroupId, { entry, stampedAt, gainedMillis }: Committed): void {
    const group = this.#group(id);
    takeDecisions();
    const stamp =
      stampedAt === undefined ? undefined : { atMillis: stampedAt, seemingMillis: stampedAt + gainedMillis };
    if (entry.kind === 'command') this.#apply(id, group, entry, stamp);
    const { bytes, digest } = group.machine;
    this.#init.expectOutcome(id, entry.index, { decisions: takeDecisions(), size: bytes, digest });
  }

  #apply(id: GroupId, group: GroupLedger, entry: Entry, stamp: Stamp | undefined): void {
    const command = decodeCommand(entry.data);
    const { machine } = group;
    const before = machine.bytes;
    machine.apply(command, entry, (i, asked, decision) => {
      tellDecision(i, decision);
      this.#decided(id, group, { entry, i, asked, decision, stamp });
    });
    if (command.type === 'rules' && command.table.version > (group.table?.version ?? 0)) {
      this.#rulesChanged(
        group,
        this.#init.tables.find((table) => table.version === command.table.version),
        entry.timeMillis,
      );
      check(group.table !== undefined, () => `rule table ${command.table.version} comes from nowhere`);
    }
    const cap = group.table?.partitionBytesMax ?? Infinity;
    const after = machine.bytes;
    check(
      after <= Math.max(before, cap + Math.floor(cap / 8)),
      () => `entry ${entry.index} of group ${id} makes the state ${after} bytes large, the cap is ${cap}`,
    );
  }

  /** Of a longer window the beginning may be forgotten: see `SlidingLogs`. */
  #rulesChanged(group: GroupLedger, table: RuleTable | undefined, nowMillis: number): void {
    const before = group.table;
    group.table = table;
    for (const after of table?.rules ?? []) {
      const { id } = after;
      const windowMillis = group.rules.get(id)?.windowMillis ?? after.windowMillis;
      group.rules.set(id, after);
      if (after.windowMillis <= windowMillis) continue;
      const shorter = groupWindowMillis(windowMillis, before?.clockDriftPpm ?? 0);
      for (const [key, grants] of group.grants) {
        if (!key.startsWith(`${id}/`)) continue;
        const through = forgottenAtGrowth(grants, { windowMillis: shorter, nowMillis });
        group.forgotten.set(key, Math.max(through, group.forgotten.get(key) ?? -Infinity));
      }
    }
  }

  #decided(id: GroupId, group: GroupLedger, decided: Logged): void {
    const { entry, i, asked, decision, stamp } = decided;
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
      const stateBytes = group.machine.bytes;
      const cap = group.table?.partitionBytesMax ?? Infinity;
      check(
        stateBytes + REQUEST_STATE_BYTES_MAX > cap,
        () => `refused at ${stateBytes} of ${cap} bytes: ${wordsOf(asked)}, group ${id}`,
      );
    }
    const { index, position } = decision.decided;
    // A repetition within the entry has the receipt of the first, as the ledger of ids demands.
    const isEarlier = index === entry.index && position !== undefined && position < i;
    const words = wordsOf(asked);
    const isEqual = group.requests.get(`${index}/${position}`)?.words === words;
    if (requestId !== undefined && isEarlier && isEqual) return;
    this.#init.logged?.(asked, stamp?.atMillis ?? Infinity, `entry ${entry.index} of group ${id}`);
    if (index === entry.index)
      group.requests.set(`${index}/${position ?? ''}`, { words, saying: sayingOf(decision) });
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
    group.receipts.set(receipt, {
      words: wordsOf(asked),
      isTold: false,
      hasId: requestId !== undefined,
      stampedMillis: stamp?.atMillis,
      horizonMillis: group.table?.requestIdHorizonMillis ?? 0,
    });
  }

  #windowInGroupTime(group: GroupLedger, rule: Rule): number {
    return groupWindowMillis(rule.windowMillis, group.table?.clockDriftPpm ?? 0);
  }

  /** A client got a decision from a node. */
  answered(
    id: GroupId,
    request: AllowRequest,
    decision: Decision,
    when: {
      readonly committedIndex: number;
      /** When this was asked first, under its id, and when by the attempt that got the answer. */
      readonly invokedMillis?: number;
      readonly attemptMillis?: number;
    },
  ): void {
    const { committedIndex, invokedMillis, attemptMillis } = when;
    const group = this.#group(id);
    const { index } = decision.decided;
    check(
      index <= committedIndex,
      () => `${request.userId} got an answer from entry ${index} of group ${id}, which is not committed`,
    );
    if (decision.allowed) {
      const granted = this.#checkGrant(id, group, request, decision);
      if (attemptMillis !== undefined) this.#checkRemembered(id, granted, attemptMillis);
    } else {
      this.#checkDenial(id, group, request, decision);
      if (invokedMillis !== undefined) this.#checkInRealTime(id, group, { request, decision, invokedMillis });
    }
  }

  #checkGrant(id: GroupId, group: GroupLedger, request: AllowRequest, decision: Decision): Receipt {
    const receipt = receiptOf(decision);
    const words = wordsOf(askedBy(request));
    const granted = group.receipts.get(receipt);
    check(granted?.words === words, () => `the log of group ${id} has no such grant: ${words} at ${receipt}`);
    check(
      granted.hasId || !granted.isTold,
      () => `the grant at ${receipt} of group ${id} was told to two who asked: ${words}`,
    );
    granted.isTold = true;
    this.#checkLogged(id, group, words, decision);
    return granted;
  }

  /** Nobody who asks later than a request id is remembered gets its grant. */
  #checkRemembered(id: GroupId, granted: Receipt, attemptMillis: number): void {
    const { words, stampedMillis, horizonMillis } = granted;
    const lag = this.#init.lagMax?.(id, attemptMillis - horizonMillis) ?? Infinity;
    const since = attemptMillis - horizonMillis - lag;
    if (stampedMillis === undefined || this.#init.lagMax?.(id, since) === undefined) return;
    check(
      stampedMillis >= since,
      () =>
        `${words} got a grant of group ${id} that was ${attemptMillis - stampedMillis} ms old when it was asked, ` +
        `remembered for ${horizonMillis} + ${lag} ms`,
    );
  }

  /** In group time a denial must follow from the log up to where it was read. */
  #checkDenial(id: GroupId, group: GroupLedger, request: AllowRequest, decision: Decision): void {
    const { ruleId, decided } = decision;
    const rule = ruleOf(group, ruleId);
    const asked = askedBy(request);
    if (decided.position !== undefined) this.#checkLogged(id, group, wordsOf(asked), decision);
    else this.#checkQuickDenial(id, group, asked, decision);
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

  /** A denial has its reason in real time too: group time may not stand still, nor fall back. */
  #checkInRealTime(
    id: GroupId,
    group: GroupLedger,
    denied: { readonly request: AllowRequest; readonly decision: Decision; readonly invokedMillis: number },
  ): void {
    const { request, decision, invokedMillis } = denied;
    if (!request.userId.startsWith('user') || request.timestampMillis !== undefined) return;
    const { ruleId, limit, windowMillis } = decision;
    const window = groupWindowMillis(windowMillis, this.#init.tables[0]?.clockDriftPpm ?? 0);
    // Longer than needed: what the lag itself lasts lags a little too.
    const lag = this.#init.lagMax?.(id, invokedMillis - window) ?? Infinity;
    const since = invokedMillis - window - lag;
    if (this.#init.lagMax?.(id, since) === undefined) return;
    const grants = grantsOf(group, ruleId, request.userId).filter(
      ({ index }) => index <= decision.decided.index,
    );
    const live = realCostSince(grants, since);
    check(
      live + (request.cost ?? 1) > limit,
      () =>
        `denied out of time: ${live} of ${limit} in ${window} + ${lag} ms of real time for ${request.userId}, ` +
        `rule ${ruleId}, entry ${decision.decided.index} of group ${id}`,
    );
  }

  /** An answer of the log says all that the log decided: nothing else, to nobody else, however often it is told. */
  #checkLogged(id: GroupId, group: GroupLedger, words: string, decision: Decision): void {
    const { index, position = '' } = decision.decided;
    const logged = group.requests.get(`${index}/${position}`);
    check(logged?.words === words, () => `${words} got the answer of ${logged?.words} in group ${id}`);
    const saying = sayingOf(decision);
    check(
      logged.saying === saying,
      () => `${words} must get ${logged.saying} in group ${id}, and got ${saying}`,
    );
  }

  /** What a leader denies without asking the log, it must deny by the state it read it from. */
  #checkQuickDenial(id: GroupId, group: GroupLedger, asked: Asked, decision: Decision): void {
    const { decided, ruleId, resetMillis } = decision;
    const rule = ruleOf(group, ruleId);
    const isEvent = asked.timestampMillis !== undefined && rule.clock === 'request';
    // Who asks in group time and is held back to its own timestamps is told when it asked by how long it has to wait.
    const sinceMillis = Math.max(
      0,
      resetMillis - groupWindowMillis(decision.windowMillis, group.table?.clockDriftPpm ?? 0),
    );
    const nowMillis = decided.timeMillis - (isEvent ? 0 : sinceMillis);
    const expected = group.machine.denialAt(decided, asked, isEvent ? Infinity : nowMillis);
    const saying = sayingOf(decision);
    check(
      expected !== undefined && sayingOf(expected) === saying,
      () =>
        `${wordsOf(asked)} got ${saying} in group ${id}, must be ${JSON.stringify(expected)} at ${nowMillis}`,
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
  const rule = group.rules.get(ruleId);
  check(rule !== undefined, () => `a decision by rule ${ruleId}, which was never in force`);
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
