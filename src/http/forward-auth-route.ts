/**
 * `GET /v1/forward-auth`: an API gateway asks before it forwards a request (forward auth of Traefik and Caddy,
 * `auth_request` of nginx). A 2xx answer lets the request pass. Any other answer, or none, does not.
 *
 * The gateway names the user, and either a rule with a cost, or the method and path of its client's request. The
 * address comes from the gateway. The headers come from the client, unless the gateway sets them. A request with
 * something missing is refused.
 */
import type { IncomingMessage } from 'node:http';
import { posix } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { USER } from '../api/descriptors.ts';
import { invalidInQuestion, type Question } from '../api/question.ts';
import { clientAddressOf, type IsTrusted, keyOfAddress, trusting } from './client-address.ts';
import type { HttpSettings } from '../config/http-settings.ts';
import { InvalidBodyError } from './json-body.ts';
import { queryFieldsOf } from './query-fields.ts';
import { headerTextOf, headerUserOf } from './user-header.ts';
import { ALLOW_STATUS } from '../api/refusals.ts';
import { askAndAnswer } from './allow-route.ts';
import { clientOf } from './callers.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { type HttpAnswer, sendAnswer } from './http-answer.ts';

/** The path of the route. */
export const FORWARD_AUTH = '/v1/forward-auth';

/** A parsed request of a gateway. */
interface ForwardedRequest {
  readonly question: Question;
  /** The HTTP status of a denial. */
  readonly denyStatus: number;
}

/** The settings that parsing needs. */
interface Forwarding {
  readonly settings: Pick<HttpSettings, 'userHeader'>;
  readonly isTrusted: IsTrusted;
}

/** The names of all query parameters. */
const FORWARDED_QUERY = ['deny_status', 'rule', 'cost', 'request_id'] as const;
/**
 * The possible statuses of a denial; the first is the default. nginx only accepts 401 and 403, and 401 means
 * something else.
 */
export const DENY_STATUSES = [429, 403] as const;
const METHOD = 'x-forwarded-method';
const URI = 'x-forwarded-uri';
const NUMBER = /^\d{1,15}$/;

/**
 * Parses the query `?deny_status=403&rule=R&cost=N&request_id=ID`, all optional, and the headers.
 *
 * @throws InvalidBodyError naming the parameter or header, and its bound
 */
function forwardedRequestOf(
  request: Pick<IncomingMessage, 'rawHeaders' | 'socket' | 'url'>,
  { settings, isTrusted }: Forwarding,
): ForwardedRequest {
  const query = queryFieldsOf(request.url ?? '', FORWARDED_QUERY);
  const denyStatus = denyStatusOf(query.deny_status);
  const user = headerUserOf(request, settings.userHeader)?.userId;
  // A cost that is no number stays text here, and the check of bounds below refuses it.
  const cost = query.cost !== undefined && NUMBER.test(query.cost) ? Number(query.cost) : query.cost;
  const common = { rule: query.rule, cost: cost as number | undefined, requestId: query.request_id };
  const address = clientAddressOf(request, isTrusted);
  if (user === undefined && address === undefined) throw nobody(settings);
  const question = questionFor(request, { user, address }, common);
  return { question, denyStatus };
}

function denyStatusOf(text: string | undefined): number {
  if (text === undefined) return DENY_STATUSES[0];
  const status = DENY_STATUSES.find((known) => String(known) === text);
  if (status !== undefined) return status;
  throw new InvalidBodyError('deny_status', `deny_status must be ${DENY_STATUSES.join(' or ')}`);
}

type Common = Pick<Question, 'rule' | 'cost' | 'requestId'>;

function nobody({ userHeader }: Forwarding['settings']): InvalidBodyError {
  const header = userHeader === undefined ? 'http.userHeader is not set' : `there is no ${userHeader}`;
  return new InvalidBodyError(
    'userId',
    `userId is not known: ${header}, and x-forwarded-for is taken only from http.trustedProxies of cluster.json`,
  );
}

/** Builds the question. If no user is known, the user is the address of the client. */
function questionFor(
  request: Pick<IncomingMessage, 'rawHeaders'>,
  { user, address }: { readonly user: string | undefined; readonly address: string | undefined },
  common: Common,
): Question {
  const descriptors = new Map([[USER, user ?? keyOfAddress(address ?? '')]]);
  // A caller that names a rule need not say what the request is for.
  if (common.rule === undefined) {
    descriptors.set('method', needed(request, METHOD));
    descriptors.set('endpoint', pathOf(needed(request, URI)));
  }
  if (address !== undefined) descriptors.set('ip', address);
  const question: Question = { descriptors, ...common };
  const invalid = invalidInQuestion(question);
  if (invalid !== undefined) throw new InvalidBodyError(nameOf(invalid.field), invalid.message);
  return question;
}

function nameOf(field: string): string {
  return field === 'requestId' ? 'request_id' : field;
}

/**
 * The value of a header that must be there. Without it the rules that use it would not match, so their limits would
 * not apply.
 */
function needed(request: Pick<IncomingMessage, 'rawHeaders'>, header: string): string {
  const text = headerTextOf(request, header);
  if (text !== undefined && text !== '') return text;
  throw new InvalidBodyError(header, `${header} must be there, because rules match requests by it`);
}

/** The canonical form of a path, so that different spellings of one path count together. */
function pathOf(uri: string): string {
  const [path = ''] = uri.split(/[?#]/, 1);
  if (!path.startsWith('/')) throw new InvalidBodyError(URI, `${URI} must begin with a slash`);
  try {
    return posix.normalize(decodeURIComponent(path));
  } catch {
    throw new InvalidBodyError(URI, `${URI} must be percent-encoded UTF-8`);
  }
}

/** Adds the route. */
export function addForwardAuthRoute(app: FastifyInstance, init: HttpListenerInit): void {
  let settings = init.settings();
  let isTrusted = trusting(settings.trustedProxies ?? []);
  // No HEAD route: it would also use up a grant, and gateways do not ask with HEAD.
  app.get(FORWARD_AUTH, { exposeHeadRoute: false }, (request, reply) => {
    const startedMillis = init.monotonicMillis();
    if (settings !== init.settings()) {
      settings = init.settings();
      isTrusted = trusting(settings.trustedProxies ?? []);
    }
    const { question, denyStatus } = forwardedRequestOf(request.raw, { settings, isTrusted });
    // Every answer is a separate grant, so it must not be cached.
    void reply.header('cache-control', 'no-store');
    const send = (answer: HttpAnswer): void =>
      sendAnswer(reply, answer.status === ALLOW_STATUS.denied ? { ...answer, status: denyStatus } : answer);
    askAndAnswer(init, { client: clientOf(request), question, startedMillis, send });
    return reply;
  });
}
