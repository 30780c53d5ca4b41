/**
 * The routes with which operators change one key: `GET`, `PUT`, `DELETE /v1/customers/{id}`, `PUT`, `DELETE
 * /v1/keys/{key}/block`, `POST /v1/keys/{key}/reset` and `PUT /v1/keys/{key}/used`. `/v1/users/{id}` is short for
 * `/v1/keys/user={id}`. While the cluster is open, only the node's own machine may change anything. The routes parse
 * and format; the partition of the key decides.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  type CustomerAction,
  type CustomerAnswer,
  type CustomerOutcome,
  type CustomerRequest,
  invalidInCustomer,
  invalidInUsed,
  type UsedQuestion,
} from '../api/customer.ts';
import type { Invalid } from '../api/answer.ts';
import type { NodeApi } from '../api/api-listener.ts';
import type { DoneWith } from '../api/user-request.ts';
import { type CustomerRecord, type LimitOverride, OVERRIDES_MAX } from '../api/customer-record.ts';
import { formatAnswer } from './answer-format.ts';
import { audited, digestOfKey } from './audit.ts';
import { maybeForbidden } from './callers.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import { fieldsOf, InvalidBodyError, refuseFields } from './json-body.ts';
import { keyOfUser } from './users-route.ts';
import { forbidden } from './local-callers.ts';

/** The paths of the routes, in Fastify's notation. */
export const CUSTOMER = '/v1/customers/:customerId';
export const BLOCK = '/v1/users/:userId/block';
export const RESET = '/v1/users/:userId/reset';
export const KEY_BLOCK = '/v1/keys/:key/block';
export const KEY_RESET = '/v1/keys/:key/reset';
export const USED = '/v1/users/:userId/used';
export const KEY_USED = '/v1/keys/:key/used';
/** Room for all overrides with the longest ids, each character of which may take six in JSON. */
const CUSTOMER_BODY_BYTES_MAX = 32_768;
const FORBIDDEN = forbidden(
  'while the cluster is open, only programs on the machine of this node may change keys, not a browser or proxy',
);
const HEADERS = { 'content-type': JSON_TYPE };

/**
 * The version in an `If-Match` header: one strong entity tag of an earlier answer; `"0"` if there was no record.
 * Undefined for `*` or no header. @throws InvalidBodyError
 */
function ifVersionOf(header: string | undefined): number | undefined {
  if (header === undefined || header.trim() === '*') return undefined;
  const [, version] = /^"(\d{1,15})"$/.exec(header.trim()) ?? [];
  if (version === undefined)
    throw new InvalidBodyError('if-match', 'if-match must be * or the ETag of the customer, e.g. "7"');
  return Number(version);
}

/**
 * Parses `{"tier"?: string, "overrides"?: [{"rule": string, "limit": integer, "burst"?: integer}], "blocked"?:
 * boolean, "durationMillis"?: integer}`. If `tier` or `overrides` is absent, it is removed. Without `blocked`, the
 * block stays as it is, with its end.
 *
 * @throws InvalidBodyError
 */
function parsePut(body: unknown, ifMatch: string | undefined): CustomerAction {
  const { tier, overrides, blocked, durationMillis } = fieldsOf(
    body,
    ['tier', 'overrides', 'blocked', 'durationMillis'],
    'tier, overrides, blocked or some of them',
  );
  if (blocked !== undefined && typeof blocked !== 'boolean')
    throw new InvalidBodyError('blocked', 'blocked must be true or false');
  const action: CustomerAction = {
    type: 'put',
    // The bounds are checked below, by `invalidInCustomer`.
    tier: tier as string | undefined,
    overrides: parseOverrides(overrides),
    isBlocked: blocked,
    ...durationOf(durationMillis),
    ifVersion: ifVersionOf(ifMatch),
  };
  const invalid = invalidInCustomer({ ask: 'customer', userId: '*', action });
  if (invalid !== undefined) throw new InvalidBodyError(invalid.field, invalid.message);
  return action;
}

