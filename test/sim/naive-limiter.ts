/**
 * The limiter once more, as simply as possible: the decisions of every replica of a group in each entry, the denials
 * that a leader may give at once, and the state. Written from the documents; it uses only types and the command decoder
 * of the product. It keeps everything it ever knew of a key, so it can answer as of any entry.
 */
import { NO_RECORD } from '../../src/api/customer-record.ts';
import type { Entry } from '../../raft/types.ts';
import type { Command } from '../../src/limiter/log/command.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import type { StateItem } from '../../src/limiter/state/inspection.ts';
import { type Asked, limitsOf } from './id-ledger.ts';
import { loggedCustomers, loggedRequests, rowsOf, type SaidOfKey } from './logged-entries.ts';
import {
  blockedBy,
  changedTo,
  denialOf,
  differenceOf,
  grantOf,
  type Judged,
  judge,
  type Place,
  refundOf,
  refused,
  reportOf,
} from './naive-judgement.ts';
import type { Known } from './naive-known.ts';
import { denialOfAll, grantOfAll, reportingGrant } from './naive-joint.ts';
import { NaiveKept, type UseRefused } from './naive-kept.ts';
import { bytesToGrant } from './naive-keys.ts';
import { NaivePast } from './naive-past.ts';
import { blockWaitAt, reportedAt } from './naive-record.ts';
import { NaiveRecords } from './naive-records.ts';
import { type GrantedLimit, NaiveRequests, requestBytes } from './naive-requests.ts';
import { type KeysOfRule, resolved, Tally } from './naive-state.ts';

/** The number of keys and of request ids checked after each grant; then the work of a sweep. */
const PEEKS_PER_GRANT = 2;
const SWEEP_CHECKS = 8_192;
const SWEEP_DROPS = 1_024;

/** One limit of a request, before anything is charged. */
interface Limit {
  readonly asked: Asked;
  readonly known: Known;
  readonly keys: KeysOfRule;
  readonly judged: Judged;
}

/** The decision of a replica, and its charges: none, or one under each limit, in their order. */
interface Decided {
  readonly decision: Decision;
  readonly charged: readonly GrantedLimit[];
}

function uncharged(decision: Decision): Decided {
  return { decision, charged: [] };
}

/** @param i the request's first row in its entry */
type OnDecided = (i: number, asked: Asked, decided: Decided) => void;
/** @param i its place in its entry */
type OnSaid = (i: number, said: SaidOfKey, decision: Decision) => void;

interface Reported {
  readonly onDecided: OnDecided;
  readonly onSaid: OnSaid;
  /** The record of a key has no content any more, and is dropped. */
  readonly onForgotten: (userId: string) => void;
}

