/** What a leader tells of its applied state, or of a request, without the log. It changes nothing. */
import type { AllowRequest } from '../api/request.ts';
import type { LookRequest } from '../api/look.ts';
import type { Answer, LoggedRequest } from '../api/user-request.ts';
import type { TimestampBound } from '../limiter/admission.ts';
import type { Decision } from '../limiter/decision.ts';
import type { LimiterStateMachine } from '../limiter/state-machine.ts';
import type { Room } from '../limiter/state/state-size.ts';
import { unavailable, unknownRule } from './answer.ts';

/** From the applied state. */
export function lookAnswer(machine: LimiterStateMachine, request: LookRequest, nowMillis: number): Answer {
  if (machine.ruleTable === undefined) return unavailable('starting', false);
  const standing = machine.look(request, nowMillis);
  return standing === undefined ? unknownRule(request.ruleId ?? '') : { kind: 'standing', standing };
}

/**
 * The denial by a limit of a request whose limits the applied rules have found; undefined: it must be asked. A leader that was deposed gives
 * it, too, until it steps down: with resets, refunds and raised limits of its successor's still to come, for at most two election timeouts.
 */
export function quickDenialOf(
  machine: LimiterStateMachine,
  request: AllowRequest,
  at: { readonly nowMillis: number; readonly room: Room; readonly bound: TimestampBound },
): Decision | undefined {
  if (machine.ruleTable === undefined || machine.ruleTable.version !== request.matchedBy) return undefined;
  if (machine.inadmissible(request, at.bound) !== undefined) return undefined;
  const denial = machine.quickDenial(request, at.nowMillis, at.room);
  // What no limit judged is found out, and counted, by who asks for it.
  return denial?.refusal === undefined ? denial : undefined;
}

/** It may need room that is not there yet. */
export function isPut(request: LoggedRequest): boolean {
  return request.ask === 'customer' && (request.action.type === 'put' || request.action.type === 'set');
}
