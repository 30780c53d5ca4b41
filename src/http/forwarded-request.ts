/**
 * What a gateway asks about a request of its own client: who that is, by which rule and at which cost, or what the request is.
 * The address is the gateway's own word; headers are the client's, unless the gateway sets them. Where something is missing it is refused.
 */
import type { IncomingMessage } from 'node:http';
import { posix } from 'node:path';
import { USER } from '../api/descriptors.ts';
import { invalidInQuestion, type Question } from '../api/question.ts';
import { clientAddressOf, type IsTrusted, keyOfAddress } from './client-address.ts';
import type { HttpSettings } from '../config/http-settings.ts';
import { InvalidBodyError } from './json-body.ts';
import { queryFieldsOf } from './query-fields.ts';
import { headerTextOf, headerUserOf } from './user-header.ts';

export interface ForwardedRequest {
  readonly wanted: Question;
  /** Of a denial. */
  readonly denyStatus: number;
}

export interface Forwarding {
  readonly settings: Pick<HttpSettings, 'userHeader'>;
  readonly isTrusted: IsTrusted;
}

export const FORWARDED_QUERY = ['deny_status', 'rule', 'cost', 'request_id'] as const;
/** nginx takes no other than 401 and 403 for a denial, and 401 means something else. */
export const DENY_STATUSES = [429, 403] as const;
const METHOD = 'x-forwarded-method';
const URI = 'x-forwarded-uri';
const NUMBER = /^\d{1,15}$/;

/**
 * `?deny_status=403&rule=R&cost=N&request_id=ID`, all of them optional.
 *
 * @throws InvalidBodyError naming the parameter or header, and its bound
 */
export function forwardedRequestOf(
  request: Pick<IncomingMessage, 'rawHeaders' | 'socket' | 'url'>,
  { settings, isTrusted }: Forwarding,
): ForwardedRequest {
  const query = queryFieldsOf(request.url ?? '', FORWARDED_QUERY);
  const denyStatus = denyStatusOf(query.deny_status);
  const user = headerUserOf(request, settings.userHeader)?.userId;
  // What is no number is refused with the bounds.
  const cost = query.cost !== undefined && NUMBER.test(query.cost) ? Number(query.cost) : query.cost;
  const common = { rule: query.rule, cost: cost as number | undefined, requestId: query.request_id };
  const address = clientAddressOf(request, isTrusted);
  if (user === undefined && address === undefined) throw nobody(settings);
  const wanted = questionFor(request, { user, address }, common);
  return { wanted, denyStatus };
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

/** Who it is as far as it is known, and what it is for. Whom nobody names is the address that it comes from. */
function questionFor(
  request: Pick<IncomingMessage, 'rawHeaders'>,
  { user, address }: { readonly user: string | undefined; readonly address: string | undefined },
  common: Common,
): Question {
  const descriptors = new Map([[USER, user ?? keyOfAddress(address ?? '')]]);
  // Who names a rule has said what it is for.
  if (common.rule === undefined) {
    descriptors.set('method', needed(request, METHOD));
    descriptors.set('endpoint', pathOf(needed(request, URI)));
  }
  if (address !== undefined) descriptors.set('ip', address);
  const wanted: Question = { descriptors, ...common };
  const invalid = invalidInQuestion(wanted);
  if (invalid !== undefined) throw new InvalidBodyError(nameOf(invalid.field), invalid.message);
  return wanted;
}

function nameOf(field: string): string {
  return field === 'requestId' ? 'request_id' : field;
}

/** Without it a rule for it would not be found, and its limit would not hold. */
function needed(request: Pick<IncomingMessage, 'rawHeaders'>, header: string): string {
  const text = headerTextOf(request, header);
  if (text !== undefined && text !== '') return text;
  throw new InvalidBodyError(header, `${header} must be there, for the rules in force find limits by it`);
}

/** One text for all ways to write a path that lead to one place. */
function pathOf(uri: string): string {
  const [path = ''] = uri.split(/[?#]/, 1);
  if (!path.startsWith('/')) throw new InvalidBodyError(URI, `${URI} must begin with a slash`);
  try {
    return posix.normalize(decodeURIComponent(path));
  } catch {
    throw new InvalidBodyError(URI, `${URI} must be percent-encoded UTF-8`);
  }
}
