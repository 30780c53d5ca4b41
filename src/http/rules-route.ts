/**
 * `GET /v1/rules` and `PUT /v1/rules` read and replace the rules in force. `GET`, `PUT` and `DELETE /v1/rules/{id}`
 * do the same for one rule. While the cluster is open, only the node's own machine may change rules. The routes parse
 * and format; group 0 and the partitions decide.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { RULES_CHANGE_FIELDS, type RulesChange } from '../api/rules-change.ts';
import { changeCluster, formatRefused } from './change-answer.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { JSON_TYPE, sendAnswer } from './http-answer.ts';
import { fieldsOf, InvalidBodyError, parseTextBody, UnsupportedBodyError } from './json-body.ts';
import { forbidden } from './local-callers.ts';

const FORBIDDEN = forbidden(
  'while the cluster is open, only programs on the machine of this node may change rules, not a browser or proxy',
);
/**
 * The longest body in bytes. It has room for as many rules as a table may have, even with the longest ids, each
 * character of which may take six in JSON.
 */
export const RULES_BODY_BYTES_MAX = 1_048_576;
/** The media types of a rule document that is sent as it is, instead of inside JSON. */
const DOCUMENT_TYPES = ['application/yaml', 'text/yaml'];
const OTHER_TYPE = `body must be JSON, with content-type: application/json, or a rule document, with ${DOCUMENT_TYPES.join(' or ')}`;
const NO_RULES = formatRefused({
  ok: false,
  reason: 'notLeader',
  message: 'no rules are in force yet; ask again',
});
const UNKNOWN_RULE = formatRefused({ ok: false, reason: 'unknownRule' });
/** The longest body of one rule, in bytes. */
const RULE_BODY_BYTES_MAX = 65_536;
/** The path of one rule, in Fastify's notation. Ids may contain a slash. */
export const ONE_RULE = '/v1/rules/*';

/**
 * The version in an `If-Match` header: one strong entity tag of an earlier answer. Undefined for `*` or no header.
 * @throws InvalidBodyError
 */
function parseIfMatch(header: string | undefined): number | undefined {
  if (header === undefined || header.trim() === '*') return undefined;
  const [, version] = /^"(\d{1,15})"$/.exec(header.trim()) ?? [];
  if (version === undefined)
    throw new InvalidBodyError('if-match', 'if-match must be * or the ETag of the rules, e.g. "7"');
  return Number(version);
}

/**
 * Parses `{"rules", "requestIdHorizonMillis"?, "clockDriftPpm"?, "partitionBytesMax"?}`, or instead of `rules` a
 * `document`: the text of a rules.yaml. A body of `DOCUMENT_TYPES` has already been turned into the second form.
 *
 * @throws InvalidBodyError
 */
function parseRulesBody(body: unknown, ifMatch: string | undefined): RulesChange {
  const fields = [...RULES_CHANGE_FIELDS, 'document'] as const;
  const { document, ...table } = fieldsOf(
    body,
    fields,
    'rules or a document, and optionally the other fields of a rule table',
  );
  const ifVersion = parseIfMatch(ifMatch);
  if (document === undefined) return { table, ifVersion };
  if (typeof document !== 'string') throw new InvalidBodyError('document', 'document must be text');
  if (table.rules !== undefined)
    throw new InvalidBodyError('rules', 'rules must be absent if there is a document');
  return { table, document, ifVersion };
}

/** One rule in the form of a document or of a table. Its id is the one in the path. @throws InvalidBodyError */
function parseRuleBody(body: unknown, id: string): Readonly<Record<string, unknown>> {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new InvalidBodyError('body', 'body must be a JSON object: one rule');
  const { id: stated = id, ...rule } = body as Readonly<Record<string, unknown>>;
  if (stated !== id)
    throw new InvalidBodyError('id', 'id must be the same as in the path, or absent: a rule keeps its id');
  return rule;
}

function headersOf(version: number): Readonly<Record<string, string>> {
  return { 'content-type': JSON_TYPE, etag: etagOf(version) };
}

function etagOf(version: number): string {
  return `"${version}"`;
}

/** Allows rule documents as bodies on this route, beside JSON. */
function takeDocuments(scope: FastifyInstance): void {
  scope.addContentTypeParser(DOCUMENT_TYPES, { parseAs: 'buffer' }, (request, bytes: Buffer, done) => {
    done(null, { document: parseTextBody(request.headers, bytes) });
  });
  scope.addContentTypeParser('*', (_request, _payload, done) => {
    done(new UnsupportedBodyError(OTHER_TYPE));
  });
}

/**
 * Sends the rules or one rule. @param found undefined if no rules are in force; its body is undefined if there is no
 * such rule
 */
function sendFound(
  reply: FastifyReply,
  found: { readonly version: number; readonly body: unknown } | undefined,
): FastifyReply {
  if (found === undefined) sendAnswer(reply, NO_RULES);
  else if (found.body === undefined) sendAnswer(reply, UNKNOWN_RULE);
  else sendAnswer(reply, { status: 200, headers: headersOf(found.version), body: found.body });
  return reply;
}

type OneRuleRequest = FastifyRequest<{ Params: { '*': string } }>;

/** Adds the routes. */
export function addRulesRoutes(app: FastifyInstance, init: HttpListenerInit): void {
  const { node } = init;
  /** Makes a change and answers `reply`. */
  const change = (request: FastifyRequest, reply: FastifyReply, wanted: () => RulesChange): FastifyReply =>
    changeCluster(init, { request, reply, forbidding: FORBIDDEN }, () => {
      const { '*': rule } = request.params as { readonly '*'?: string };
      return {
        change: { type: 'rules', change: wanted() },
        action: `rules.${request.method.toLowerCase()}`,
        details: rule === undefined ? {} : { rule },
        made: ({ version, pending = [] }) => ({ headers: headersOf(version), body: { version, pending } }),
      };
    });

  app.get('/v1/rules', (_request, reply) => {
    const rules = node.rules();
    return sendFound(reply, rules && { version: rules.version, body: rules });
  });
  void app.register((scope, _options, registered) => {
    takeDocuments(scope);
    scope.put('/v1/rules', { bodyLimit: RULES_BODY_BYTES_MAX }, (request, reply) =>
      change(request, reply, () => parseRulesBody(request.body, request.headers['if-match'])),
    );
    registered();
  });
  app.get(ONE_RULE, (request: OneRuleRequest, reply) => sendFound(reply, node.rule(request.params['*'])));
  app.put(ONE_RULE, { bodyLimit: RULE_BODY_BYTES_MAX }, (request: OneRuleRequest, reply) =>
    change(request, reply, () => {
      const id = request.params['*'];
      const rule = { id, body: parseRuleBody(request.body, id) };
      return { table: {}, rule, ifVersion: parseIfMatch(request.headers['if-match']) };
    }),
  );
  app.delete(ONE_RULE, (request: OneRuleRequest, reply) =>
    change(request, reply, () => {
      const rule = { id: request.params['*'] };
      return { table: {}, rule, ifVersion: parseIfMatch(request.headers['if-match']) };
    }),
  );
}
