/**
 * `POST /v1/allow/batch`: many requests for grants in one body, each decided for itself and answered in its place, as if it
 * had come alone, with 400 if it is malformed. What they cost less is the way: one body to read, one response to write.
 */
import type { FastifyInstance } from 'fastify';
import type { Invalid } from '../api/answer.ts';
import type { Question } from '../api/question.ts';
import { parseAllowBody } from './allow-body.ts';
import { formatBody, type FormattedBody } from './answer-format.ts';
import { askBatch } from './batch-asking.ts';
import { clientOf } from './callers.ts';
import type { HttpDoorInit } from './door-init.ts';
import { JSON_TYPE, sendAnswer } from './http-answer.ts';
import { fieldsOf, InvalidBodyError, type JsonBody, readJsonBody, repeatedKey } from './json-body.ts';
import { type HeaderUser, headerUserOf } from './user-header.ts';

export const ALLOW_BATCH = '/v1/allow/batch';
/** Requests of one body. */
export const BATCH_MAX = 1_000;
/** Room for that many of usual length; a body of the longest ids holds fewer. */
export const BATCH_BODY_BYTES_MAX = 524_288;
/** What an answer says that no partition gave. */
const NO_PARTITION = 0;

function isInvalid(item: Question | Invalid): item is Invalid {
  return 'kind' in item;
}

/**
 * `{"requests": [...]}`, 1 to `BATCH_MAX` of what `/v1/allow` takes. A request that is malformed is refused in its place: the others
 * are other people's.
 *
 * @param headerUser the user of all of them, if a header of the request names one
 * @throws InvalidBodyError if the body is no such list
 */
function parseBatchBody(
  body: JsonBody | undefined,
  headerUser: HeaderUser | undefined,
): (Question | Invalid)[] {
  const { requests } = fieldsOf(body?.value, ['requests'], 'requests, a list');
  if (!Array.isArray(requests) || requests.length === 0 || requests.length > BATCH_MAX)
    throw new InvalidBodyError('requests', `requests must be a list of 1 to ${BATCH_MAX}`);
  const repeated = new Map<number, InvalidBodyError>();
  for (const path of body?.repeated ?? []) {
    const [, place, ...rest] = path;
    if (typeof place !== 'number') throw repeatedKey(path);
    if (!repeated.has(place)) repeated.set(place, repeatedKey(rest));
  }
  return requests.map((each: unknown, i) => {
    try {
      const wrong = repeated.get(i);
      if (wrong !== undefined) throw wrong;
      return parseAllowBody(each, headerUser);
    } catch (error) {
      if (!(error instanceof InvalidBodyError)) throw error;
      return { kind: 'invalid', field: error.field, message: error.message };
    }
  });
}

export function addBatchRoute(app: FastifyInstance, init: HttpDoorInit): void {
  void app.register((scope, _options, registered) => {
    tellRepeatedKeys(scope);
    addRoute(scope, init);
    registered();
  });
}

/** Only here a repeated key is not the end of the whole body. */
function tellRepeatedKeys(scope: FastifyInstance): void {
  scope.removeContentTypeParser('application/json');
  scope.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, bytes: Buffer, done) => {
    done(null, readJsonBody(request.headers, bytes));
  });
}

function addRoute(scope: FastifyInstance, init: HttpDoorInit): void {
  scope.post<{ Body: JsonBody | undefined }>(
    ALLOW_BATCH,
    { bodyLimit: BATCH_BODY_BYTES_MAX },
    (request, reply) => {
      const startedMillis = init.monotonicMillis();
      const items = parseBatchBody(request.body, headerUserOf(request.raw, init.settings().userHeader));
      const questions = items.filter((item): item is Question => !isInvalid(item));
      const share = init.node.shedding.entered(clientOf(request), questions.length);
      const shown = ({ status, body }: FormattedBody): object => {
        init.observe(status, startedMillis);
        return { status, ...body };
      };
      const refused = items.map((item) =>
        isInvalid(item) ? shown(formatBody(item, NO_PARTITION)) : undefined,
      );
      askBatch(init.node, questions, {
        told(wanted, answer, partition) {
          init.node.answered(wanted, answer, startedMillis);
          init.node.shedding.left(share, 1);
          return shown(formatBody(answer, partition));
        },
        done(told) {
          if (init.node.wantsNoClients()) void reply.header('connection', 'close');
          const toldInOrder = told.values();
          const answers = refused.map((each) => each ?? toldInOrder.next().value);
          sendAnswer(reply, { status: 200, headers: { 'content-type': JSON_TYPE }, body: { answers } });
        },
      });
      return reply;
    },
  );
}
