/** What is asked for a grant and what is answered, as users of the client see it; and one as the JSON of the cluster has the other. */
import { createHash } from 'node:crypto';
import { USER } from '../api/descriptors.ts';
import { invalidInQuestion, invalidInUser } from '../api/question.ts';
import { UNMATCHED } from '../api/unmatched.ts';
import { InvalidRequestError } from './errors.ts';
import type { FailMode } from './options.ts';

const SUBJECT_LENGTH_MAX = 512;

interface Asked {
  /** 1 to 1,000,000, default 1. */
  readonly cost?: number | undefined;
  /** When it happened by your clock, where the rule counts by that. */
  readonly timestampMillis?: number | undefined;
  /** 1 to 128 bytes: yours, to repeat the same request later. Without it the client draws one for its own retries. */
  readonly requestId?: string | undefined;
  /** By this one alone: the id of one with `named: true`, or one that is stated, such as `100/60000ms`. Default: all that match. */
  readonly rule?: string | undefined;
  /** Instead of that of the client. */
  readonly failMode?: FailMode | undefined;
}

/** A grant is asked for under all limits that the rules find, or by one rule. It is known who asks, what is asked, or both. */
export type PermitRequest = Asked &
  (
    | {
        /** The descriptor `user`: 1 to 256 bytes. */
        readonly userId: string;
        readonly descriptors?: Readonly<Record<string, string>> | undefined;
      }
    | {
        readonly userId?: string | undefined;
        /** 1 to 16 names with texts: `user`, `ip`, `endpoint`, or whatever the rules ask for. */
        readonly descriptors: Readonly<Record<string, string>>;
      }
  );

/** Where the decision stands in the log: see `decided` in the documentation of the HTTP door. */
export interface PermitReceipt {
  readonly partition: number;
  readonly term: number;
  readonly index: number;
  readonly position?: number;
  readonly timeMillis: number;
}

/** A rule in shadow that would have denied what was let through. */
export interface PermitTrial {
  readonly rule: string;
  /** What the rule counts, such as `user=ada`. */
  readonly key: string;
  readonly limit: number;
  /** Absent: no wait would have helped. */
  readonly retryAfterMillis?: number;
}

interface Tried {
  /** Absent: no rule in shadow would have denied it, or none answered in time. */
  readonly wouldDeny?: readonly PermitTrial[];
}

export interface PermitLimit {
  readonly rule: string;
  /** What the rule counts, such as `user=ada`. Absent where it is not known. */
  readonly key?: string;
  readonly limit: number;
  /** Absent where a node of an older version answered. */
  readonly windowMillis?: number;
  readonly remaining: number;
  /** Until the whole limit is free again. */
  readonly resetMillis: number;
  readonly rulesVersion: number;
}

/** Nothing but `allowed: true` is a grant. */
export type PermitAnswer =
  | (PermitLimit &
      Tried & {
        readonly kind: 'granted';
        readonly allowed: true;
        /** A leaky bucket that queues has granted it: wait for this long before you go on. */
        readonly waitMillis?: number;
        readonly decided: PermitReceipt;
      })
  | (PermitLimit & {
      readonly kind: 'denied';
      readonly allowed: false;
      /** Absent: no wait helps, for the limit is 0. */
      readonly retryAfterMillis?: number;
      /** No limit was reached: the cluster was restored, and denies everybody until all that it may have lost has left the window. */
      readonly reason?: 'restored';
      /** With `reason`: until then, in milliseconds. */
      readonly restoredMillis?: number;
      /** This client remembered the denial, and asked nobody. */
      readonly isCached: boolean;
      readonly decided: PermitReceipt;
    })
  /** By an operator. */
  | {
      readonly kind: 'blocked';
      readonly allowed: false;
      /** Until the block ends. Absent: it has no end, and no wait helps. */
      readonly retryAfterMillis?: number;
      readonly decided: PermitReceipt;
    }
  /** No rule is for it, and the rules of the cluster deny such requests. No wait helps. */
  | { readonly kind: 'unmatched'; readonly allowed: false; readonly rulesVersion: number }
  /** No rule limits it. */
  | (Tried & { readonly kind: 'unlimited'; readonly allowed: true; readonly rulesVersion: number })
  /** Nobody could decide, and a fail mode did: that of the rules, at a node, or that of this client. */
  | {
      readonly kind: 'degraded';
      readonly allowed: boolean;
      readonly by: 'rules' | 'client';
      /** Of a denial. */
      readonly retryAfterMillis?: number;
    };

