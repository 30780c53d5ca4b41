/**
 * A described request at one node, as its questions show it from outside: rounds by one version of the rules, each with
 * its reservations and the question under the request's own id. Plain data and functions of it.
 */
import type { AllowAnswer, Decision } from '../../src/api/answer.ts';
import type { CustomerRecord } from '../../src/api/customer-record.ts';
import type { PeekRequest, KeyStatus } from '../../src/api/peek.ts';
import type { Question } from '../../src/api/question.ts';
import type { RefundAnswer } from '../../src/api/refund.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { ExpectedLimit } from './documents.ts';
import { wordsOfStatus } from './naive-judgement.ts';
import type { SimNode } from './sim-node.ts';

/** The prefix of the ids of reservations. No client's request has it. */
export const RESERVED = '~';

export interface Reservation {
  readonly request: AllowRequest;
  answer: AllowAnswer | undefined;
  readonly askedAt: number;
  /** Its node has asked for the refund. */
  isReleased: boolean;
  /** The last answer to the refund, and when it came. Undefined: there is none yet. */
  release: { readonly answer: RefundAnswer; readonly at: number } | undefined;
}

/** A peek at one limit, and the answer of its partition. */
export interface LimitPeek {
  readonly request: PeekRequest;
  readonly keyStatus: KeyStatus;
}

/** By one version of the rules. */
export interface Round {
  readonly version: number;
  /** The record of its customer that its node used. */
  readonly record: CustomerRecord | undefined;
  /** By partition. The one that is asked last comes first. */
  readonly parts: readonly (readonly ExpectedLimit[])[];
  readonly reservations: Reservation[];
  /** Other limits have denied it, and its node checks whether the record is still the one that it used. */
  isRechecked: boolean;
  /** Under the request's own id. */
  first: { answer: AllowAnswer | undefined; readonly request: AllowRequest } | undefined;
}

export interface Asking {
  readonly request: Question;
  readonly node: SimNode;
  readonly life: number;
  readonly askedAt: number;
  /** Rules of this version, or newer ones, were known to be in force when it came. */
  readonly rulesAtLeast: number;
  readonly rounds: Round[];
  /** The customer of the request, and the record of the customer that its node knows now. */
  readonly customer:
    | {
        readonly key: string;
        readonly known: () => CustomerRecord;
        /** The record that it used when it denied by the state of that partition after that entry. */
        readonly wentBy: (partition: number, index: number) => CustomerRecord;
      }
    | undefined;
  /** The record that its node has just read and confirmed; and the reported wait if its customer is blocked. */
  confirmed: CustomerRecord | undefined;
  blockedMillis: number | undefined;
  /** The record that its node used when it asked for an earlier grant. */
  recalledBy: CustomerRecord | undefined;
  /** The status of its limits when its node peeked at them, after others had denied it. */
  readonly peeked: LimitPeek[];
  /** How many peeks at its limits its node sent, answered or not. */
  peeks: number;
  /** The remembered grant under its id, if the node asked for it, because a round was refused. */
  recalled: AllowAnswer | undefined;
  isAnswered: boolean;
  /** Its process ended before it was answered. */
  isLost: boolean;
}

/** A client asks `node` now. */
export function newAsking(
  node: SimNode,
  request: Question,
  known: Pick<Asking, 'askedAt' | 'rulesAtLeast' | 'customer'>,
): Asking {
  return {
    ...known,
    request,
    node,
    life: node.life,
    rounds: [],
    confirmed: undefined,
    blockedMillis: undefined,
    recalledBy: undefined,
    recalled: undefined,
    peeked: [],
    peeks: 0,
    isAnswered: false,
    isLost: false,
  };
}

export function isGrant(answer: AllowAnswer | undefined): boolean {
  return answer?.kind === 'decision' && answer.decision.allowed;
}

/** With this answer nothing is or will be charged. */
export function isCertainlyNone(answer: AllowAnswer | undefined): boolean {
  if (answer === undefined || isGrant(answer)) return false;
  return answer.kind !== 'unavailable' || !answer.proposed;
}

/** The grant of an earlier attempt. */
export function isRepeat(answer: AllowAnswer | undefined): boolean {
  return answer?.kind === 'decision' && answer.isRepeat === true;
}

/** This round granted the request, or may have: its reservations must stay. */
export function mustStay({ first }: Round): boolean {
  return first !== undefined && !isCertainlyNone(first.answer) && !isRepeat(first.answer);
}

/**
 * The record of its customer that its node uses if it asks anew: the one that it has read, or, if the request was
 * matched again since, the one that it knows.
 *
 * @param guardVersion the version that the question is bound to, if it is
 */
export function recordOf(
  { customer, confirmed }: Asking,
  guardVersion: number | undefined,
): CustomerRecord | undefined {
  const known = customer?.known();
  return known?.version === guardVersion ? known : (confirmed ?? known);
}

/**
 * The record that its node compares with the one it reads now: that of the last round, if others denied that round and
 * the node has not checked the record yet; undefined: the one that the node knows.
 */
export function recheckedRecord({ rounds }: Asking): CustomerRecord | undefined {
  const last = rounds.at(-1);
  if (last === undefined || last.first !== undefined || last.isRechecked || !isOver(last)) return undefined;
  const refused = last.reservations.filter(({ answer }) => !isGrant(answer));
  if (!refused.every(({ answer }) => answer?.kind === 'decision')) return undefined;
  last.isRechecked = true;
  return last.record;
}

/** The decision is the partition's answer to a peek at that limit. */
export function isPeeked({ peeked }: Asking, decision: Decision): boolean {
  const receipt = JSON.stringify(decision.decided);
  return peeked.some(({ keyStatus }) => {
    const [limit] = keyStatus.limits;
    if (limit === undefined || JSON.stringify(keyStatus.decided) !== receipt) return false;
    if (decision.isBlocked === true) return keyStatus.isBlocked === true;
    return limit.retryAfterMillis > 0 && wordsOfStatus(limit) === wordsOfStatus(decision);
  });
}

/** It was refunded, and its node knows. */
export function isGivenBack({ release }: Reservation): boolean {
  return release?.answer.kind === 'refund' && release.answer.refund.refunded;
}

/** Nothing more is asked in it. */
export function isOver({ first, reservations, parts }: Round): boolean {
  if (first !== undefined) return first.answer !== undefined;
  // The first of them may be answered before the next is asked.
  const isAnswered = reservations.filter(({ answer }) => answer !== undefined).length === parts.length - 1;
  return isAnswered && reservations.some(({ answer }) => !isGrant(answer));
}

export function limitsAsked({ userId, ruleId = '', cost = 1, further = [] }: AllowRequest): ExpectedLimit[] {
  const behind = further.map((limit) => ({
    userId: limit.userId,
    ruleId: limit.ruleId,
    cost: limit.cost ?? 1,
  }));
  return [{ userId, ruleId, cost }, ...behind];
}

export function wordsOfLimits(limits: readonly ExpectedLimit[]): string {
  return JSON.stringify(limits.map(({ userId, ruleId, cost }) => [userId, ruleId, cost]));
}

export function wordsOfAsking({ request: { descriptors, cost, requestId }, node }: Asking): string {
  return `${JSON.stringify({ ...Object.fromEntries(descriptors), cost, requestId })} at node ${node.id}`;
}
