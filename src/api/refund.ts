/**
 * A refund: what was granted under a request id is taken back, and counts no more. It may be asked for again and again; it is
 * done once. Plain data, and the check of what is asked.
 */
import type { Invalid, Receipt, Unavailable } from './answer.ts';
import type { Question } from './question.ts';

export interface RefundRequest {
  readonly ask: 'refund';
  /** Whose grant: 1 to `KEY_BYTES_MAX` bytes. */
  readonly userId: string;
  /** As the request had it: 1 to `REQUEST_ID_BYTES_MAX` bytes. */
  readonly requestId: string;
}

/** What became of it, by the log. */
export interface Refund {
  /** The grant counts no more, whoever took it back first. False: none is remembered under this id, and nothing changed. */
  readonly refunded: boolean;
  /** The rule of the grant; '' without one. */
  readonly ruleId: string;
  /** What was granted, and is free again as far as it still counted; 0 without one. */
  readonly cost: number;
  /** Of the grant, as its caller was told; without one the place where that was found out. */
  readonly decided: Receipt;
  /** The number of the attempt that was granted; absent if it reserved nothing in other partitions. See `AllowRequest.attempt`. */
  readonly attempt?: number;
  /** Of the rules that granted it; without a grant of those in force where that was found out. */
  readonly rulesVersion: number;
}

export type RefundAnswer = { readonly kind: 'refund'; readonly refund: Refund } | Invalid | Unavailable;

/** What was granted to a question: by what that was, not by a key. */
export interface RefundQuestion extends Pick<Question, 'descriptors' | 'rule'> {
  /** As the request had it: 1 to `REQUEST_ID_BYTES_MAX` bytes. */
  readonly requestId: string;
}

/** A limit under which a refunded request stays charged until its window is over. */
export interface KeptLimit {
  readonly ruleId: string;
  /** The key that it counts by. */
  readonly userId: string;
}

export type RefundQuestionAnswer =
  | {
      readonly kind: 'refund';
      readonly refund: Refund;
      /** In other partitions than that of the first key. Undefined: by other rules than the grant's nobody can tell. */
      readonly kept: readonly KeptLimit[] | undefined;
    }
  /** No rule of this version limits such a request: there is nothing to give back. */
  | { readonly kind: 'unlimited'; readonly rulesVersion: number }
  | Invalid
  | Unavailable;

/** Told once. `partition` is that of the first key. */
export type RefundQuestionDone = (answer: RefundQuestionAnswer, partition: number) => void;
