/**
 * A request that consists of ordered lists of descriptors, as API gateways send it (Envoy's rate limit protocol).
 * Each list is one question to the rules of a domain and gets its own outcome. Either all lists are granted, or
 * nothing is charged. Plain data, and the check of the request.
 */
import type { ConflictingId, Invalid, LimitStatus, Unavailable } from './answer.ts';
import { isBoundedInteger, isBoundedText } from './bounded.ts';
import {
  type AskAnswer,
  type Question,
  DESCRIPTOR_NAME_BYTES_MAX,
  DESCRIPTOR_VALUE_BYTES_MAX,
} from './question.ts';
import { COST_MAX } from './request.ts';
import type { StatedRule } from './stated-rule.ts';

/** The most lists in one request. */
export const LISTS_MAX = 50;
/** The most descriptors in one list. No rule matches a longer list. */
export const LIST_ENTRIES_MAX = 16;
/**
 * The largest cost of a list. No limit has room for it. Larger costs are sent as this one, since no limit has room
 * for them either.
 */
export const LIST_COST_MAX = COST_MAX + 1;
/** The longest domain in UTF-8 bytes. */
export const LISTED_DOMAIN_BYTES_MAX = 128;

/** One descriptor of a list. */
export interface ListEntry {
  /** 1 to `DESCRIPTOR_NAME_BYTES_MAX` bytes. */
  readonly key: string;
  /** 0 to `DESCRIPTOR_VALUE_BYTES_MAX` bytes. */
  readonly value: string;
}

/** One list of descriptors. */
export interface DescriptorList {
  /** 1 to `LIST_ENTRIES_MAX`. */
  readonly entries: readonly ListEntry[];
  /** 0 to `LIST_COST_MAX`. With 0, the answer only says whether anything is left, and nothing is charged. */
  readonly cost: number;
  /** A limit that the request states itself. It is used instead of the rules for these entries. */
  readonly limit?: StatedRule;
}

/** A request of lists of descriptors. */
export interface ListedRequest {
  /** The domain whose rules are asked: 1 to `LISTED_DOMAIN_BYTES_MAX` bytes. */
  readonly domain: string;
  /** 1 to `LISTS_MAX`. */
  readonly lists: readonly DescriptorList[];
}

/**
 * The outcome of one list of descriptors:
 *
 * - `free`: nothing limits it: no rule matches, or the rule that matches has no limit or is a shadow rule
 * - `unlimited`: a rule says that it has no limit
 * - `unmatched`: no rule matches, and the rule document denies such requests
 * - `limited`: it has a limit. `limitStatus` is absent if no partition was asked, because another list denied the
 *   request.
 */
export type ListOutcome =
  | { readonly kind: 'free' | 'unlimited' | 'unmatched' }
  | {
      readonly kind: 'limited';
      /** True if this list is a reason why the request is denied. */
      readonly isOver: boolean;
      /** The name of the rule in its document; empty if it has none. */
      readonly name: string;
      readonly limitStatus?: LimitStatus;
      /**
       * Milliseconds until the block of a key of this list ends. Absent if no key is blocked, or if the block has no
       * end.
       */
      readonly blockedMillis?: number;
    };

/** The answer to a `ListedRequest`. */
export type ListedAnswer =
  | {
      readonly kind: 'listed';
      readonly allowed: boolean;
      /**
       * One outcome for each list, in the order of the request. If the request is denied, at least one has `isOver`.
       */
      readonly lists: readonly ListOutcome[];
      /**
       * The decision, for the counters of answers. Absent if nothing was charged and no partition was asked for a
       * grant.
       */
      readonly decided?: AskAnswer;
    }
  | Invalid
  | ConflictingId
  | Unavailable;

/** Called once. */
export type ListedDone = (answer: ListedAnswer) => void;

/** The first field that is out of its bounds. Undefined if the request is well-formed. */
export function invalidInListed({ domain, lists }: ListedRequest): Invalid | undefined {
  if (!isBoundedText(domain, LISTED_DOMAIN_BYTES_MAX))
    return wrong('domain', `must be text of 1 to ${LISTED_DOMAIN_BYTES_MAX} bytes`);
  if (lists.length === 0 || lists.length > LISTS_MAX)
    return wrong('descriptors', `must be 1 to ${LISTS_MAX}`);
  for (const [i, list] of lists.entries()) {
    const invalid = invalidInList(list, `descriptors[${i}]`);
    if (invalid !== undefined) return invalid;
  }
  return undefined;
}

function invalidInList({ entries, cost }: DescriptorList, path: string): Invalid | undefined {
  if (entries.length === 0 || entries.length > LIST_ENTRIES_MAX)
    return wrong(`${path}.entries`, `must be 1 to ${LIST_ENTRIES_MAX}`);
  for (const [i, { key, value }] of entries.entries()) {
    if (!isBoundedText(key, DESCRIPTOR_NAME_BYTES_MAX))
      return wrong(`${path}.entries[${i}].key`, `must be text of 1 to ${DESCRIPTOR_NAME_BYTES_MAX} bytes`);
    if (value !== '' && !isBoundedText(value, DESCRIPTOR_VALUE_BYTES_MAX))
      return wrong(`${path}.entries[${i}].value`, `must be text of 0 to ${DESCRIPTOR_VALUE_BYTES_MAX} bytes`);
  }
  if (!isBoundedInteger(cost, 0, LIST_COST_MAX))
    return wrong(`${path}.hits_addend`, `must be an integer from 0 to ${LIST_COST_MAX}`);
  return undefined;
}

function wrong(field: string, bound: string): Invalid {
  return { kind: 'invalid', field, message: `${field} ${bound}` };
}

/**
 * The same request as a `Question`, for the counters of answers: the descriptors of its first list, and the largest
 * cost of all lists.
 */
export function asQuestion({ lists }: ListedRequest): Question {
  const entries = lists[0]?.entries ?? [];
  return {
    descriptors: new Map(entries.map(({ key, value }) => [key, value])),
    cost: Math.max(1, ...lists.map(({ cost }) => cost)),
  };
}
