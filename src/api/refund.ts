/**
 * A refund: what was granted under a request id is taken back, and counts no more. It may be asked for again and again; it is
 * done once. Plain data, and the check of what is asked.
 */
import type { Invalid, Receipt, Unavailable } from './answer.ts';

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
}

export type RefundAnswer = { readonly kind: 'refund'; readonly refund: Refund } | Invalid | Unavailable;
