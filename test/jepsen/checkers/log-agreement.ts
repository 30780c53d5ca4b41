/**
 * Compares what clients saw with the logs of the stopped nodes. Every acknowledged grant is in the log of a majority,
 * decided as it was answered. No request that was reported as not proposed is there. No request was charged twice. It
 * also finds the outcome of the requests without an answer.
 */
import type { Operation } from '../history.ts';
import type { LoggedRequest, PartitionLog } from '../log-entries.ts';
import { type Budget, nameOf } from './budgets.ts';
import type { Fate, Placement } from './fates.ts';
import { describe } from './replay.ts';
import { type CheckResult, Findings } from './result.ts';

export interface LogAgreementOptions {
  readonly requestIdHorizonMillis: number;
  /** Copies of each partition. 0: the check does not require a majority. */
  readonly replicas: number;
}

interface Found {
  readonly log: PartitionLog;
  readonly request: LoggedRequest;
}

export function checkLogAgreement(
  budgets: readonly Budget[],
  logs: readonly PartitionLog[],
  options: LogAgreementOptions,
): { readonly result: CheckResult; readonly fates: ReadonlyMap<Operation, Fate> } {
  const findings = new Findings('log-agreement');
  const fates = new Map<Operation, Fate>();
  const index = new LogIndex(logs);
  const baseAt = basesByTime(budgets, logs);
  for (const budget of budgets) {
    for (const { op } of budget.grants) checkGrant(op, index, options.replicas, findings);
    for (const op of budget.denials) {
      const last = index.logOf(op)?.lastIndex;
      if (last !== undefined && (op.index ?? 0) > last)
        findings.add(`read at an index no log has (the last is ${last}): ${describe(op)}`);
      checkDenial(op, index, findings);
    }
    checkFailed(budget, index, findings);
    checkExplained(budget, index, findings);
    const unreported = budget.operations.filter((op) => op.class === 'info');
    for (const op of new Set([...unreported, ...budget.unknowns.map((unknown) => unknown.op)])) {
      const fate = fateOf(op, index, baseAt);
      if (op.class === 'info')
        findings.tally(fate === undefined ? 'unknownStays' : `unknown${capital(fate.kind)}`);
      if (fate !== undefined) fates.set(op, fate);
    }
  }
  checkCharges(index, options.requestIdHorizonMillis, findings);
  for (const log of logs) findings.tally('requestsInLogs', log.requests.length);
  const cut = logs.filter(({ baseIndex }) => baseIndex > 0);
  const note =
    cut.length === 0
      ? 'all logs were there from their first entry'
      : `logs began late, behind a snapshot: ${cut.map((log) => `partition ${log.partition} after ${log.baseIndex}`).join(', ')}`;
  return { result: findings.result('ok', note), fates };
}

class LogIndex {
  readonly logs: ReadonlyMap<number, PartitionLog>;
  readonly byId = new Map<string, Found[]>();
  readonly #byEntry = new Map<number, Map<number, LoggedRequest[]>>();
  readonly #charges = new Map<string, LoggedRequest[]>();