export class NaiveLimiter {
  readonly #tally = new Tally();
  readonly past = new NaivePast(new NaiveRecords(this.#tally));
  #table: RuleTable | undefined;
  #changedMillis = 0;
  readonly #kept = new NaiveKept(this.past, this.#tally);
  readonly #requests = new NaiveRequests(this.#tally);

  get bytes(): number {
    return this.#tally.bytes;
  }

  /** Equal to that of every replica that has applied as much. */
  get digest(): number {
    const item: StateItem = {
      kind: 'state',
      version: this.#table?.version ?? 0,
      createdMillis: this.past.createdMillis,
      changedMillis: this.#changedMillis,
      // Far more rules would have to come and go than a run has.
      droppedThroughMillis: 0,
      utcSteps: this.past.utcSteps,
      sweepTable: this.#kept.sweepRule,
      sweepSlot: this.#kept.sweepKey,
      bytes: this.bytes,
    };
    return this.#tally.digestWith(item);
  }

  /** Reports what every replica decides. */
  apply(command: Command, entry: Entry, { onDecided, onSaid, onForgotten }: Reported): void {
    const { index, term, timeMillis } = entry;
    let position = 0;
    this.past.times.push({ index, value: timeMillis });
    switch (command.type) {
      case 'rules':
        if (command.table.version > (this.#table?.version ?? 0)) this.#changeRules(command.table, entry);
        return;
      case 'sweep':
        this.#changedMillis = timeMillis;
        this.#requests.expire(timeMillis, SWEEP_DROPS);
        for (const userId of this.past.records.sweep(index, timeMillis)) onForgotten(userId);
        this.#kept.sweep(entry, SWEEP_CHECKS, SWEEP_DROPS);
        return;
      case 'allow': {
        const rulesVersion = this.#version;
        for (const asked of loggedRequests(entry.data)) {
          onDecided(position, asked, this.#decide(asked, { index, term, position, rulesVersion }, entry));
          position += rowsOf(asked);
        }
        return;
      }
      case 'customers':
        for (const said of loggedCustomers(entry.data)) {
          onSaid(
            position,
            said,
            this.#say(said, { index, term, position, rulesVersion: this.#version }, entry),
          );
          position += 1;
        }
        return;
      case 'utc':
        if (this.past.stepUtc(command.aheadMillis, entry)) this.#changedMillis = timeMillis;
        return;
      case 'historyLost':
      case 'historyBegins':
        throw new Error(`no world is restored: ${command.type} in entry ${index}`);
    }
  }

  get #version(): number {
    return this.#table?.version ?? 0;
  }

  /** Applies an operator's change. */
  #say(said: SaidOfKey, place: Place, entry: Entry): Decision {
    const { index, timeMillis: nowMillis } = entry;
    const { userId } = said;
    const capBytes = this.#table?.partitionBytesMax ?? 0;
    if (said.said.type === 'set') {
      const reported = reportOf(
        { isDone: true, record: reportedAt(this.past.records.at(userId, index), nowMillis) },
        { place, nowMillis },
      );
      const refusal = this.#kept.refusesUse(userId, said.said, { index, capBytes });
      if (refusal !== undefined) return this.#useRefused(reported, refusal, { place, nowMillis });
      this.#kept.use(userId, said.said, entry);
      this.#changedMillis = nowMillis;
      return reported;
    }
    const change = this.past.records.change(said, { index, nowMillis, capBytes });
    if (said.said.type === 'reset') this.#kept.reset(userId, index);
    if (change.kind === 'changed' && change.hasOwn) this.#kept.followOwn(userId, index);
    if (change.kind === 'changed' || said.said.type === 'reset') this.#changedMillis = nowMillis;
    if (change.kind === 'full') return reportOf(undefined, { place, nowMillis });
    const isDone = change.kind === 'changed' || change.isDone;
    return reportOf({ isDone, record: change.record }, { place, nowMillis });
  }

  #useRefused(
    reported: Decision,
    refusal: UseRefused,
    at: { readonly place: Place; readonly nowMillis: number },
  ): Decision {
    if (refusal.kind === 'full') return reportOf(undefined, at);
    if (refusal.kind === 'unknown') return refused('unknown_rule', { ...at, ruleId: refusal.ruleId });
    const { ruleId, usedMax } = refusal;
    const { record = NO_RECORD } = reported.customer ?? {};
    return { ...reported, ruleId, usedMax, customer: { isDone: false, record } };
  }

  #changeRules(table: RuleTable, entry: Entry): void {
    const { index, timeMillis } = entry;
    if (this.#table === undefined) this.past.createdMillis = timeMillis;
    this.#changedMillis = timeMillis;
    this.#table = table;
    this.past.tables.push({ index, value: table });
    this.#kept.changeRules(table, entry);
  }

  /**
   * The denial that a replica which has applied entries up to `index` gives at once, at group time `nowMillis`, or
   * undefined if it may not deny. Lack of room is not its concern.
   */
  denialAt(
    { index, term }: { readonly index: number; readonly term: number },
    asked: Asked,
    nowMillis: number,
  ) {
    if (nowMillis < this.past.timeAt(index)) return undefined;
    if (this.#requests.find(asked, { index, nowMillis }) !== undefined) return undefined;
    const said: { denial: Decision; fits: boolean }[] = [];
    const table = this.past.tableAt(index);
    const place = { index, term, position: undefined, rulesVersion: table?.version ?? 0 };
    const guarded = this.#guardedOff(asked, { ruleId: resolved(asked.rule, table), place, nowMillis });
    if (guarded !== undefined) return guarded;
    for (const limit of limitsOf(asked)) {
      const wait = this.past.records.blockWaitAt(limit.userId, index, nowMillis);
      if (wait !== undefined && limit.isSettled !== true)
        return blockedBy(resolved(limit.rule, table), wait, { place, nowMillis });
      const known = this.past.knownAt(limit, index);
      if (known === undefined) return undefined;
      const judged = judge(known, limit, nowMillis);
      const denial = denialOf(known, judged, limit.cost, place);
      said.push({ denial, fits: judged.fits || limit.isSettled === true });
    }
    return said.every(({ fits }) => fits) ? undefined : denialOfAll(said);
  }

  /**
   * A request that was matched with another record, or whose key is blocked, is answered before anything else is
   * checked.
   */
  #guardedOff(
    { guard, isSettled = false }: Asked,
    at: { readonly ruleId: string; readonly place: Place; readonly nowMillis: number },
  ): Decision | undefined {
    if (guard === undefined) return undefined;
    const record = this.past.records.at(guard.userId, at.place.index);
    if (record.version !== guard.version) return changedTo(record, at);
    const wait = blockWaitAt(record, at.nowMillis);
    return wait === undefined || isSettled ? undefined : blockedBy(at.ruleId, wait, at);
  }

  #decide(asked: Asked, place: Place, entry: Entry): Decided {
    const nowMillis = entry.timeMillis;
    if (asked.isRefund === true) return uncharged(this.#refund(asked, place, entry));
    const repeated = this.#repeated(asked, place, nowMillis);
    if (repeated !== undefined) return uncharged(repeated);
    if (asked.isRecall === true) {
      const none = { ruleId: resolved(asked.rule, this.#table), place, nowMillis };
      return uncharged(refused('not_remembered', none));
    }
    const guarded = this.#guardedOff(asked, { ruleId: resolved(asked.rule, this.#table), place, nowMillis });
    if (guarded !== undefined) return uncharged(guarded);
    const limits: Limit[] = [];
    for (const one of limitsOf(asked)) {
      const known = this.past.knownAt(one, entry.index);
      const keys = this.past.activeAt(one.rule, entry.index);
      const ruleId = resolved(one.rule, this.#table);
      const wait = this.past.records.blockWaitAt(one.userId, entry.index, nowMillis);
      if (wait !== undefined && one.isSettled !== true)
        return uncharged(blockedBy(ruleId, wait, { place, nowMillis }));
      if (known === undefined || keys === undefined)
        return uncharged(refused('unknown_rule', { ruleId, place, nowMillis }));
      limits.push({ asked: one, known, keys, judged: judge(known, one, nowMillis) });
    }
    const fits = ({ judged, asked: limit }: Limit): boolean => judged.fits || limit.isSettled === true;
    if (!limits.every(fits)) {
      const said = limits.map((limit) => {
        return { denial: denialOf(limit.known, limit.judged, limit.asked.cost, place), fits: fits(limit) };
      });
      return uncharged(denialOfAll(said));
    }
    const ruleId = resolved(asked.rule, this.#table);
    if (!this.#hasRoom(limits)) return uncharged(refused('at_capacity', { ruleId, place, nowMillis }));
    return this.#chargeAll(asked, limits, place, entry);
  }

  /** The answer from the memory of its id. */
  #repeated(asked: Asked, place: Place, nowMillis: number): Decision | undefined {
    const remembered = this.#requests.find(asked, { index: Infinity, nowMillis });
    if (remembered === undefined) return undefined;
    const [first] = remembered.limits;
    const difference = differenceOf(remembered.asked, asked);
    if (difference !== undefined)
      return refused(
        'request_id_reused',
        { ruleId: resolved(asked.rule, this.#table), place, nowMillis },
        difference,
      );
    if (first?.isRefunded !== true) return remembered.decision;
    return refused('refunded', { ruleId: first.decision.ruleId, place, nowMillis });
  }

  #chargeAll(asked: Asked, limits: readonly Limit[], place: Place, entry: Entry): Decided {
    const { index, timeMillis: nowMillis } = entry;
    const charged = limits.map((limit, i): GrantedLimit => {
      const { keys, known, judged } = limit;
      const runs = this.#kept.grant(keys, limit, entry);
      const own = { ...place, position: (place.position ?? 0) + i };
      const { cost, isSettled = false } = limit.asked;
      const decision = grantOf(known.rule, judged, { runs, cost, isSettled, place: own });
      return { asked: limit.asked, decision };
    });
    const decision = grantOfAll(charged.map((one) => one.decision));
    this.#changedMillis = nowMillis;
    if (asked.requestId !== undefined) {
      const untilMillis = nowMillis + (this.#table?.requestIdHorizonMillis ?? 0);
      this.#requests.remember({ asked, decision }, charged, { index, untilMillis });
    }
    const peeks = PEEKS_PER_GRANT * limits.length;
    this.#requests.expire(nowMillis, peeks);
    this.#kept.sweep(entry, peeks, peeks);
    return { decision, charged };
  }

  /** A grant whose time is later than now counts no more; its stamp stays, with the costs of other grants at it. */
  #refund(asked: Asked, place: Place, entry: Entry): Decision {
    const nowMillis = entry.timeMillis;
    const remembered = this.#requests.find(asked, { index: Infinity, nowMillis: nowMillis + 1 });
    if (remembered === undefined) return refundOf(undefined, place, nowMillis);
    const { limits } = remembered;
    if (limits[0]?.isRefunded !== true) {
      this.#requests.refund(remembered);
      for (const limit of limits) this.#kept.takeBack(limit, entry);
      this.#changedMillis = nowMillis;
    }
    // Reported by the same limit as its grant.
    const reported = limits[reportingGrant(limits.map(({ decision }) => decision))]!;
    const { attempt } = remembered.asked;
    return refundOf({ decision: reported.decision, cost: reported.asked.cost, attempt }, place, nowMillis);
  }

  /** Room for all of them, each in addition to those before it. */
  #hasRoom(limits: readonly Limit[]): boolean {
    const cap = this.#table?.partitionBytesMax ?? 0;
    let bytes = 0;
    return limits.every(({ asked, known, judged }) => {
      bytes += bytesToGrant(known, judged, asked);
      if (asked.requestId !== undefined) bytes += requestBytes(asked, known.rule.id);
      const isNew = known.runs === undefined || asked.requestId !== undefined;
      return bytes === 0 || this.bytes + bytes <= (isNew ? cap : cap + Math.floor(cap / 8));
    });
  }
}