export type PermitDenied = Extract<PermitAnswer, { readonly kind: 'denied' }>;

/** What the cluster said of one request. */
export type Reading =
  | { readonly kind: 'answer'; readonly answer: PermitAnswer }
  | { readonly kind: 'invalid' | 'conflict'; readonly field: string; readonly message: string }
  | { readonly kind: 'unavailable'; readonly reason: string; readonly isProposed: boolean };

/** The same, whatever becomes of the caller's object while it waits. @param request one that was encoded */
export function copyOf(request: PermitRequest): PermitRequest {
  const { userId, rule, descriptors, cost, timestampMillis, requestId, failMode } = request;
  const named = descriptors === undefined ? undefined : { ...descriptors };
  const copy = { userId, rule, descriptors: named, cost, timestampMillis, requestId, failMode };
  return copy as PermitRequest;
}

/**
 * What is asked, as JSON of the cluster.
 *
 * @throws InvalidRequestError for the first field that is out of its bounds: a node would say so only after a round trip
 */
export function encodeRequest(request: PermitRequest, requestId: string | undefined, settle?: true): string {
  if (typeof request !== 'object' || request === null)
    throw new InvalidRequestError('request', 'the request must be an object');
  const { userId, rule, descriptors, cost, timestampMillis } = request;
  const rest = { cost, timestampMillis, requestId, settle };
  if (descriptors !== undefined && (typeof descriptors !== 'object' || descriptors === null))
    throw new InvalidRequestError('descriptors', 'descriptors must be an object of names and texts');
  const both = descriptors !== undefined && userId !== undefined && descriptors[USER] !== undefined;
  if (both && descriptors[USER] !== userId)
    throw new InvalidRequestError('userId', 'userId and the descriptor user must be the same');
  const named = new Map(Object.entries(descriptorsOf(request)));
  const isUser = userId !== undefined || descriptors === undefined;
  const invalid =
    (isUser ? invalidInUser({ userId: userId ?? '', rule, ...rest }) : undefined) ??
    invalidInQuestion({ descriptors: named, rule, ...rest });
  if (invalid !== undefined) throw new InvalidRequestError(invalid.field, invalid.message);
  return JSON.stringify({ userId, rule, descriptors, ...rest });
}

/** The same text for whatever is decided alike, but for its cost, and another for all else. Of a long one the digest: many are remembered. */
export function subjectOf(request: PermitRequest): string {
  const named = Object.entries(descriptorsOf(request)).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return brief(JSON.stringify([request.rule, named]));
}

/** Who asks, if nothing else is said of the request; else undefined. */
export function onlyUserOf(request: PermitRequest): string | undefined {
  const { [USER]: user, ...others } = descriptorsOf(request);
  return Object.keys(others).length === 0 ? user : undefined;
}

function descriptorsOf({ userId, descriptors }: PermitRequest): Readonly<Record<string, string>> {
  return { ...descriptors, ...(userId !== undefined && { [USER]: userId }) };
}

function brief(subject: string): string {
  return subject.length <= SUBJECT_LENGTH_MAX
    ? subject
    : createHash('sha256').update(subject).digest('base64');
}

/** One of the answers of a batch; undefined if it is none. Only status 200 with `allowed: true` becomes a grant. */
export function readAnswer(value: unknown): Reading | undefined {
  if (!isObject(value)) return undefined;
  const { status, allowed } = value;
  switch (status) {
    case 200:
      return allowed === true ? readAllowed(value) : undefined;
    case 429:
      return allowed === false ? readDenied(value) : undefined;
    case 403:
      return allowed === false ? readHeldBack(value) : undefined;
    case 400:
    case 422:
      return readFault(status === 400 ? 'invalid' : 'conflict', value);
    case 503: {
      const { reason, proposed } = value;
      if (typeof reason !== 'string' || typeof proposed !== 'boolean') return undefined;
      return { kind: 'unavailable', reason, isProposed: proposed };
    }
    default:
      return undefined;
  }
}