  constructor(logs: readonly PartitionLog[]) {
    this.logs = new Map(logs.map((log) => [log.partition, log]));
    for (const log of logs) {
      const entries = new Map<number, LoggedRequest[]>();
      this.#byEntry.set(log.partition, entries);
      for (const request of log.requests) {
        push(entries, request.index, request);
        const isCharged = request.decision?.allowed === true && request.decision.index === request.index;
        if (isCharged && request.index <= log.committedIndex) push(this.#charges, nameOf(request), request);
        if (request.requestId !== null)
          push(this.byId, idOf(request.user, request.requestId), { log, request });
      }
    }
  }

  logOf({ group }: Operation): PartitionLog | undefined {
    return group === null ? undefined : this.logs.get(group);
  }

  /** The requests of an entry. */
  at(group: number, index: number): readonly LoggedRequest[] {
    return this.#byEntry.get(group)?.get(index) ?? [];
  }

  /** The certain charges of a budget, each at its first place. */
  chargesOf(user: string, rule: string): readonly LoggedRequest[] {
    return this.#charges.get(nameOf({ user, rule })) ?? [];
  }

  /** Every place where a request is logged. */
  placesOf({ user, rule, requestId }: Operation): Found[] {
    const places = requestId === null ? undefined : this.byId.get(idOf(user, requestId));
    return places?.filter(({ request }) => request.rule === rule || request.rule === '') ?? [];
  }
}

function checkGrant(op: Operation, index: LogIndex, replicas: number, findings: Findings): void {
  const log = index.logOf(op);
  if (log === undefined || op.group === null || op.index === null) {
    if (op.group !== null) findings.add(`no node has partition ${op.group}: ${describe(op)}`);
    return;
  }
  if (op.index <= log.baseIndex) {
    findings.tally('grantsBehindASnapshot');
    return;
  }
  const same = index
    .at(op.group, op.index)
    .filter((request) => isThatOf(op, request) && (op.position === null || request.position === op.position));
  if (same.length === 0) {
    findings.add(`acknowledged and not in the log, which ends at ${log.lastIndex}: ${describe(op)}`);
    return;
  }
  findings.tally('grantsFound');
  const isAsAnswered = same.some(
    ({ term, decision }) =>
      term === op.term &&
      (decision === undefined ||
        (decision.allowed &&
          decision.timeMillis === op.timeMillis &&
          decision.index === op.index &&
          (op.position === null || decision.position === op.position) &&
          (op.remaining === null || decision.remaining === op.remaining))),
  );
  if (!isAsAnswered) findings.add(`the log decides otherwise: ${describe(op)}`);
  // A node that was wiped or removed has no copy, so a majority cannot be required.
  if (replicas === 0 || log.heldThrough.length < replicas) return;
  const at = op.index;
  const copies = log.heldThrough.filter((through) => through >= at).length;
  if (copies <= replicas / 2) findings.add(`only ${copies} of ${replicas} nodes have it: ${describe(op)}`);
}

/** A denial that was decided in the log has a place in it. */
function checkDenial(op: Operation, index: LogIndex, findings: Findings): void {
  const log = index.logOf(op);
  if (log === undefined || op.group === null || op.index === null || op.position === null) return;
  if (op.index <= log.baseIndex || op.index > log.lastIndex) return;
  findings.tally('denialsFound');
  const logged = index.at(op.group, op.index).find(({ position }) => position === op.position);
  if (logged === undefined || !isThatOf(op, logged)) {
    findings.add(`another request is at place ${op.position} of its entry: ${describe(op)}`);
  } else if (logged.decision?.allowed === true) {
    findings.add(`the log grants a request that was answered with a denial: ${describe(op)}`);
  }
}

function isThatOf(op: Operation, { user, requestId, cost, rule }: LoggedRequest): boolean {
  const isSameRule = rule === op.rule || rule === '';
  return user === op.user && requestId === op.requestId && cost === op.cost && isSameRule;
}

/** A request whose every attempt was reported as not proposed must be in no log. */
function checkFailed({ operations }: Budget, index: LogIndex, findings: Findings): void {
  const maybe = new Set<string>();
  for (const { class: outcome, requestId } of operations) {
    if (outcome !== 'fail' && requestId !== null) maybe.add(requestId);
  }
  for (const op of operations) {
    if (op.class !== 'fail' || op.requestId === null || maybe.has(op.requestId)) continue;
    findings.tally('failed');
    const [place] = index.placesOf(op);
    if (place !== undefined)
      findings.add(
        `reported as not proposed, but in the log at ${place.request.index}: ${nameOf(op)}, '${op.requestId}'`,
      );
  }
}

/** Every charge in the log was reported to a client, or belongs to an attempt with an unknown outcome. */
function checkExplained({ user, rule, grants, unknowns }: Budget, index: LogIndex, findings: Findings): void {
  const reported = new Set(grants.map(({ op }) => `${op.index}/${op.requestId}`));
  const reportedWithoutId = new Map<number, number>();
  for (const { op } of grants) {
    if (op.requestId === null) add(reportedWithoutId, op.index ?? 0, 1);
  }
  const inDoubt = new Set(unknowns.map(({ op }) => op.requestId));
  let withoutId = unknowns.filter(({ op }) => op.requestId === null).length;
  for (const { index: at, requestId } of index.chargesOf(user, rule)) {
    if (requestId !== null) {
      if (reported.has(`${at}/${requestId}`) || inDoubt.has(requestId)) continue;
    } else if ((reportedWithoutId.get(at) ?? 0) > 0) {
      add(reportedWithoutId, at, -1);
      continue;
    } else if (withoutId > 0) {
      withoutId -= 1;
      continue;
    }
    const name = requestId === null ? 'a request without an id' : `'${requestId}'`;
    findings.add(`the log charges ${name} at ${at}, and no attempt explains it: ${nameOf({ user, rule })}`);
  }
}

/** Undefined if the log does not show it. */
function fateOf(op: Operation, index: LogIndex, baseAt: BasesByTime): Fate | undefined {
  if (op.requestId === null) return undefined;
  const all = index.placesOf(op);
  // For an attempt that was answered: its other places.
  const places = op.class === 'ok' ? all.filter(({ request }) => request.decision?.index !== op.index) : all;
  const charges = new Map<string, Placement>();
  for (const { log, request } of places) {
    const { decision } = request;
    // A retry has the receipt of the attempt that was charged, which may lie before the log.
    if (decision?.allowed !== true || request.index > log.committedIndex) continue;
    const { index: chargedAt, position, timeMillis } = decision;
    charges.set(`${chargedAt}/${position}`, { group: log.partition, index: chargedAt, position, timeMillis });
  }
  if (charges.size > 0) return { kind: 'granted', at: [...charges.values()] };
  const open = places.filter(({ request }) => request.decision === undefined || request.decision.allowed);
  if (open.length > 0) {
    const at = open.map(({ log, request }) => ({
      group: log.partition,
      index: request.index,
      position: request.position,
      timeMillis: request.decision?.timeMillis ?? request.timeMillis,
    }));
    return { kind: 'logged', at };
  }
  // Not in any log. This is certain only if no log was compacted beyond the point where the request could be.
  return baseAt.isCoveredFrom(op.invokeNanos) ? { kind: 'uncharged' } : undefined;
}

interface BasesByTime {
  /** Whether every log still holds all entries proposed at or after this moment. */
  isCoveredFrom(nanos: number): boolean;
}

/**
 * A log with base b holds everything that was proposed after a client received an answer with an index of b or more.
 */
function basesByTime(budgets: readonly Budget[], logs: readonly PartitionLog[]): BasesByTime {
  const from = new Map<number, number>();
  for (const { partition, baseIndex } of logs) from.set(partition, baseIndex === 0 ? -Infinity : Infinity);
  const bases = new Map(logs.map(({ partition, baseIndex }) => [partition, baseIndex]));
  for (const { grants, denials } of budgets) {
    for (const op of [...grants.map((grant) => grant.op), ...denials]) {
      const { group, index, completeNanos } = op;
      if (group === null || index === null || completeNanos === null) continue;
      if (index >= (bases.get(group) ?? Infinity)) {
        from.set(group, Math.min(from.get(group) ?? Infinity, completeNanos));
      }
    }
  }
  const all = Math.max(-Infinity, ...from.values());
  return { isCoveredFrom: (nanos) => logs.length > 0 && nanos > all };
}

/** The log itself must not charge one request id twice while it is remembered. */
function checkCharges(index: LogIndex, horizonMillis: number, findings: Findings): void {
  for (const places of index.byId.values()) {
    let before: LoggedRequest | undefined;
    for (const { request } of places) {
      const { decision } = request;
      if (decision?.allowed !== true || decision.index !== request.index) continue;
      if (before !== undefined && request.timeMillis - before.timeMillis <= horizonMillis) {
        findings.add(`the log charges '${request.requestId}' at ${before.index} and at ${request.index}`);
      }
      before = request;
    }
  }
}

function idOf(user: string, requestId: string): string {
  return `${user.length}:${user}${requestId}`;
}

function add<K>(counts: Map<K, number>, key: K, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count);
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
