/**
 * `POST /json`: Envoy's rate limit protocol in JSON, as envoyproxy/ratelimit implements it. 200 is the only status
 * that lets a request pass. If no node can decide, the status is 503, as on all routes.
 */
import type { FastifyInstance } from 'fastify';
import { InvalidFieldError } from '../api/fields.ts';
import type { Invalid } from '../api/answer.ts';
import { asQuestion, type ListedAnswer, type ListedRequest } from '../api/listed.ts';
import { ALLOW_STATUS, UNAVAILABLE, UNAVAILABLE_RETRY_SECONDS } from '../api/refusals.ts';
import { askedBy } from '../rls/request.ts';
import { requestOfJson } from '../rls/request-json.ts';
import { jsonOf, responseTo } from '../rls/response.ts';
import { RLS_SETTINGS_DEFAULTS, type RlsSettings } from '../rls/rls-settings.ts';
import { clientOf } from './callers.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { type HttpAnswer, JSON_TYPE } from './http-answer.ts';

/** The path of the route. */
export const RLS_JSON = '/json';
/** The longest body in bytes, the same as over gRPC. */
const BODY_BYTES_MAX = 32_768;
const TEXT_TYPE = 'text/plain; charset=utf-8';

/** A response whose body is already text. */
export interface Written {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Turns a refusal with a JSON body into one with plain text, which is this protocol's form of errors. */
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

/** The response to a request that is refused because of load, before it is read. */
export function shedInText(): Written {
  return writtenOf({ kind: 'unavailable', reason: 'overloaded', proposed: false }, RLS_SETTINGS_DEFAULTS);
}

/** Adds the route. */
export function addRlsRoute(app: FastifyInstance, init: HttpListenerInit): void {
  const { node, monotonicMillis, observe, rls = () => RLS_SETTINGS_DEFAULTS } = init;
  app.post(RLS_JSON, { bodyLimit: BODY_BYTES_MAX }, (request, reply) => {
    const startedMillis = monotonicMillis();
    const send = ({ status, headers, text }: Written): void => {
      observe(status, startedMillis);
      // Checked only now, because the request may have come before the node began to stop.
      if (node.wantsNoClients()) void reply.header('connection', 'close');
      void reply.code(status).headers(headers).send(text);
    };
    const wanted = requestIn(request.body);
    if ('kind' in wanted) {
      send(textOf(ALLOW_STATUS.invalid, wanted.message));
      return reply;
    }
    const { shedding } = node;
    const load = shedding.entered(clientOf(request), 1);
    node.allowListed(wanted, (answer) => {
      shedding.left(load, 1);
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