/** Parses `{"durationMillis"?: integer}`, or no body. @throws InvalidBodyError */
function parseBlock(body: unknown): CustomerAction {
  const { durationMillis } = fieldsOf(
    body === undefined ? {} : body,
    ['durationMillis'],
    'durationMillis, or absent',
  );
  return { type: 'block', isBlocked: true, ...durationOf(durationMillis) };
}

/** Parses `{"rule": string, "used": integer}`. @throws InvalidBodyError */
function parseUsed(key: string, body: unknown): UsedQuestion {
  const { rule, used } = fieldsOf(body, ['rule', 'used'], 'rule and used');
  const question = { key, rule, used } as UsedQuestion;
  refuseInvalid(invalidInUsed(question));
  return question;
}

/** Throws the error for an invalid field, with the name that the routes use. @throws InvalidBodyError */
function refuseInvalid(invalid: Invalid | undefined): void {
  if (invalid?.field === 'userId')
    throw new InvalidBodyError('key', invalid.message.replace('userId', 'key'));
  if (invalid !== undefined) throw new InvalidBodyError(invalid.field, invalid.message);
}

/** Not checked here; `invalidInCustomer` checks all bounds. */
function durationOf(value: unknown): { readonly durationMillis?: number } {
  return value === undefined ? {} : { durationMillis: value as number };
}

function parseOverrides(value: unknown = []): readonly LimitOverride[] {
  if (!Array.isArray(value) || value.length > OVERRIDES_MAX)
    throw new InvalidBodyError('overrides', `overrides must be an array of at most ${OVERRIDES_MAX}`);
  return value.map((one: unknown, i) => {
    if (typeof one !== 'object' || one === null || Array.isArray(one))
      throw new InvalidBodyError(`overrides[${i}]`, `overrides[${i}] must be an object with rule and limit`);
    const { rule, limit, burst } = fieldsOf(one, ['rule', 'limit', 'burst'], 'rule and limit');
    return { ruleId: rule, limit, ...(burst !== undefined && { burst }) } as LimitOverride;
  });
}

function formatRecord(record: CustomerRecord): Record<string, unknown> {
  const { version, tier, overrides, isBlocked: blocked, blockedUntilMillis } = record;
  const limits = overrides.map(({ ruleId: rule, ...override }) => ({ rule, ...override }));
  const end = blockedUntilMillis === undefined ? {} : { blockedUntilMillis };
  return { version, ...(tier !== undefined && { tier }), overrides: limits, blocked, ...end };
}

/** The response to an action. @param named the key or customer, as the path named it */
function formatOutcome(
  { isDone, record, decided }: CustomerOutcome,
  partition: number,
  named: Readonly<Record<string, string>>,
): HttpAnswer {
  const headers = { ...HEADERS, etag: `"${record.version}"` };
  const body = { ...named, ...formatRecord(record), decided: { partition, ...decided } };
  if (isDone) return { status: 200, headers, body };
  const message = 'the customer has changed since it was read; read it again';
  return {
    status: 412,
    headers,
    body: { ...body, error: { type: 'version_mismatch', field: 'if-match', message } },
  };
}

function formatMissing(customer: string): HttpAnswer {
  const message = 'there is no record of this customer; the rules apply to it as to all';
  return {
    status: 404,
    headers: HEADERS,
    body: { customer, error: { type: 'unknown_customer', field: 'customer', message } },
  };
}

function formatCustomer(
  answer: CustomerAnswer,
  partition: number,
  named: Readonly<Record<string, string>>,
): HttpAnswer {
  return answer.kind === 'customer'
    ? formatOutcome(answer.outcome, partition, named)
    : formatAnswer(answer, partition);
}

type OfCustomer = FastifyRequest<{ Params: { customerId: string } }>;
type OfKey = FastifyRequest<{ Params: { userId?: string; key?: string } }>;

function keyOf({ params: { userId, key = keyOfUser(userId ?? '') } }: OfKey): string {
  return key;
}

function senderOf(node: Pick<NodeApi, 'wantsNoClients'>): (reply: FastifyReply, answer: HttpAnswer) => void {
  return (reply, answer) => {
    if (node.wantsNoClients()) void reply.header('connection', 'close');
    sendAnswer(reply, answer);
  };
}

