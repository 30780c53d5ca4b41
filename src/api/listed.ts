/**
 * A request that says what it is by lists of descriptors in an order, as gateways ask: each list is one question to the rules of a
 * domain, and has an answer of its own. All lists are granted, or nothing is charged. Plain data, and the check of what is asked.
 */
import type { ConflictingId, Invalid, LimitStanding, Unavailable } from './answer.ts';
import { isBoundedInteger, isBoundedText } from './bounded.ts';
import {
  type AskAnswer,
  type Question,
  DESCRIPTOR_NAME_BYTES_MAX,
  DESCRIPTOR_VALUE_BYTES_MAX,
} from './question.ts';
import { COST_MAX } from './request.ts';
import type { StatedRule } from './stated-rule.ts';

/** The most lists of one request. */
export const LISTS_MAX = 50;
/** The most descriptors of one list: no rule is for longer ones. */
export const LIST_ENTRIES_MAX = 16;
/** The largest cost of a list: no limit has room for it, nor for any other above `COST_MAX`. */
export const LIST_COST_MAX = COST_MAX + 1;
/** The longest domain, in UTF-8 bytes. */
export const LISTED_DOMAIN_BYTES_MAX = 128;

export interface ListEntry {
  /** 1 to `DESCRIPTOR_NAME_BYTES_MAX` bytes. */
  readonly key: string;
  /** 0 to `DESCRIPTOR_VALUE_BYTES_MAX` bytes. */
  readonly value: string;
}

export interface DescriptorList {
  /** 1 to `LIST_ENTRIES_MAX`. */
  readonly entries: readonly ListEntry[];
  /** 0 to `LIST_COST_MAX`. 0: it is only looked whether anything is left, and nothing is charged. */
  readonly cost: number;
  /** To be decided by instead of what the rules say of these entries. */
  readonly limit?: StatedRule;
}

export interface ListedRequest {
  /** Whose rules are asked: 1 to `LISTED_DOMAIN_BYTES_MAX` bytes. */
  readonly domain: string;
  /** 1 to `LISTS_MAX`. */
  readonly lists: readonly DescriptorList[];
}

/**
 * The answer to one list of descriptors.
 *
 * - `free`: nothing limits it, because no rule matches, or the rule that matches states no limit or is in shadow
 * - `unlimited`: a rule says that it has no limit
 * - `unmatched`: no rule matches it, and the document denies such requests
 * - `limited`: it has a limit. `standing` is absent if no partition was asked about it, because another list denied the request
 */
export type ListOutcome =
  | { readonly kind: 'free' | 'unlimited' | 'unmatched' }
  | {
      readonly kind: 'limited';
      /** This list is a reason why the request is denied. */
      readonly isOver: boolean;
      /** What the rule is called in its document; empty: it has no name. */
      readonly name: string;
      readonly standing?: LimitStanding;
      /** An operator blocked a key of the list: how long the block lasts still. Absent: nobody did, or the block has no end. */
      readonly blockedMillis?: number;
    };

export type ListedAnswer =
  | {
      readonly kind: 'listed';
      readonly allowed: boolean;
      /** As many as the request has lists, in their order. If it is denied, at least one is over. */
      readonly lists: readonly ListOutcome[];
      /** What was decided, for whoever counts answers; absent: nothing was charged, and nobody was asked for a grant. */
      readonly decided?: AskAnswer;
    }
  | Invalid
  | ConflictingId
  | Unavailable;

/** Told once. */
export type ListedDone = (answer: ListedAnswer) => void;

/** The first thing that is out of its bounds; undefined if the request is well-formed. */
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

/** As it is counted beside requests that are described by names: by its first list, at the largest cost of all. */
export function asQuestion({ lists }: ListedRequest): Question {
  const entries = lists[0]?.entries ?? [];
  return {
    descriptors: new Map(entries.map(({ key, value }) => [key, value])),
    cost: Math.max(1, ...lists.map(({ cost }) => cost)),
  };
}
