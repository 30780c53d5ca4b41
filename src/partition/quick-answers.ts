/**
 * What a leader tells of its applied state, or of a request, without the log. It changes nothing there.
 *
 * Most requests are granted, and to judge each here and again in the log costs a leader a tenth of its time. So it judges a request under
 * one limit here only if the key was denied lately, or the log cannot be asked. The log judges the others.
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
  /** Group time. */
  readonly nowMillis: () => number;
  readonly room: () => Room;
  readonly bound: TimestampBound;
}

export class QuickAnswers {
  readonly #init: QuickAnswersInit;
  readonly #latelyDenied = new LatelyDenied();

  constructor(init: QuickAnswersInit) {
    this.#init = init;
  }

  look(request: LookRequest): Answer {
    const { machine, nowMillis } = this.#init;
    if (machine.ruleTable === undefined) return unavailable('starting', false);
    const standing = machine.look(request, nowMillis());
    return standing === undefined ? unknownRule(request.ruleId ?? '') : { kind: 'standing', standing };
  }

  /**
   * The denial by a limit of a request whose limits the applied rules have found; undefined: it must be asked. A leader that was deposed gives
   * it, too, until it steps down: with resets, refunds and raised limits of its successor's still to come, for at most two election timeouts.
   */
  denialOf(request: AllowRequest): Decision | undefined {
    const { machine, bound } = this.#init;
    if (machine.ruleTable === undefined || machine.ruleTable.version !== request.matchedBy) return undefined;
    if (machine.inadmissible(request, bound) !== undefined) return undefined;
    const denial = this.#judged(request);
    // What no limit judged is found out, and counted, by who asks for it.
    return denial?.refusal === undefined ? denial : undefined;
  }

  /**
   * What is told of a request that the applied rules have found the limits of, and that has no earlier grant; undefined: the log is asked.
   *
   * @param isLast the log will not be asked
   */
  rejectionOf(request: AllowRequest, isLast: boolean): Answer | undefined {
    const { machine, housekeeping, bound } = this.#init;
    const denial = isLast || this.#mayBeDenied(request) ? this.#judged(request) : undefined;
    // Whose request it is says under which limits it is: these come after that.
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

  /** The log has denied it. */
  denied({ userId }: LoggedRequest, { refusal }: Decision, nowMillis: number): void {
    this.#latelyDenied.denied(userId, nowMillis);
    if (refusal !== 'at_capacity') return;
    this.#latelyDenied.refusedAtCapacity(nowMillis);
    this.#init.housekeeping.refusedAtCapacity();
  }
}

/** It may need room that is not there yet. */
export function isPut(request: LoggedRequest): boolean {
  return request.ask === 'customer' && (request.action.type === 'put' || request.action.type === 'set');
}
