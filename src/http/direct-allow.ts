/**
 * A fast path for `POST /v1/allow` as most clients send it, without Fastify, whose router, hooks and replies cost
 * more CPU time than the decision. An unusual request goes to Fastify's route in allow-route.ts, which gives the same
 * answer.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { askAndAnswer, ALLOW, questionIn } from './allow-route.ts';
import { clientOf, isAdmitted } from './callers.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import type { HttpAnswer } from './http-answer.ts';
import { parseJsonBody } from './json-body.ts';
import { BODY_BYTES_MAX, INTERNAL_ERROR, refusalOf } from './refusals.ts';
import { shed } from './shedding.ts';

const ROUTE = { method: 'POST', url: ALLOW };

/**
 * A request listener for the server.
 *
 * @param others handles all other requests; nothing of them has been read
 * @param begun called for each request that is handled here
 */
export function directAllow(
  init: HttpListenerInit,
  others: RequestListener,
  begun: (request: IncomingMessage, response: ServerResponse) => void,
): RequestListener {
  return (request, response) => {
    if (!isUsual(request) || init.node.wantsNoClients() || !isAdmitted(request, ROUTE, init))
      return others(request, response);
    begun(request, response);
    if (init.node.shedding.refuses(clientOf(request))) return shed(response, ALLOW, init);
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    // Not called if the client disconnects first.
    request.on('end', () => {
      const [first] = chunks;
      answer(init, {
        request,
        response,
        bytes: first && chunks.length === 1 ? first : Buffer.concat(chunks),
      });
    });
  };
}

function isUsual({ method, url, headers }: IncomingMessage): boolean {
  if (method !== ROUTE.method || url !== ROUTE.url || headers.host === undefined) return false;
  if (headers['content-type'] !== 'application/json' || headers['content-encoding'] !== undefined)
    return false;
  // Node's HTTP parser ensures that the body is not longer than this.
  const length = Number(headers['content-length']);
  return length > 0 && length <= BODY_BYTES_MAX;
}

interface Read {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly bytes: Buffer;
}

function answer(init: HttpListenerInit, { request, response, bytes }: Read): void {
  const startedMillis = init.monotonicMillis();
  const send = (answered: HttpAnswer): void => write(response, answered);
  try {
    const question = questionIn(init, request, parseJsonBody(request.headers, bytes));
    askAndAnswer(init, { client: clientOf(request), question, startedMillis, send });
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal === undefined) init.logger.error({ err: error }, 'request failed');
    const { status } = refusal ?? INTERNAL_ERROR;
    init.observe(status, startedMillis);
    send(refusal ?? INTERNAL_ERROR);
  }
}

function write(response: ServerResponse, { status, headers, body }: HttpAnswer): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(text) });
  response.end(text);
}
