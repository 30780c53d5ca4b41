/**
 * The method `ShouldRateLimit`: decodes a request, asks the node, and encodes the answer. Only a decision of the
 * cluster becomes `OK`.
 */
import type { MonotonicClock } from '../api/clocks.ts';
import type { handleUnaryCall, StatusObject } from '@grpc/grpc-js';
import { status } from '@grpc/grpc-js';
import type { Invalid } from '../api/answer.ts';
import { asQuestion, type ListedAnswer, type ListedRequest } from '../api/listed.ts';
import { UNAVAILABLE } from '../api/refusals.ts';
import { askedBy } from '../rls/request.ts';
import { type RateLimitResponse, responseTo } from '../rls/response.ts';
import type { RlsSettings } from '../rls/rls-settings.ts';
import type { GrpcAnswers, NodeBehindGrpc } from './grpc-listener-init.ts';
import { decodeRequest, MalformedRequestError } from './rate-limit-messages.ts';

/** The full name of the service. */
export const RATE_LIMIT_SERVICE = 'envoy.service.ratelimit.v3.RateLimitService';
/** The path of the method. */
export const SHOULD_RATE_LIMIT = `/${RATE_LIMIT_SERVICE}/ShouldRateLimit`;

/** The parts that the method is built from. */
export interface ShouldRateLimitInit extends MonotonicClock {
  readonly node: NodeBehindGrpc;
  readonly settings: () => RlsSettings;
  readonly answers: GrpcAnswers;
  /** The client that a call is counted under. */
  readonly clientOf: (call: Parameters<handleUnaryCall<Buffer, RateLimitResponse>>[0]) => string;
}

/** The method. */
export function shouldRateLimit(init: ShouldRateLimitInit): handleUnaryCall<Buffer, RateLimitResponse> {
  const { node, monotonicMillis, settings, answers } = init;
  return (call, done) => {
    // The caller has gone or its deadline is over, so nobody would learn of a grant.
    if (call.cancelled) return;
    const startedMillis = monotonicMillis();
    const request = requestIn(call.request);
    if ('kind' in request) {
      answers.invalid += 1;
      done(statusOf(request));
      return;
    }
    const load = node.shedding.entered(init.clientOf(call), 1);
    node.allowListed(request, (answer) => {
      node.shedding.left(load, 1);
      countDecision(node, request, answer, startedMillis);
      answers[countedAs(answer)] += 1;
      if (answer.kind === 'listed') done(null, responseTo(answer, settings().responseHeaders));
      else done(statusOf(answer));
    });
  };
}

function requestIn(bytes: Buffer): ListedRequest | Invalid {
  try {
    return askedBy(decodeRequest(bytes));
  } catch (error) {
    if (!(error instanceof MalformedRequestError)) throw error;
    return { kind: 'invalid', field: 'request', message: error.message };
  }
}

function countDecision(
  node: NodeBehindGrpc,
  request: ListedRequest,
  answer: ListedAnswer,
  startedMillis: number,
): void {
  const decided = answer.kind === 'listed' ? answer.decided : answer;
  if (decided !== undefined) node.answered(asQuestion(request), decided, startedMillis);
}

function countedAs(answer: ListedAnswer): keyof GrpcAnswers {
  if (answer.kind === 'listed') return answer.allowed ? 'granted' : 'denied';
  return answer.kind === 'unavailable' ? 'unavailable' : 'invalid';
}

function statusOf(answer: Exclude<ListedAnswer, { kind: 'listed' }>): Pick<StatusObject, 'code' | 'details'> {
  switch (answer.kind) {
    case 'invalid':
      return { code: status.INVALID_ARGUMENT, details: answer.message };
    case 'conflict':
      return { code: status.ABORTED, details: answer.message };
    case 'unavailable':
      return { code: status.UNAVAILABLE, details: `${answer.reason}: ${UNAVAILABLE[answer.reason].text}` };
  }
}
