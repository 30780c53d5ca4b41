/** All that may be asked about one user, wherever the user's partition is led, and what each is answered. Types only. */
import type { AllowAnswer } from './answer.ts';
import type { LookAnswer, LookRequest } from './look.ts';
import type { AllowRequest } from './request.ts';

export type UserRequest = AllowRequest | LookRequest;
export type UserAnswer = AllowAnswer | LookAnswer;

export type AnswerTo<R extends UserRequest> = R extends LookRequest ? LookAnswer : AllowAnswer;

/** Told once. `partition` is that of the user: a receipt is unique within it. */
export type DoneWith<R extends UserRequest> = (answer: AnswerTo<R>, partition: number) => void;
