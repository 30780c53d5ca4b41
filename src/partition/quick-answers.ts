/**
 * Answers that a leader gives from its applied state, without the log. They change nothing.
 *
 * Most requests are granted, and judging each one both here and in the log takes a leader a tenth of its time. So a
 * request under a single limit is judged here only if its key was denied recently, or if the log cannot be asked. The
 * log judges the others.
 */
import type { AllowRequest } from '../api/request.ts';
import type { LookRequest } from '../api/look.ts';
import type { Answer, LoggedRequest } from '../api/user-request.ts';
import type { TimestampBound } from '../limiter/admission.ts';
import type { Decision } from '../limiter/decision.ts';
import { isOfCustomer } from '../limiter/decisions-without-limit.ts';
import type { LimiterStateMachine } from '../limiter/state-machine.ts';
import type { Room } from '../limiter/state/state-size.ts';
import { answerOf, invalid, unavailable, unknownRule } from './answer.ts';
import type { Housekeeping } from './housekeeping.ts';
import { LatelyDenied } from './lately-denied.ts';

interface QuickAnswersInit {
  readonly machine: LimiterStateMachine;
  readonly housekeeping: Housekeeping;
  /** Group time in milliseconds. */
  readonly nowMillis: () => number;
  readonly room: () => Room;
  readonly bound: TimestampBound;
}

/** The quick answers of one partition. */
export class QuickAnswers {
  readonly #init: QuickAnswersInit;
  readonly #latelyDenied = new LatelyDenied();

  constructor(init: QuickAnswersInit) {
    this.#init = init;
  }

  /** Answers a peek from the applied state. */
  look(request: LookRequest): Answer {
    const { machine, nowMillis } = this.#init;
    if (machine.ruleTable === undefined) return unavailable('starting', false);
    const standing = machine.look(request, nowMillis());
    return standing === undefined ? unknownRule(request.ruleId ?? '') : { kind: 'standing', standing };
  }

  /**
   * The denial, by a limit, of a request whose limits were found by the applied rules; undefined if the request must be
   * sent to the leader. A deposed leader also answers until it steps down, without the resets, refunds and raised
   * limits of its successor: for at most two election timeouts.
   */
  denialOf(request: AllowRequest): Decision | undefined {
    const { machine, bound } = this.#init;
    if (machine.ruleTable === undefined || machine.ruleTable.version !== request.matchedBy) return undefined;
    if (machine.inadmissible(request, bound) !== undefined) return undefined;
    const denial = this.#judged(request);
    // Refusals are left to the leader's full path, which also counts them.
    return denial?.refusal === undefined ? denial : undefined;
  }

  /**
   * The answer without the log to a request that has no earlier grant and whose limits were found by the applied rules;
   * undefined if the log must be asked.
   *
   * @param isLast the log cannot be asked
   */
  rejectionOf(request: AllowRequest, isLast: boolean): Answer | undefined {
    const { machine, housekeeping, bound } = this.#init;
    const denial = isLast || this.#mayBeDenied(request) ? this.#judged(request) : undefined;
    // The customer decides which limits apply, so a block or a changed record comes before the other checks.
    if (denial !== undefined && isOfCustomer(denial)) return answerOf(denial, request.requestId);
    const wrong = machine.inadmissible(request, bound);
    if (wrong !== undefined) return invalid(wrong.field, wrong.message);
    if (denial?.refusal === 'at_capacity') {
      housekeeping.refusedAtCapacity();
      return unavailable('at_capacity', false);
    }
    return denial && answerOf(denial, request.requestId);
  }

  #mayBeDenied(request: AllowRequest): boolean {
    const { machine, room, nowMillis } = this.#init;
    if (request.further !== undefined || request.guard !== undefined || room() !== 'free') return true;
    return this.#latelyDenied.has(request.userId, nowMillis()) || !machine.hasRuleOf(request);
  }

  #judged(request: AllowRequest): Decision | undefined {
    const { machine, room, nowMillis } = this.#init;
    return machine.quickDenial(request, nowMillis(), room());
  }

  /** The log has denied the request. */
  denied({ userId }: LoggedRequest, { refusal }: Decision, nowMillis: number): void {
    this.#latelyDenied.denied(userId, nowMillis);
    if (refusal !== 'at_capacity') return;
    this.#latelyDenied.refusedAtCapacity(nowMillis);
    this.#init.housekeeping.refusedAtCapacity();
  }
}

/** The request may need room that is not there yet. */
export function isPut(request: LoggedRequest): boolean {
  return request.ask === 'customer' && (request.action.type === 'put' || request.action.type === 'set');
}
