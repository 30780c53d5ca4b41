/**
 * The request and the answer of a grant, as users of the client see them, and their conversion to and from the JSON of
 * the cluster.
 */
import { createHash } from 'node:crypto';
import { USER } from '../api/descriptors.ts';
import { invalidInQuestion, invalidInUser, NOBODY_NAMED } from '../api/question.ts';
import { UNMATCHED } from '../api/refusals.ts';
import { InvalidRequestError } from './errors.ts';
import type { FailMode } from './options.ts';

const SUBJECT_LENGTH_MAX = 512;

interface Asked {
  /** The cost of the request: 1 to 1,000,000, default 1. */
  readonly cost?: number | undefined;
  /** When the request happened, by your clock. Only for rules that count by the time of the request. */
  readonly timestampMillis?: number | undefined;
  /**
   * Your own id of 1 to 128 bytes, to repeat the same request later. Without it the client draws one for its retries.
   */
  readonly requestId?: string | undefined;
  /**
   * The only rule to apply: the id of a rule with `named: true`, or a limit in words such as `100/60000ms`. Default:
   * all rules that match.
   */
  readonly rule?: string | undefined;
  /** Overrides the fail mode of the client. */
  readonly failMode?: FailMode | undefined;
}

/** A request for a grant. It has a user, descriptors, or both. */
export type PermitRequest = Asked &
  (
    | {
        /** The descriptor `user`: 1 to 256 bytes. */
        readonly userId: string;
        readonly descriptors?: Readonly<Record<string, string>> | undefined;
      }
    | {
        readonly userId?: string | undefined;
        /** 1 to 16 descriptors by name, such as `user`, `ip` and `endpoint`. The rules find the limits from them. */
        readonly descriptors: Readonly<Record<string, string>>;
      }
  );

/** The place of the decision in the log of its partition. See `decided` in the documentation of the HTTP API. */
export interface PermitReceipt {
  readonly partition: number;
  readonly term: number;
  readonly index: number;
  readonly position?: number;
  readonly timeMillis: number;
}

/** A shadow rule that would have denied the request. */
export interface ShadowDenial {
  readonly rule: string;
  /** The key that the rule counts, such as `user=ada`. */
  readonly key: string;
  readonly limit: number;
  /** Absent: waiting would not have helped. */
  readonly retryAfterMillis?: number;
}

interface Tried {
  /** Absent: no shadow rule would have denied the request, or none answered in time. */
  readonly wouldDeny?: readonly ShadowDenial[];
}

/** The status of the limit that decided. Durations are in milliseconds. */
export interface PermitLimit {
  readonly rule: string;
  /** The key that the rule counts, such as `user=ada`. Absent if the node did not report it. */
  readonly key?: string;
  readonly limit: number;
  /** Absent if a node of an older version answered. */
  readonly windowMillis?: number;
  readonly remaining: number;
  /** Time until the whole limit is free again. */
  readonly resetMillis: number;
  readonly rulesVersion: number;
}

/** The answer to a request. It is a grant only if `allowed` is true. */
export type PermitAnswer =
  | (PermitLimit &
      Tried & {
        readonly kind: 'granted';
        readonly allowed: true;
        /** A leaky bucket queues the request: wait this long before you go on. */
        readonly waitMillis?: number;
        readonly decided: PermitReceipt;
      })
  | (PermitLimit & {
      readonly kind: 'denied';
      readonly allowed: false;
      /** Absent: the limit is 0, so waiting does not help. */
      readonly retryAfterMillis?: number;
      /**
       * Set if no limit was reached: the cluster was restored from a backup, and denies everything until all grants
       * that it may have lost have left their windows.
       */
      readonly reason?: 'restored';
      /** With `reason`: time until the cluster grants again. */
      readonly restoredMillis?: number;
      /** True: the client remembered this denial and did not ask the cluster. */
      readonly isCached: boolean;
      readonly decided: PermitReceipt;
    })
  /** An operator has blocked the client. */
  | {
      readonly kind: 'blocked';
      readonly allowed: false;
      /** Time until the block ends. Absent: the block has no end, so waiting does not help. */
      readonly retryAfterMillis?: number;
      readonly decided: PermitReceipt;
    }
  /** No rule matches, and the rules deny such requests. Waiting does not help. */
  | { readonly kind: 'unmatched'; readonly allowed: false; readonly rulesVersion: number }
  /** No rule limits the request. */
  | (Tried & { readonly kind: 'unlimited'; readonly allowed: true; readonly rulesVersion: number })
  /** The cluster could not decide, so a fail mode did: that of the rules, on a node, or that of this client. */
  | {
      readonly kind: 'degraded';
      readonly allowed: boolean;
      readonly by: 'rules' | 'client';
      /** Only with a denial. */
      readonly retryAfterMillis?: number;
    };

