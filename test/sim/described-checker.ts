/**
 * Judges described requests (their limits are found by rules) by the questions of nodes, the charges in logs, and the
 * answers to clients. The limits are computed again from the documents. A grant holds all of its limits, a denial
 * leaves no charge, a node refunds only its own charges, and no grant uses limits that other rules found.
 */
import type { AllowAnswer, Decision } from '../../src/api/answer.ts';
import type { AskAnswer } from '../../src/api/question.ts';
import type { RefundRequest } from '../../src/api/refund.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import type { CustomerLedger } from './customer-ledger.ts';
import {
  type Asking,
  isCertainlyNone,
  isGivenBack,
  isGrant,
  isPeeked,
  isOver,
  isRepeat,
  limitsAsked,
  mustStay,
  recordOf,
  RESERVED,
  type Reservation,
  type Round,
  wordsOfAsking,
  wordsOfLimits,
} from './described-rounds.ts';
import { DescribedCustomers } from './described-customers.ts';
import { DescribedLimits, wordsOfRules } from './described-limits.ts';
import { DescribedReceipts } from './described-receipts.ts';
import { DescribedRefunds, type Refunding } from './described-refunds.ts';
import { DescribedShadows } from './described-shadows.ts';
import { DescribedVersions } from './described-versions.ts';
import type { RulesDocument } from './documents.ts';
import type { Asked } from './id-ledger.ts';
import type { SimNode } from './sim-node.ts';
import { checkReservations, type KnownReservation } from './settled-reservations.ts';
import { check } from './story.ts';

export interface DescribedCheckerInit {
  readonly documents: readonly RulesDocument[];
  readonly tables: readonly RuleTable[];
  readonly partitionOf: (userId: string) => number;
  readonly customers: CustomerLedger;
  readonly now: () => number;
}

/** A node asks for this many refunds at once in one partition; the rest wait. */
const RELEASES_AT_ONCE = 64;

/** An attempt that asked for the grant under its id. */
interface Attempt {
  readonly asking: Asking;
  readonly round: Round;
}

interface Charge {
  isTakenBack: boolean;
}

export class DescribedChecker {
  readonly #init: DescribedCheckerInit;
  readonly limits: DescribedLimits;
  readonly #customers: DescribedCustomers;
  /** The newest rule version that an operator knows to be in force everywhere. */
  rulesReported = 0;
  /** By id: the rounds of all attempts that asked for the grant. */
  readonly #attempts = new Map<string, Attempt[]>();
  readonly #reservations = new Map<string, KnownReservation>();
  /** By id: reservations only. */
  readonly #charges = new Map<string, Charge>();
  readonly shadows: DescribedShadows;
  readonly #receipts: DescribedReceipts;
  readonly refunds = new DescribedRefunds();
  readonly #versions = new DescribedVersions();

  constructor(init: DescribedCheckerInit) {
    this.#init = init;
    this.shadows = new DescribedShadows(init.documents);
    this.#receipts = new DescribedReceipts(init.tables);
    this.limits = new DescribedLimits(init.documents, init.partitionOf);
    this.#customers = new DescribedCustomers(init.customers, this.limits);
  }

  /** A log decides by this table from now on: it must equal its document. */
  rules(table: RuleTable): void {
    const meant = this.#init.tables.find(({ version }) => version === table.version);
    check(
      meant !== undefined && wordsOfRules(meant) === wordsOfRules(table),
      () => `the document of version ${table.version} became ${wordsOfRules(table)}`,
    );
  }

