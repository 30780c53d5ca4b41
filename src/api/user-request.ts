/** All that may be asked about one user, wherever the user's partition is led, and what each is answered. Types only. */
import type { AllowAnswer, Unavailable } from './answer.ts';
import type { CustomerAnswer, CustomerRequest } from './customer.ts';
import type { LookAnswer, LookRequest } from './look.ts';
import type { RefundAnswer, RefundRequest } from './refund.ts';
import type { AllowRequest } from './request.ts';

/** What entries hold many of. */
export type BatchedRequest = AllowRequest | RefundRequest;
/** What the log decides. */
export type LoggedRequest = BatchedRequest | CustomerRequest;
export type UserRequest = LoggedRequest | LookRequest;
export type UserAnswer = AllowAnswer | LookAnswer | RefundAnswer | CustomerAnswer;

/** What a partition answers: what every door does, and to other nodes who leads. */
export type Answer =
  | UserAnswer
  /** Only between nodes: ask `leader`, who leads in `term`, instead (0: nobody knows). Nothing reached the log. */
  | { readonly kind: 'notLeader'; readonly leader: number; readonly term: number };

export type AnswerTo<R extends UserRequest> =
  | Unavailable
  | (R extends LookRequest
      ? LookAnswer
      : R extends RefundRequest
        ? RefundAnswer
        : R extends CustomerRequest
          ? CustomerAnswer
          : AllowAnswer);

/** Told once. `partition` is that of the user: a receipt is unique within it. */
export type DoneWith<R extends UserRequest> = (answer: AnswerTo<R>, partition: number) => void;
