/** Targets for the HTTP listener: its parsers of bodies and headers, and all its routes without a socket. */
import fc from 'fast-check';
import { isBoundedText } from '../../../src/api/bounded.ts';
import { invalidInQuestion } from '../../../src/api/question.ts';
import { invalidInListed } from '../../../src/api/listed.ts';
import { KEY_BYTES_MAX, RULE_ID_BYTES_MAX, USER_ID_BYTES_MAX } from '../../../src/api/request.ts';
import { parseAllowBody } from '../../../src/http/allow-body.ts';
import { InvalidBodyError, parseJsonBody, UnsupportedBodyError } from '../../../src/http/json-body.ts';
import { headerUserOf } from '../../../src/http/user-header.ts';
import { HTTP_LIMITS } from '../../../src/http/http-listener-init.ts';
import { HTTP_SETTINGS_DEFAULTS } from '../../../src/config/http-settings.ts';
import { Listener } from '../../http/fixtures.ts';
import { type Outcome, promise, readOr, type Target } from '../target.ts';
import { nearJson } from './json.ts';
import { address, requestBody, shortText } from './made.ts';

const OWN_ERRORS = [InvalidBodyError, UnsupportedBodyError];
const USER_HEADER = 'x-user';

function runBody(input: Buffer): Outcome {
  const read = readOr(OWN_ERRORS, () => parseAllowBody(parseJsonBody({}, input), undefined));
  if ('refused' in read) return read.refused;
  const { value: request } = read;
  const invalid = invalidInQuestion(request);
  promise(invalid === undefined, `it is read, and is not within its bounds: ${invalid?.message ?? ''}`);
  return `read ${Math.min(3, request.descriptors.size)}`;
}

/** The characters that Node trims from a header value. */
const BLANKS = /^[ \t]+|[ \t]+$/g;

/** A line each: of one request, as `name: value`. */
function headersIn(text: string): [name: string, value: string][] {
  return text.split('\n').map((line): [string, string] => {
    const at = line.indexOf(':');
    return at === -1
      ? [line, '']
      : [line.slice(0, at).trim().toLowerCase(), line.slice(at + 1).replaceAll(BLANKS, '')];
  });
}

function runHeaders(input: Buffer): Outcome {
  const headers = headersIn(input.toString('latin1'));
  const named = (name: string): string | undefined => headers.find(([each]) => each === name)?.[1];
  const type = named('content-type');
  const coding = named('content-encoding');
  const read = readOr(OWN_ERRORS, () => {
    const described = {
      ...(type !== undefined && { 'content-type': type }),
      ...(coding !== undefined && { 'content-encoding': coding }),
    };
    parseJsonBody(described, Buffer.from('{}'));
    return headerUserOf({ rawHeaders: headers.flat() }, USER_HEADER);
  });
  if ('refused' in read) return read.refused;
  const { value: user } = read;
  if (user === undefined) return 'read';
  promise(isBoundedText(user.userId, USER_ID_BYTES_MAX), 'a user within bounds');
  const bytes = headers
    .filter(([name]) => name === USER_HEADER)
    .map(([, value]) => Buffer.from(value, 'latin1'));
  promise(
    bytes.length === 1 && Buffer.from(user.userId).equals(bytes[0]!),
    'a user by the bytes of its header',
  );
  return 'read user';
}

const METHODS = ['POST', 'PUT', 'GET', 'DELETE', 'HEAD', 'PATCH', 'OPTIONS'] as const;
let opened: Listener | undefined;

/** A node that answers every request, for all inputs. */
function listener(): Listener {
  opened ??= new Listener(HTTP_LIMITS, {
    ...HTTP_SETTINGS_DEFAULTS,
    userHeader: USER_HEADER,
    trustedProxies: ['127.0.0.1', '10.0.0.0/8'],
  });
  return opened;
}

/** `METHOD url`, a line for each header, an empty line, and the body. */
async function runListener(input: Buffer): Promise<Outcome> {
  const end = input.indexOf('\n\n');
  const [first = '', ...lines] = input.toString('latin1', 0, end === -1 ? input.length : end).split('\n');
  const [verb = '', url = ''] = first.split(' ');
  const method = METHODS.find((each) => each === verb) ?? 'POST';
  // No client could send this: its own library or Node would refuse it.
  if (!url.startsWith('/') || !URL.canParse(url, 'http://node') || /[^!-~]/.test(url))
    return 'refused: no address';
  const headers = Object.fromEntries(
    headersIn(lines.join('\n')).filter(([name, value]) => /^[a-z-]+$/.test(name) && !/[\0\r]/.test(value)),
  );
  const played = listener();
  const payload = end === -1 ? Buffer.alloc(0) : input.subarray(end + 2);
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const response = await played.app.inject({ method, url, headers, ...(hasBody && { payload }) });
  checkAsked(played);
  const { statusCode, body } = response;
  // The fake node reports no usage, so this refusal is not a finding.
  const isUnderstood = statusCode < 300 || statusCode === 503;
  promise(isUnderstood || statusCode < 500, `${statusCode} ${body.slice(0, 200)}`);
  promise(isJson(response.headers['content-type']) ? isReadable(body) : true, 'a body of JSON');
  const [, message = 'without a word'] = /"message":"([^"]*)/.exec(body) ?? [];
  return isUnderstood ? 'read' : `refused: ${message}`;
}

function isJson(type: unknown): boolean {
  return typeof type === 'string' && type.includes('json');
}

function isReadable(body: string): boolean {
  if (body === '') return true;
  const parsed: unknown = JSON.parse(body);
  return typeof parsed === 'object';
}