/** A denial because of a limit. */
export type PermitDenied = Extract<PermitAnswer, { readonly kind: 'denied' }>;

/** The cluster's result for one request of a batch. */
export type Reading =
  | { readonly kind: 'answer'; readonly answer: PermitAnswer }
  | { readonly kind: 'invalid' | 'conflict'; readonly field: string; readonly message: string }
  | { readonly kind: 'unavailable'; readonly reason: string; readonly isProposed: boolean };

/**
 * Copies a request, so that later changes by the caller have no effect.
 *
 * @param request must have passed `encodeRequest`
 */
export function copyOf(request: PermitRequest): PermitRequest {
  const { userId, rule, descriptors, cost, timestampMillis, requestId, failMode } = request;
  const named = descriptors === undefined ? undefined : { ...descriptors };
  const copy = { userId, rule, descriptors: named, cost, timestampMillis, requestId, failMode };
  return copy as PermitRequest;
}

/**
 * Encodes a request as JSON for the cluster.
 *
 * @throws InvalidRequestError for the first field out of its bounds, which saves a round trip to a node
 */
export function encodeRequest(request: PermitRequest, requestId: string | undefined, settle?: true): string {
  if (typeof request !== 'object' || request === null)
    throw new InvalidRequestError('request', 'the request must be an object');
  const { userId, rule, descriptors, cost, timestampMillis } = request;
  const rest = { cost, timestampMillis, requestId, settle };
  if (descriptors !== undefined && (typeof descriptors !== 'object' || descriptors === null))
    throw new InvalidRequestError('descriptors', 'descriptors must be an object of names and texts');
  if (userId === undefined && descriptors === undefined)
    throw new InvalidRequestError('userId', NOBODY_NAMED);
  const both = descriptors !== undefined && userId !== undefined && descriptors[USER] !== undefined;
  if (both && descriptors[USER] !== userId)
    throw new InvalidRequestError('userId', 'userId and the descriptor user must be the same');
  const named = new Map(Object.entries(descriptorsOf(request)));
  const invalid =
    (userId === undefined ? undefined : invalidInUser({ userId, rule, ...rest })) ??
    invalidInQuestion({ descriptors: named, rule, ...rest });
  if (invalid !== undefined) throw new InvalidRequestError(invalid.field, invalid.message);
  return JSON.stringify({ userId, rule, descriptors, ...rest });
}

/**
 * Returns a text that is equal for two requests if and only if they have the same rule and descriptors. Cost and time
 * do not matter. Long texts are replaced by a digest, because many are kept in memory.
 */
export function subjectOf(request: PermitRequest): string {
  const named = Object.entries(descriptorsOf(request)).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return brief(JSON.stringify([request.rule, named]));
}

/** Returns the user of a request that has no other descriptor, else undefined. */
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

/**
 * Reads one answer of a batch. Returns undefined if it is malformed. Only status 200 with `allowed: true` becomes a
 * grant.
 */
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
  return { wouldDeny: wouldDeny.filter(isObject).flatMap(readShadowDenial) };
}

function readShadowDenial({ rule, key, limit, retryAfterMillis }: Fields): readonly ShadowDenial[] {
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

/** Reads a denial without a retry-after, which is valid only for a limit of 0. */
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

/** Returns true if the value is a JSON object, not an array or null. */
export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
