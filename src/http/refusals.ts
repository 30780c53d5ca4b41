/**
 * Answers to requests that never come to a route, or fail in one: bad bodies, wrong paths and methods, and what Node's
 * HTTP parser gives up on. None of them is a grant, and each says so.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { InvalidFieldError } from '../api/fields.ts';
import { formatInvalid } from './answer-format.ts';
import { type HttpAnswer, JSON_TYPE } from './http-answer.ts';
import { InvalidBodyError, UnsupportedBodyError } from './json-body.ts';

/** Far above what any valid request needs that is not a batch or a table of rules. */
export const BODY_BYTES_MAX = 8_192;

/**
 * Errors that are the caller's: ours, and those Fastify raises while it reads the request.
 *
 * @param bodyBytesMax of the route that was asked
 */
export function refusalOf(error: unknown, bodyBytesMax = BODY_BYTES_MAX): HttpAnswer | undefined {
  if (error instanceof InvalidBodyError) return formatInvalid(error.field, error.message);
  if (error instanceof InvalidFieldError) return formatInvalid(error.field, error.message);
  if (error instanceof UnsupportedBodyError) return formatInvalid('body', error.message, 415);
  if (!(error instanceof Error) || !('statusCode' in error)) return undefined;
  if ('code' in error && error.code === 'FST_ERR_BAD_URL') return formatInvalid('url', error.message);
  const { statusCode } = error;
  if (typeof statusCode !== 'number' || statusCode < 400 || statusCode > 499) return undefined;
  switch (statusCode) {
    case 413:
      return formatInvalid('body', `body must be at most ${bodyBytesMax} bytes`, 413);
    case 415:
      return formatInvalid('body', 'body must be JSON, with content-type: application/json', 415);
    default:
      return formatInvalid('body', `body cannot be read: ${error.message}`, statusCode);
  }
}

/** @param allowed the methods that the path has; none: there is no such path */
export function formatNoRoute(method: string, url: string, allowed: readonly string[]): HttpAnswer {
  const asked = `${method} ${url}`;
  if (allowed.length === 0) return refusal(404, 'not_found', `no route ${asked}`);
  const { headers, ...answer } = refusal(
    405,
    'method_not_allowed',
    `no route ${asked}; this path takes ${allowed.join(', ')}`,
  );
  return { ...answer, headers: { ...headers, allow: allowed.join(', ') } };
}

export const INTERNAL_ERROR: HttpAnswer = refusal(500, 'internal', 'internal error');
export const NO_HOST: HttpAnswer = formatInvalid('host', 'an HTTP/1.1 request must have a host header');
export const EXPECTATION_FAILED: HttpAnswer = formatInvalid(
  'expect',
  'the only expectation that is met is 100-continue',
  417,
);

function refusal(status: number, type: string, message: string): HttpAnswer {
  return {
    status,
    headers: { 'content-type': JSON_TYPE },
    body: { allowed: false, error: { type, message } },
  };
}

const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  413: 'Content Too Large',
  431: 'Request Header Fields Too Large',
};

/** What Node's parser could not read, as a whole HTTP response. The connection is of no use after it. */
export function parserRefusal(error: Error, limits: { readonly requestMillis: number }): string {
  const { status, field, message } = parserFault('code' in error ? String(error.code) : '', limits);
  const body = JSON.stringify(formatInvalid(field, message).body);
  return [
    `HTTP/1.1 ${status} ${REASONS[status] ?? ''}`,
    `content-type: ${JSON_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
    '',
    body,
  ].join('\r\n');
}

function parserFault(
  code: string,
  { requestMillis }: { readonly requestMillis: number },
): { readonly status: number; readonly field: string; readonly message: string } {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return { status: 431, field: 'headers', message: 'the request line and headers are too long' };
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return { status: 413, field: 'body', message: 'the chunk extensions are too long' };
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return {
        status: 408,
        field: 'request',
        message: `the request must arrive within ${requestMillis} ms`,
      };
    default:
      return { status: 400, field: 'request', message: 'this is not an HTTP/1.1 request' };
  }
}

/** After its last answer a client has this long to read it and hang up. */
const LAST_WORD_MILLIS = 1_000;

/** Has a request that came whole, on the connection of `last`, no answer yet? `last` is that of the latest request. */
export function owesAnswer(last: ServerResponse | undefined): boolean {
  if (last === undefined || last.writableFinished) return false;
  // Node gives the socket to one response at a time, in the order of the requests: this one waits for others.
  if (last.socket === null) return true;
  return !last.writableEnded && last.req.complete;
}

/** Ends a connection whose bytes make no sense. `owes`: an earlier request on it has no answer yet. */
export function refuseConnection(socket: Socket, response: string, owes: boolean): void {
  // The earlier request would take this for its own answer, and may have been granted.
  if (!socket.writable || owes) {
    socket.destroy();
    return;
  }
  socket.end(response);
  const timer = setTimeout(() => socket.destroy(), LAST_WORD_MILLIS);
  socket.once('close', () => clearTimeout(timer));
}
