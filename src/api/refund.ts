/**
 * A refund: the grant under a request id is taken back and no longer counts. A caller may repeat it; the grant is
 * refunded once. Plain data.
 */
import type { Invalid, Receipt, Unavailable } from './answer.ts';
import type { Question } from './question.ts';

/** The request to a partition. */
export interface RefundRequest {
  readonly ask: 'refund';
  /** The key of the grant: 1 to `KEY_BYTES_MAX` bytes. */
  readonly userId: string;
  /** The id of the request that was granted: 1 to `REQUEST_ID_BYTES_MAX` bytes. */
  readonly requestId: string;
}

/** The result of a refund, as the log has it. */
export interface Refund {
  /**
   * True if the grant is refunded, by this request or an earlier one. False: no grant with this id is remembered, and
   * nothing changed.
   */
  readonly refunded: boolean;
  /** The rule of the grant; '' if there is no grant. */
  readonly ruleId: string;
  /** The cost that was granted. As far as it still counted, it is free again. 0 if there is no grant. */
  readonly cost: number;
  /**
   * The receipt of the grant, as its caller got it. If there is no grant: the place in the log where that was found.
   */
  readonly decided: Receipt;
  /**
   * The number of the attempt that was granted (see `AllowRequest.attempt`). Absent if it reserved nothing in other
   * partitions.
   */
  readonly attempt?: number;
  /** The version of the rules that granted it. If there is no grant: of the rules in force where that was found. */
  readonly rulesVersion: number;
}

/** A partition's answer to a `RefundRequest`. */
export type RefundAnswer = { readonly kind: 'refund'; readonly refund: Refund } | Invalid | Unavailable;

/** The question of a caller. It names the question that was granted, not a key. */
export interface RefundQuestion extends Pick<Question, 'descriptors' | 'rule'> {
  /** The id of the request that was granted: 1 to `REQUEST_ID_BYTES_MAX` bytes. */
  readonly requestId: string;
}

/** A limit that stays charged for a refunded request until its window is over. */
export interface KeptLimit {
  readonly ruleId: string;
  /** The key that the rule counts by. */
  readonly userId: string;
}

/** The answer to a `RefundQuestion`. */
export type RefundQuestionAnswer =
  | {
      readonly kind: 'refund';
      readonly refund: Refund;
      /**
       * The limits in other partitions than that of the first key. Undefined: unknown, because the grant was made by
       * other rules than those in force.
       */
      readonly kept: readonly KeptLimit[] | undefined;
    }
  /** No rule of this version limits such a request, so there is nothing to refund. */
  | { readonly kind: 'unlimited'; readonly rulesVersion: number }
  | Invalid
  | Unavailable;

/** Called once. `partition` is that of the first key. */
export type RefundQuestionDone = (answer: RefundQuestionAnswer, partition: number) => void;
