/** The union of all requests about one key, and of their answers. Types only. */
import type { AllowAnswer, Unavailable } from './answer.ts';
import type { CustomerAnswer, CustomerRequest } from './customer.ts';
import type { PeekAnswer, PeekRequest } from './peek.ts';
import type { RefundAnswer, RefundRequest } from './refund.ts';
import type { AllowRequest } from './request.ts';

/** Requests of which one log entry holds many. */
export type BatchedRequest = AllowRequest | RefundRequest;
/** Requests that are decided by the log. */
export type LoggedRequest = BatchedRequest | CustomerRequest;
/** All requests about one key. */
export type UserRequest = LoggedRequest | PeekRequest;
/** All answers to requests about one key. */
export type UserAnswer = AllowAnswer | PeekAnswer | RefundAnswer | CustomerAnswer;

/** The answer of a partition: a `UserAnswer`, or, to another node, which node leads. */
export type Answer =
  | UserAnswer
  /**
   * Only between nodes: this node does not lead. Ask `leader`, which leads in `term` (0: not known). Nothing reached
   * the log.
   */
  | { readonly kind: 'notLeader'; readonly leader: number; readonly term: number };

/** The answers to a request of type `R`. */
export type AnswerTo<R extends UserRequest> =
  | Unavailable
  | (R extends PeekRequest
      ? PeekAnswer
      : R extends RefundRequest
        ? RefundAnswer
        : R extends CustomerRequest
          ? CustomerAnswer
          : AllowAnswer);

/** Called once. `partition` is that of the key; a receipt is unique within it. */
export type DoneWith<R extends UserRequest> = (answer: AnswerTo<R>, partition: number) => void;
