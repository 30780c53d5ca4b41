/**
 * A described request at one node, as its questions tell it from outside: rounds by one version of the rules, each with its
 * reservations and the question under the request's own id. Plain data, and what follows from it.
 */
import type { AllowAnswer, Decision } from '../../src/api/answer.ts';
import type { CustomerRecord } from '../../src/api/customer-record.ts';
import type { LookRequest, Standing } from '../../src/api/look.ts';
import type { Question } from '../../src/api/question.ts';
import type { RefundAnswer } from '../../src/api/refund.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { ExpectedLimit } from './documents.ts';
import { wordsOfStanding } from './naive-judgement.ts';
import type { SimNode } from './sim-node.ts';

/** Of every reservation, and of no client's request. */
export const RESERVED = '~';

export interface Reservation {
  readonly request: AllowRequest;
  answer: AllowAnswer | undefined;
  readonly askedAt: number;
  /** Its node has asked to give it back. */
  isReleased: boolean;
  /** What it was told of that last, and when. Undefined: nobody has answered yet. */
  release: { readonly answer: RefundAnswer; readonly at: number } | undefined;
}

/** One limit that was looked at, and what its partition said. */
export interface LimitLook {
  readonly request: LookRequest;
  readonly standing: Standing;
}

/** By one version of the rules. */
export interface Round {
  readonly version: number;
  /** What its node went by of its customer. */
  readonly record: CustomerRecord | undefined;
  /** By partition, the one that is asked last in front. */
  readonly shares: readonly (readonly ExpectedLimit[])[];
  readonly reservations: Reservation[];
  /** Others have denied it, and its node asks whether the record is still what it went by. */
  isRechecked: boolean;
  /** Under the request's own id. */
  first: { answer: AllowAnswer | undefined; readonly request: AllowRequest } | undefined;
}

export interface Asking {
  readonly request: Question;
  readonly node: SimNode;
  readonly life: number;
  readonly askedAt: number;
  /** Rules of this version, or newer ones, were in force when it came: that was told. */
  readonly rulesAtLeast: number;
  readonly rounds: Round[];
  /** Whose request it is, and what its node knows of that now. */
  readonly customer:
    | {
        readonly key: string;
        readonly known: () => CustomerRecord;
        /** What it went by when it denied, by the state of that partition after that entry. */
        readonly wentBy: (partition: number, index: number) => CustomerRecord;
      }
    | undefined;
  /** That its node has just read that this is so; and that its customer is blocked, and how long it is told to wait for that. */
  confirmed: CustomerRecord | undefined;
  blockedMillis: number | undefined;
  /** What its node went by when it asked for an earlier grant. */
  recalledBy: CustomerRecord | undefined;
  /** How its limits stood where its node looked at them, as others had denied it. */
  readonly looked: LimitLook[];
  /** How often its node asked how one of them stands, answered or not. */
  looks: number;
  /** What is remembered under its id, if that was asked for: a round was refused. */
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
    looked: [],
    looks: 0,
    isAnswered: false,
    isLost: false,
  };
}

export function isGrant(answer: AllowAnswer | undefined): boolean {
  return answer?.kind === 'decision' && answer.decision.allowed;
}

/** Nothing is, or will be, charged by what was answered so. */
export function isCertainlyNone(answer: AllowAnswer | undefined): boolean {
  if (answer === undefined || isGrant(answer)) return false;
  return answer.kind !== 'unavailable' || !answer.proposed;
}

/** A grant of an attempt before. */
export function isRepeat(answer: AllowAnswer | undefined): boolean {
  return answer?.kind === 'decision' && answer.isRepeat === true;
}

/** The request was, or may have been, granted by this round: what it reserved must stay. */
export function mustStay({ first }: Round): boolean {
  return first !== undefined && !isCertainlyNone(first.answer) && !isRepeat(first.answer);
}

/**
 * What its node goes by of its customer if it asks anew: what it has read, or, if it was matched once more since, what it knows.
 *
 * @param guardVersion that the question is bound to, if it is
 */
export function recordOf(
  { customer, confirmed }: Asking,
  guardVersion: number | undefined,
): CustomerRecord | undefined {
  const known = customer?.known();
  return known?.version === guardVersion ? known : (confirmed ?? known);
}

/**
 * What its node compares with what it reads of the customer now: the record by which the last round went, if others denied
 * that round and nobody has asked yet whether it is still so; undefined: what the node knows.
 */
export function recheckedRecord({ rounds }: Asking): CustomerRecord | undefined {
  const last = rounds.at(-1);
  if (last === undefined || last.first !== undefined || last.isRechecked || !isOver(last)) return undefined;
  const refused = last.reservations.filter(({ answer }) => !isGrant(answer));
  if (!refused.every(({ answer }) => answer?.kind === 'decision')) return undefined;
  last.isRechecked = true;
  return last.record;
}

/** It is what a partition said when its node looked at that limit. */
export function isLooked({ looked }: Asking, decision: Decision): boolean {
  const receipt = JSON.stringify(decision.decided);
  return looked.some(({ standing }) => {
    const [limit] = standing.limits;
    if (limit === undefined || JSON.stringify(standing.decided) !== receipt) return false;
    if (decision.isBlocked === true) return standing.isBlocked === true;
    return limit.retryAfterMillis > 0 && wordsOfStanding(limit) === wordsOfStanding(decision);
  });
}

/** It was given back, and its node knows. */
export function isGivenBack({ release }: Reservation): boolean {
  return release?.answer.kind === 'refund' && release.answer.refund.refunded;
}

/** Nothing more is asked in it. */
export function isOver({ first, reservations, shares }: Round): boolean {
  if (first !== undefined) return first.answer !== undefined;
  // The first of them may be answered before the next is asked.
  const isAnswered = reservations.filter(({ answer }) => answer !== undefined).length === shares.length - 1;
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