type Fields = Readonly<Record<string, unknown>>;

function readAllowed(value: Fields): Reading | undefined {
  const { degraded, unlimited, rulesVersion, waitMillis, decided } = value;
  if (degraded === true) return { kind: 'answer', answer: { kind: 'degraded', allowed: true, by: 'rules' } };
  if (unlimited === true && isCount(rulesVersion))
    return {
      kind: 'answer',
      answer: { kind: 'unlimited', allowed: true, rulesVersion, ...readTried(value) },
    };
  const limit = readLimit(value);
  if (limit === undefined || !isReceipt(decided)) return undefined;
  const wait = isCount(waitMillis) ? { waitMillis } : {};
  const granted = {
    kind: 'granted',
    allowed: true,
    ...limit,
    ...wait,
    ...readTried(value),
    decided,
  } as const;
  return { kind: 'answer', answer: granted };
}

function readTried({ wouldDeny }: Fields): Tried {
  if (!Array.isArray(wouldDeny)) return {};
  return { wouldDeny: wouldDeny.filter(isObject).flatMap(readTrial) };
}

function readTrial({ rule, key, limit, retryAfterMillis }: Fields): readonly PermitTrial[] {
  if (typeof rule !== 'string' || typeof key !== 'string' || !isCount(limit)) return [];
  return [{ rule, key, limit, ...(isCount(retryAfterMillis) && { retryAfterMillis }) }];
}

function readDenied(value: Fields): Reading | undefined {
  const { degraded, retryAfterMillis, decided, reason, restoredMillis } = value;
  if (retryAfterMillis === undefined) return readHopeless(value);
  if (!isCount(retryAfterMillis)) return undefined;
  if (degraded === true)
    return { kind: 'answer', answer: { kind: 'degraded', allowed: false, by: 'rules', retryAfterMillis } };
  const limit = readLimit(value);
  if (limit === undefined || !isReceipt(decided)) return undefined;
  const denied = { kind: 'denied', allowed: false, isCached: false } as const;
  const isRestored = reason === 'restored' && isCount(restoredMillis);
  const restored = isRestored ? ({ reason: 'restored', restoredMillis } as const) : {};
  return { kind: 'answer', answer: { ...denied, ...limit, retryAfterMillis, ...restored, decided } };
}

function readHeldBack({ reason, rulesVersion, retryAfterMillis, decided }: Fields): Reading | undefined {
  if (reason === UNMATCHED && isCount(rulesVersion))
    return { kind: 'answer', answer: { kind: 'unmatched', allowed: false, rulesVersion } };
  if (!isReceipt(decided)) return undefined;
  const wait = isCount(retryAfterMillis) ? { retryAfterMillis } : {};
  return { kind: 'answer', answer: { kind: 'blocked', allowed: false, ...wait, decided } };
}

/** Nothing fits a limit of 0, whenever it is asked again. */
function readHopeless(value: Fields): Reading | undefined {
  const { decided } = value;
  const limit = readLimit(value);
  if (limit?.limit !== 0 || !isReceipt(decided)) return undefined;
  return { kind: 'answer', answer: { kind: 'denied', allowed: false, isCached: false, ...limit, decided } };
}

function readLimit({
  rule,
  key,
  limit,
  windowMillis,
  remaining,
  resetMillis,
  rulesVersion,
}: Fields): PermitLimit | undefined {
  if (typeof rule !== 'string' || !isCount(limit) || !isCount(remaining) || !isCount(resetMillis))
    return undefined;
  if (!isCount(rulesVersion)) return undefined;
  const window = isCount(windowMillis) ? { windowMillis } : {};
  const counted = typeof key === 'string' ? { key } : {};
  return { rule, ...counted, limit, ...window, remaining, resetMillis, rulesVersion };
}

function readFault(kind: 'invalid' | 'conflict', { error }: Fields): Reading | undefined {
  if (!isObject(error)) return undefined;
  const { field, message } = error;
  return typeof field === 'string' && typeof message === 'string' ? { kind, field, message } : undefined;
}

function isReceipt(value: unknown): value is PermitReceipt {
  return (
    isObject(value) && ['partition', 'term', 'index', 'timeMillis'].every((name) => isCount(value[name]))
  );
}

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