/** Checks that all requests that reached the node are within bounds. */
function checkAsked({ asked, listed, peeks, refunds, ...more }: Listener): void {
  for (const question of [...asked, ...refunds])
    promise(invalidInQuestion(question) === undefined, 'a request within bounds');
  for (const request of listed) promise(invalidInListed(request) === undefined, 'lists within bounds');
  for (const { key, rule: named } of peeks) {
    promise(isBoundedText(key, KEY_BYTES_MAX), 'a key within its bounds');
    promise(named === undefined || isBoundedText(named, RULE_ID_BYTES_MAX), 'a rule within its bounds');
  }
  const { reported, observed, usageAsked, changes } = more;
  for (const list of [asked, listed, peeks, refunds, reported, observed, usageAsked, changes])
    list.length = 0;
}

const json = 'content-type: application/json';
const rule = fc.record({ id: fc.constantFrom('a', 'a/b'), limit: fc.nat(9), windowMillis: fc.nat(9) });
const nodeId = fc.integer({ min: 1, max: 99 });
const nodeChange = fc.oneof(
  fc.record({ remove: nodeId }),
  fc.record({ add: fc.record({ id: nodeId, http: address, peer: address }) }),
);
const entry = fc.record({ key: shortText(9), value: shortText(9) });
const bodies: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  'POST /v1/allow': requestBody,
  'POST /v1/allow/batch': fc.record({ requests: fc.array(requestBody, { minLength: 1, maxLength: 4 }) }),
  'POST /json': fc.record({
    domain: shortText(9),
    descriptors: fc.array(fc.record({ entries: fc.array(entry, { minLength: 1, maxLength: 3 }) }), {
      minLength: 1,
      maxLength: 3,
    }),
  }),
  'POST /v1/users/ada/refunds': fc.record({ requestId: shortText(9) }),
  'POST /v1/refunds': fc.record(
    { requestId: shortText(9), userId: shortText(9), rule: shortText(9) },
    { requiredKeys: ['requestId', 'userId'] },
  ),
  'POST /v1/cluster/nodes': nodeChange,
  'PUT /v1/rules': fc.oneof(
    fc.record({ rules: fc.array(rule, { maxLength: 3 }), clockDriftPpm: fc.nat(500) }),
    fc.record({ document: fc.constant('rules: []') }),
  ),
};
const simple = fc.constantFrom(
  'GET /v1/users/ada?rule=default\n\n',
  'GET /v1/users/%E2%82%AC\n\n',
  'GET /v1/keys/ip=10.0.0.1,user=a%252cb?rule=a\n\n',
  'GET /v1/usage?minutes=5&rule=a&top=3\n\n',
  'GET /v1/forward-auth?deny_status=403&rule=a&cost=2&request_id=b\nx-user: ada\n\n',
  'GET /v1/forward-auth\nx-forwarded-for: 2001:db8::1, 10.0.0.1\nx-forwarded-method: GET\nx-forwarded-uri: /a/../%62?c\n\n',
  'GET /v1/cluster\n\n',
  'GET /healthz\n\n',
  'GET /readyz\n\n',
  'PUT /v1/rules\ncontent-type: text/yaml\nif-match: "7"\n\nrules: []',
);
const withBody = (damage: (made: fc.Arbitrary<unknown>) => fc.Arbitrary<Buffer>): fc.Arbitrary<Buffer> =>
  fc.oneof(
    ...Object.entries(bodies).map(([route, made]) =>
      damage(made).map((body) => Buffer.concat([Buffer.from(`${route}\n${json}\n\n`), body])),
    ),
  );
const asJson = (made: fc.Arbitrary<unknown>): fc.Arbitrary<Buffer> =>
  made.map((value) => Buffer.from(JSON.stringify(value)));

const WORDS = [
  'null',
  '[]',
  '{}',
  '"userId":',
  ',',
  '\\ud800',
  '\\u0000',
  '1e400',
  '\uFEFF',
  '%ff',
  '%2F',
  '?',
  '&',
  '__proto__',
];
const HEADER_WORDS = [
  '; charset=',
  'utf-8',
  '"',
  ';',
  '=',
  '\n',
  'x-user: ',
  'content-type: ',
  'content-encoding: gzip',
  'if-match: *',
];

export const HTTP: readonly Target[] = [
  {
    name: 'http-bodies',
    parser: 'bodies of requests for a grant',
    sound: asJson(requestBody),
    near: nearJson(requestBody),
    words: WORDS,
    bytesMax: 8_192,
    bytesPerByteMax: 512,
    run: runBody,
  },
  {
    name: 'http-headers',
    parser: 'headers of users, media types and encodings',
    sound: fc
      .tuple(fc.constantFrom('', '; charset=utf-8', '; a=b; charset="UTF-8"'), shortText(20))
      .filter(([, user]) => !/[\n\r]|^[ \t]|[ \t]$/.test(user))
      .map(([charset, user]) => Buffer.from(`content-type: application/json${charset}\nx-user: ${user}`)),
    words: HEADER_WORDS,
    bytesMax: 8_192,
    bytesPerByteMax: 512,
    run: runHeaders,
  },
  {
    name: 'http-listener',
    parser: 'all routes of the HTTP listener: addresses, headers, bodies',
    sound: fc.oneof(
      simple.map((text) => Buffer.from(text)),
      withBody(asJson),
    ),
    near: withBody(nearJson),
    words: [...WORDS, ...HEADER_WORDS],
    bytesMax: 8_192,
    bytesPerByteMax: 2_048,
    run: runListener,
  },
];