  /** A node asks for limits of `asking`. The caller puts the answer into the returned object. */
  asked(asking: Asking, request: AllowRequest): { answer: AllowAnswer | undefined } {
    const version = this.#versions.asked(request);
    const round = this.#roundOf(asking, version, request.guard?.version);
    const limits = wordsOfLimits(limitsAsked(request));
    const id = request.requestId ?? '';
    if (id.startsWith(RESERVED)) {
      const isFree = round.reservations.every((one) => wordsOfLimits(limitsAsked(one.request)) !== limits);
      const isPart = round.parts.slice(1).some((part) => wordsOfLimits(part) === limits);
      check(
        isFree && isPart,
        () =>
          `node ${asking.node.id} reserves ${limits} for ${wordsOfAsking(asking)}, of ` +
          `${JSON.stringify(round.parts.map(wordsOfLimits))} by ${JSON.stringify(round.record)}`,
      );
      check(!this.#reservations.has(id), () => `two reservations have the id ${id}`);
      const askedAt = this.#init.now();
      const own: Reservation = { request, askedAt, answer: undefined, isReleased: false, release: undefined };
      round.reservations.push(own);
      this.#reservations.set(id, { asking, round, own });
      return own;
    }
    const [part = []] = round.parts;
    check(
      wordsOfLimits(part) === limits && id === (asking.request.requestId ?? '') && round.first === undefined,
      () => `node ${asking.node.id} asks for ${limits} under ${id}, for ${wordsOfAsking(asking)}`,
    );
    const hasAll = round.reservations.length === round.parts.length - 1;
    check(
      hasAll && round.reservations.every((one) => this.#isHeld(one)),
      () => `${wordsOfAsking(asking)} is sent to its first partition before all other limits are reserved`,
    );
    round.first = { answer: undefined, request };
    this.#receipts.asked(asking, this.#init.now());
    if (id !== '') this.#attempts.set(id, [...(this.#attempts.get(id) ?? []), { asking, round }]);
    return round.first;
  }

  /** A node asks for a shadow rule. The answer affects only what its partition counts. */
  shadowAsked(asking: Asking, request: AllowRequest): void {
    const version = this.#versions.asked(request);
    const expected = this.limits.of(asking, version, { record: asking.customer?.known(), isShadowed: true });
    const isExpected = limitsAsked(request).every((limit) =>
      expected.some((one) => wordsOfLimits([one]) === wordsOfLimits([limit])),
    );
    check(isExpected, () => `node ${asking.node.id} asks a wrong shadow rule: ${JSON.stringify(request)}`);
    this.shadows.asked(asking, request, this.#init.now());
  }

  /** A node asks for a refund on behalf of a user. Returns false if it does so for itself. */
  refunded(refunding: Refunding, request: RefundRequest): boolean {
    const known = this.#reservations.get(request.requestId);
    if (!this.refunds.isFor(refunding, request.requestId, known)) return false;
    this.refunds.reaches(refunding, request, known);
    return true;
  }

  /** A node asks for a refund. Returns what is refunded. */
  released({ id: node, life }: SimNode, { userId, requestId }: RefundRequest): Reservation {
    const shadow = this.shadows.released({ id: node, life }, requestId);
    if (shadow !== undefined) return shadow;
    const known = this.#reservations.get(requestId);
    const isOwn = known?.asking.node.id === node && known.asking.life === life;
    check(
      isOwn && known.own.request.userId === userId,
      () => `node ${node} gives ${requestId} of ${userId} back, which it did not reserve`,
    );
    const mayAsk = !known.own.isReleased || (known.own.release !== undefined && !isGivenBack(known.own));
    check(mayAsk, () => `node ${node} gives ${requestId} back twice`);
    check(
      !mustStay(known.round),
      () => `${wordsOfAsking(known.asking)} is or may be granted, but ${requestId} is given back`,
    );
    known.own.isReleased = true;
    known.own.release = undefined;
    return known.own;
  }

  /** A client gets an answer. Returns the question that it answers if the node denied by itself, without asking one. */
  answered(asking: Asking, answer: AskAnswer, partition: number): AllowRequest | undefined {
    const round = asking.rounds.at(-1);
    for (const before of asking.rounds.slice(0, -1)) this.#checkReleased(asking, before);
    if (round !== undefined && !mustStay(round)) this.#checkReleased(asking, round);
    if (answer.kind === 'unlimited' || answer.kind === 'unmatched') {
      this.#customers.mustBeInPlace([{ asking, record: asking.confirmed }]);
      this.limits.mustHaveNone(asking, answer);
      return undefined;
    }
    if (answer.kind !== 'decision') return undefined;
    const { decision } = answer;
    if (decision.allowed && !this.refunds.isAsked(asking.request))
      this.#receipts.granted(asking, decision, this.#init.now());
    if (isGrant(asking.recalled)) {
      check(
        asking.recalled?.kind === 'decision' && decision === asking.recalled.decision,
        () => `${wordsOfAsking(asking)} does not get the answer of its earlier grant`,
      );
      return undefined;
    }
    const answers = [round?.first?.answer, ...(round?.reservations ?? []).map((one) => one.answer)];
    const decisions = answers.flatMap((one) => (one?.kind === 'decision' ? [one.decision] : []));
    if (!decision.allowed) {
      // Its node has read the block, and asked no other.
      if (asking.blockedMillis !== undefined && decision.isBlocked === true) {
        const isReported = decision.retryAfterMillis === asking.blockedMillis;
        check(isReported, () => `${wordsOfAsking(asking)} is blocked for ${asking.blockedMillis} ms`);
        return undefined;
      }
      if (isPeeked(asking, decision)) return undefined;
      const isReported = decisions.some((one) => !one.allowed && one.ruleId === decision.ruleId);
      if (isReported && round !== undefined)
        this.#customers.mustBeUnder(asking, round.version, decision.ruleId);
      return isReported ? undefined : this.#unasked(asking, decision, partition);
    }
    check(round !== undefined, () => `${wordsOfAsking(asking)} was granted, but no node asked for it`);
    check(
      isGrant(round.first?.answer) && decisions[0]?.decided.index === decision.decided.index,
      () => `${wordsOfAsking(asking)} is granted, but not by its first partition`,
    );
    if (isRepeat(round.first?.answer)) return undefined;
    // Attempts under one id get the same grant, which one of them made. A node that asked twice does not say which.
    const attempts = this.#attempts.get(asking.request.requestId ?? '') ?? [{ asking, round }];
    this.#customers.mustBeInPlace(attempts.map((one) => ({ asking: one.asking, record: one.round.record })));
    check(round.record?.isBlocked !== true, () => `${wordsOfAsking(asking)} is blocked, but granted`);
    check(
      round.reservations.every((one) => this.#isHeld(one)) || this.refunds.isAsked(asking.request),
      () => `${wordsOfAsking(asking)} is granted, but does not hold all its limits`,
    );
    if (round.reservations.length === 0) return undefined;
    const reported = idsOf(decision.limits ?? []);
    const expected = attempts.map(
      ({
        round: {
          parts: [part = []],
        },
      }) => idsOf([...part, ...round.parts.slice(1).flat()]),
    );
    check(
      expected.includes(reported),
      () => `${wordsOfAsking(asking)} gets the limits ${reported} instead of ${expected.join(' or ')}`,
    );
    const least = Math.min(...decisions.map(({ remaining }) => remaining));
    check(
      decision.remaining === least,
      () => `${wordsOfAsking(asking)} is answered with ${decision.remaining} remaining instead of ${least}`,
    );
    return undefined;
  }

  /** The question that the node would send to a leader of one part of the request. */
  #unasked(asking: Asking, { ruleId, rulesVersion, decided }: Decision, partition: number): AllowRequest {
    const { customer, request, recalledBy, confirmed } = asking;
    const record = customer && (recalledBy ?? confirmed ?? customer.wentBy(partition, decided.index));
    const parts = this.limits.partsOfRequest(asking, rulesVersion, record);
    const part = parts.find((limits) => limits.some((limit) => limit.ruleId === ruleId)) ?? [];
    const [first, ...further] = part;
    const isSure = customer === undefined || this.limits.isOwn(asking, part);
    const guard = customer && { userId: customer.key, version: record?.version ?? 0 };
    check(
      first !== undefined && parts.length > 1 && isSure,
      () => `${wordsOfAsking(asking)} is denied by ${ruleId}, which grants it`,
    );
    const { timestampMillis } = request;
    // Without an id nothing depends on this placeholder for the questions.
    return {
      ...first,
      timestampMillis,
      ...(guard && { guard }),
      ...(further.length > 0 && { askedDigest: 1, further }),
    };
  }

  /** A log charges this, by the rules of `version`. */
  charged(asked: Asked, version: number): void {
    const { requestId = '' } = asked;
    this.#versions.charged(asked, version);
    if (requestId.startsWith(RESERVED)) this.#charges.set(requestId, { isTakenBack: false });
    else this.refunds.charged(asked);
  }

  /** A log refunds this, for the first time. */
  tookBack({ requestId = '', userId }: Asked): void {
    if (!requestId.startsWith(RESERVED)) return;
    const own = this.#reservations.get(requestId)?.own ?? this.shadows.ownOf(requestId);
    const charge = this.#charges.get(requestId);
    check(
      (own?.isReleased === true || this.refunds.isReached(requestId)) && charge !== undefined,
      () => `the log refunds ${requestId} of ${userId}, but no node asked for that`,
    );
    charge.isTakenBack = true;
  }

  /** Everything is healed, applied and answered. */
  checkSettled(nodes: readonly SimNode[]): void {
    const reservations = [...this.#reservations.values()];
    const isCharged = (id: string): boolean => this.#charges.get(id)?.isTakenBack === false;
    this.refunds.checkSettled(reservations, isCharged);
    checkReservations({
      reservations,
      shadows: this.shadows.all(),
      isCharged,
      nodes,
      tables: this.#init.tables,
    });
  }

  #roundOf(asking: Asking, version: number, guardVersion: number | undefined): Round {
    const last = asking.rounds.at(-1);
    if (last !== undefined && !isOver(last)) {
      check(
        last.version === version,
        () => `two versions of the rules ask at once for ${wordsOfAsking(asking)}`,
      );
      return last;
    }
    if (last !== undefined) this.#checkReleased(asking, last);
    const record = recordOf(asking, guardVersion);
    asking.confirmed = undefined;
    const round: Round = {
      version,
      record,
      parts: this.limits.partsOfRequest(asking, version, record),
      reservations: [],
      isRechecked: false,
      first: undefined,
    };
    asking.rounds.push(round);
    return round;
  }

  /** Granted in the log, and not refunded. */
  #isHeld({ request, answer, isReleased }: Reservation): boolean {
    const charge = this.#charges.get(request.requestId ?? '');
    return isGrant(answer) && charge?.isTakenBack === false && !isReleased;
  }

  /** Each possible charge has been asked back, or waits for other refunds. */
  #checkReleased(asking: Asking, { reservations }: Round): void {
    const kept = reservations.find((one) => !isCertainlyNone(one.answer) && !one.isReleased);
    if ((asking.node.core?.requests.reservations.pendingCount ?? 0) > RELEASES_AT_ONCE) return;
    check(
      kept === undefined,
      () => `${wordsOfAsking(asking)} is not granted, but ${kept?.request.requestId} is not given back`,
    );
  }
}

function idsOf(limits: readonly { readonly ruleId: string }[]): string {
  return JSON.stringify(limits.map(({ ruleId }) => ruleId).toSorted());
}
