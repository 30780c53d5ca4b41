/**
 * Responses to requests that reach no route or fail in one: bad bodies, wrong paths and methods, and input that
 * Node's HTTP parser rejects. None of them is a grant; each body says `allowed: false`.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { InvalidFieldError } from '../api/fields.ts';
import { formatInvalid } from './answer-format.ts';
import { type HttpAnswer, JSON_TYPE } from './http-answer.ts';
import { InvalidBodyError, UnsupportedBodyError } from './json-body.ts';

/** The longest body in bytes, unless a route has its own bound. Far above what a valid single request needs. */
export const BODY_BYTES_MAX = 8_192;

/**
 * The response to an error that the caller caused: one of our own errors, or one that Fastify raises while it reads a
 * request. Undefined for other errors.
 *
 * @param bodyBytesMax the longest body of the route, in bytes
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

/** The response if no route matches. @param allowed the methods of the path; empty if there is no such path */
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

/** The response to an error of our own. */
export const INTERNAL_ERROR: HttpAnswer = refusal(500, 'internal', 'internal error');
/** The response to a request without a `Host` header. */
export const NO_HOST: HttpAnswer = formatInvalid('host', 'an HTTP/1.1 request must have a host header');
/** The response to an `Expect` header with another value than `100-continue`. */
export const EXPECTATION_FAILED: HttpAnswer = formatInvalid(
  'expect',
  'the only supported expectation is 100-continue',
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

/**
 * A complete HTTP response, as text, to input that Node's HTTP parser rejects. The connection cannot be used after
 * it.
 */
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

/** After its last response, a client has this many milliseconds to read it and to close the connection. */
const LAST_WORD_MILLIS = 1_000;

/**
 * True if a complete request on this connection still has no answer. @param last the response to the latest request
 * on the connection
 */
export function owesAnswer(last: ServerResponse | undefined): boolean {
  if (last === undefined || last.writableFinished) return false;
  // Node gives the socket to one response at a time, in the order of the requests. So this response waits for earlier
  // ones.
  if (last.socket === null) return true;
  return !last.writableEnded && last.req.complete;
}

/** Closes a connection that received invalid input. @param owes true if an earlier request on it has no answer yet */
export function refuseConnection(socket: Socket, response: string, owes: boolean): void {
  // The earlier request would take this response for its own, and it may have been granted.
  if (!socket.writable || owes) {
    socket.destroy();
    return;
  }
  socket.end(response);
  const timer = setTimeout(() => socket.destroy(), LAST_WORD_MILLIS);
  socket.once('close', () => clearTimeout(timer));
}
