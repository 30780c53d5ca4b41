/** What was reserved for requests that are not granted is given back, and what became of that is counted. */
import type { AllowAnswer } from '../api/answer.ts';
import type { RefundRequest } from '../api/refund.ts';
import type { DoneWith } from '../api/user-request.ts';
import { type AnsweredShare, isCertain, isGrant } from './share-outcome.ts';

/** What became of reservations. */
export interface ReservationCounts {
  /** Given back, because another limit denied the request. */
  released: number;
  /** Not known to be given back: nobody could be asked, or the log held none. Those that are granted yet stay charged. */
  left: number;
}

export interface Reserved extends AnsweredShare {
  readonly requestId: string;
  answer: AllowAnswer | undefined;
}

export interface ReservationsInit {
  /** Asks whoever leads; `done` is told once. */
  readonly ask: (request: RefundRequest, done: DoneWith<RefundRequest>, deadlineMillis: number) => void;
  readonly monotonicMillis: () => number;
  /** To give one back. */
  readonly deadlineMillis: number;
}

export class Reservations {
  readonly counts: ReservationCounts = { released: 0, left: 0 };
  readonly #init: ReservationsInit;

  constructor(init: ReservationsInit) {
    this.#init = init;
  }

  /** What was not granted, or not to our knowledge, is given back as well: it may have been. */
  release(reserved: readonly Reserved[]): void {
    for (const { share, requestId, answer } of reserved) {
      if (answer === undefined || (!isGrant(answer) && isCertain(answer))) continue;
      const [{ userId }] = share.limits;
      this.#giveBack({ ask: 'refund', userId, requestId });
    }
  }

  #giveBack(refund: RefundRequest): void {
    const { monotonicMillis, deadlineMillis, ask } = this.#init;
    ask(
      refund,
      (answer) => {
        // What was not there may be on its way still.
        if (answer.kind === 'refund' && answer.refund.refunded) this.counts.released += 1;
        else this.counts.left += 1;
      },
      monotonicMillis() + deadlineMillis,
    );
  }
}
