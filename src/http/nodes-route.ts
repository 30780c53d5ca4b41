/**
 * `POST /v1/cluster/nodes`: adds, removes or replaces a node of the running cluster. Until callers are authenticated
 * it answers the node's own machine only, and there neither a browser nor a proxy. It parses and formats; group 0 decides.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { InvalidFieldError } from '../api/fields.ts';
import {
  NODE_CHANGE_FAILURES,
  NODE_CHANGE_FIELDS,
  type NodeChange,
  type NodeChangeResult,
  validateNodeChange,
} from '../api/node-change.ts';
import { UNAVAILABLE_RETRY_SECONDS } from '../api/refusals.ts';
import type { HttpDoorInit } from './door-init.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';

const FORBIDDEN: HttpAnswer = {
  status: 403,
  headers: { 'content-type': JSON_TYPE },
  body: {
    error: {
      type: 'forbidden',
      message:
        'nodes are added and removed from the machine of the node that is asked, by no browser or proxy',
    },
  },
};

/**
 * Browsers send `Origin` with every POST, also to a name of the attacker's that leads to loopback all at once (DNS
 * rebinding). The other headers say that somebody else asks through a proxy here.
 */
const FOREIGN_HEADERS = ['origin', 'forwarded', 'via', 'x-forwarded-for', 'x-real-ip'] as const;

/** The two ends of a connection. */
export interface Ends {
  readonly remoteAddress?: string | undefined;
  readonly localAddress?: string | undefined;
}

/** Does a program on this machine ask, for itself? A node that listens on one address only is not found on loopback. */
export function isLocal({ remoteAddress = '', localAddress }: Ends, headers: IncomingHttpHeaders): boolean {
  const isLoopback = remoteAddress === '::1' || /^(::ffff:)?127\./.test(remoteAddress);
  const isOwn = isLoopback || remoteAddress === localAddress;
  return isOwn && FOREIGN_HEADERS.every((name) => headers[name] === undefined);
}

/**
 * `{"add"?: {"id", "http": {"host", "port"}, "peer": {"host", "port"}}, "remove"?: id}`.
 *
 * @throws InvalidBodyError naming the field and its bound
 */
function parseNodesBody(body: unknown): NodeChange {
  const { add, remove } = fieldsOf(body, NODE_CHANGE_FIELDS, 'add, remove or both');
  if (add === undefined && remove === undefined)
    throw new InvalidBodyError('body', NODE_CHANGE_FAILURES.emptyChange.text);
  try {
    return validateNodeChange({ add, remove });
  } catch (error) {
    if (error instanceof InvalidFieldError) throw new InvalidBodyError(error.field, error.message);
    throw error;
  }
}

function formatNodesAnswer(result: NodeChangeResult): HttpAnswer {
  const headers = { 'content-type': JSON_TYPE };
  if (result.ok) return { status: 200, headers, body: { version: result.version } };
  const { status, text: message, ...told } = NODE_CHANGE_FAILURES[result.reason];
  const body = { reason: result.reason, ...told, message };
  if (status === 409) return { status, headers, body };
  return { status, headers: { ...headers, 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) }, body };
}

export function addNodesRoute(app: FastifyInstance, { node, logger }: HttpDoorInit): void {
  app.post('/v1/cluster/nodes', (request, reply) => {
    if (!isLocal(request.socket, request.headers)) {
      sendAnswer(reply, FORBIDDEN);
      return reply;
    }
    const change = parseNodesBody(request.body);
    node.changeNodes(change, (result) => {
      const answer = formatNodesAnswer(result);
      const { status, body } = answer;
      logger.info({ change, status, ...(typeof body === 'object' && body) }, 'change of the nodes asked for');
      sendAnswer(reply, answer);
    });
    return reply;
  });
}
