/**
 * `POST /json`: Envoy's rate limit protocol in JSON, as envoyproxy/ratelimit has it. 200 is the only answer that lets a request
 * through; where nobody can decide it is 503, as everywhere at this door.
 */
import type { FastifyInstance } from 'fastify';
import { InvalidFieldError } from '../api/fields.ts';
import type { Invalid } from '../api/answer.ts';
import { asQuestion, type ListedAnswer, type ListedRequest } from '../api/listed.ts';
import { ALLOW_STATUS, UNAVAILABLE, UNAVAILABLE_RETRY_SECONDS } from '../api/refusals.ts';
import { askedBy } from '../rls/request.ts';
import { requestOfJson } from '../rls/request-json.ts';
import { jsonOf } from '../rls/response-json.ts';
import { responseTo } from '../rls/response.ts';
import { RLS_SETTINGS_DEFAULTS, type RlsSettings } from '../rls/rls-settings.ts';
import { clientOf } from './callers.ts';
import type { HttpDoorInit } from './door-init.ts';
import { type HttpAnswer, JSON_TYPE } from './http-answer.ts';

export const RLS_JSON = '/json';
/** As much as over gRPC. */
const BODY_BYTES_MAX = 32_768;
const TEXT_TYPE = 'text/plain; charset=utf-8';

export interface Written {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** What is refused before it comes to the route has a body in JSON everywhere else: here its words alone, as the protocol has errors. */
export function refusedInText({ status, headers, body }: HttpAnswer): Written {
  const { error, detail } = body as {
    readonly error?: { readonly message?: string };
    readonly detail?: string;
  };
  return {
    ...textOf(status, error?.message ?? detail ?? ''),
    headers: { ...headers, 'content-type': TEXT_TYPE },
  };
}

/** Of one that is not read. */
export function shedInText(): Written {
  return writtenOf({ kind: 'unavailable', reason: 'overloaded', proposed: false }, RLS_SETTINGS_DEFAULTS);
}

export function addRlsRoute(app: FastifyInstance, init: HttpDoorInit): void {
  const { node, monotonicMillis, observe, rls = () => RLS_SETTINGS_DEFAULTS } = init;
  app.post(RLS_JSON, { bodyLimit: BODY_BYTES_MAX }, (request, reply) => {
    const startedMillis = monotonicMillis();
    const send = ({ status, headers, text }: Written): void => {
      observe(status, startedMillis);
      // It may have come before the node began to stop.
      if (node.wantsNoClients()) void reply.header('connection', 'close');
      void reply.code(status).headers(headers).send(text);
    };
    const wanted = requestIn(request.body);
    if ('kind' in wanted) {
      send(textOf(ALLOW_STATUS.invalid, wanted.message));
      return reply;
    }
    const { shedding } = node;
    const share = shedding.entered(clientOf(request), 1);
    node.allowListed(wanted, (answer) => {
      shedding.left(share, 1);
      const decided = answer.kind === 'listed' ? answer.decided : answer;
      if (decided !== undefined) node.answered(asQuestion(wanted), decided, startedMillis);
      send(writtenOf(answer, rls()));
    });
    return reply;
  });
}

function requestIn(body: unknown): ListedRequest | Invalid {
  try {
    return askedBy(requestOfJson(body));
  } catch (error) {
    if (!(error instanceof InvalidFieldError)) throw error;
    return { kind: 'invalid', field: error.field, message: error.message };
  }
}

function writtenOf(answer: ListedAnswer, { responseHeaders }: RlsSettings): Written {
  switch (answer.kind) {
    case 'listed': {
      const status = answer.allowed ? ALLOW_STATUS.granted : ALLOW_STATUS.denied;
      const text = JSON.stringify(jsonOf(responseTo(answer, responseHeaders)));
      return { status, headers: { 'content-type': JSON_TYPE }, text };
    }
    case 'invalid':
    case 'conflict':
      return textOf(ALLOW_STATUS.invalid, answer.message);
    case 'unavailable': {
      const { text, ...refusal } = textOf(ALLOW_STATUS.unavailable, UNAVAILABLE[answer.reason].text);
      const headers = { ...refusal.headers, 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) };
      return { ...refusal, headers, text: `${answer.reason}: ${text}` };
    }
  }
}

function textOf(status: number, text: string): Written {
  return { status, headers: { 'content-type': TEXT_TYPE }, text };
}