/** Adds the routes of customers. */
export function addCustomersRoutes(app: FastifyInstance, { node, logger }: HttpListenerInit): void {
  const gate = { node, forbidding: FORBIDDEN };
  const send = senderOf(node);
  const change = (request: OfCustomer, reply: FastifyReply, action: CustomerAction): FastifyReply => {
    const { customerId } = request.params;
    node.customer(customerId, action, (answer, partition) => {
      const formatted = formatCustomer(answer, partition, { customer: customerId });
      const customer = digestOfKey(customerId);
      audited(logger, request, { action: `customer.${action.type}`, customer, status: formatted.status });
      send(reply, formatted);
    });
    return reply;
  };
  app.get(CUSTOMER, ({ params: { customerId } }: OfCustomer, reply) => {
    node.customer(customerId, { type: 'read' }, (answer, partition) => {
      const isMissing = answer.kind === 'customer' && answer.outcome.record.version === 0;
      send(
        reply,
        isMissing ? formatMissing(customerId) : formatCustomer(answer, partition, { customer: customerId }),
      );
    });
    return reply;
  });
  app.put(CUSTOMER, { bodyLimit: CUSTOMER_BODY_BYTES_MAX }, (request: OfCustomer, reply) => {
    if (maybeForbidden(request, reply, gate)) return reply;
    return change(request, reply, parsePut(request.body, request.headers['if-match']));
  });
  app.delete(CUSTOMER, (request: OfCustomer, reply) => {
    if (maybeForbidden(request, reply, gate)) return reply;
    refuseFields(request.body);
    return change(request, reply, { type: 'delete', ifVersion: ifVersionOf(request.headers['if-match']) });
  });
}

/** Adds the routes that block, reset and set keys. */
export function addKeyChangesRoutes(app: FastifyInstance, { node, logger }: HttpListenerInit): void {
  const gate = { node, forbidding: FORBIDDEN };
  const send = senderOf(node);
  /** Logs and answers an operator's action on a key. */
  const answered =
    (
      request: OfKey,
      reply: FastifyReply,
      line: { readonly action: string; readonly [name: string]: unknown },
    ): DoneWith<CustomerRequest> =>
    (answer, partition) => {
      const { userId } = request.params;
      const key = keyOf(request);
      const formatted = formatCustomer(answer, partition, userId === undefined ? { key } : { userId, key });
      audited(logger, request, { ...line, user: digestOfKey(key), status: formatted.status });
      send(reply, formatted);
    };
  const operate = (request: OfKey, reply: FastifyReply, action: CustomerAction): FastifyReply => {
    const wanted = { ask: 'customer', userId: keyOf(request), action } as const;
    refuseInvalid(invalidInCustomer(wanted));
    const name = action.type === 'block' && !action.isBlocked ? 'unblock' : action.type;
    const end = 'durationMillis' in action ? { durationMillis: action.durationMillis } : {};
    node.operate(wanted, answered(request, reply, { action: `user.${name}`, ...end }));
    return reply;
  };
  /**
   * A handler that refuses callers that may not change anything, before it parses the body. @param wanted parses the
   * body
   */
  const changing =
    (wanted: (body: unknown) => CustomerAction) =>
    (request: OfKey, reply: FastifyReply): FastifyReply =>
      maybeForbidden(request, reply, gate) ? reply : operate(request, reply, wanted(request.body));
  const bare = (action: CustomerAction): ReturnType<typeof changing> =>
    changing((body) => {
      refuseFields(body);
      return action;
    });
  for (const path of [BLOCK, KEY_BLOCK]) {
    app.put(path, changing(parseBlock));
    app.delete(path, bare({ type: 'block', isBlocked: false }));
  }
  for (const path of [RESET, KEY_RESET]) app.post(path, bare({ type: 'reset' }));
  for (const path of [USED, KEY_USED])
    app.put(path, (request: OfKey, reply) => {
      if (maybeForbidden(request, reply, gate)) return reply;
      const question = parseUsed(keyOf(request), request.body);
      const { rule, used } = question;
      node.setUsed(question, answered(request, reply, { action: 'user.set', rule, used }));
      return reply;
    });
}
