/**
 * `POST /v1/allow/batch`: many requests for grants in one body. Each is decided on its own and answered in its place,
 * as if it had come alone; a malformed one gets 400 in its place. A batch saves HTTP overhead: one body to read, one
 * response to write.
 */
import type { FastifyInstance } from 'fastify';
import type { AskAnswer, AskDone, Question } from '../api/question.ts';
import type { Invalid } from '../api/answer.ts';
import { parseAllowBody } from './allow-body.ts';
import { formatBody, type FormattedBody } from './answer-format.ts';
import { clientOf } from './callers.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { JSON_TYPE, sendAnswer } from './http-answer.ts';
import { fieldsOf, InvalidBodyError, type JsonBody, readJsonBody, repeatedKey } from './json-body.ts';
import { type HeaderUser, headerUserOf } from './user-header.ts';

/** The path of the route. */
export const ALLOW_BATCH = '/v1/allow/batch';
/** The most requests in one body. */
export const BATCH_MAX = 1_000;
/**
 * The longest body in bytes. It has room for `BATCH_MAX` requests of usual length; with the longest ids fewer fit.
 */
export const BATCH_BODY_BYTES_MAX = 524_288;
/** The partition in answers that no partition gave. */
const NO_PARTITION = 0;

function isInvalid(item: Question | Invalid): item is Invalid {
  return 'kind' in item;
}

/**
 * Parses `{"requests": [...]}` with 1 to `BATCH_MAX` bodies of `/v1/allow`. A malformed request is refused in its
 * place, because the others may belong to other users.
 *
 * @param headerUser the user of all requests, if a header names one
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

/** Adds the route. */
export function addBatchRoute(app: FastifyInstance, init: HttpListenerInit): void {
  void app.register((scope, _options, registered) => {
    allowRepeatedKeys(scope);
    addRoute(scope, init);
    registered();
  });
}

/** Only on this route, a repeated key in one request does not refuse the whole body. */
function allowRepeatedKeys(scope: FastifyInstance): void {
  scope.removeContentTypeParser('application/json');
  scope.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, bytes: Buffer, done) => {
    done(null, readJsonBody(request.headers, bytes));
  });
}

function addRoute(scope: FastifyInstance, init: HttpListenerInit): void {
  scope.post<{ Body: JsonBody | undefined }>(
    ALLOW_BATCH,
    { bodyLimit: BATCH_BODY_BYTES_MAX },
    (request, reply) => {
      const startedMillis = init.monotonicMillis();
      const items = parseBatchBody(request.body, headerUserOf(request.raw, init.settings().userHeader));
      const questions = items.filter((item): item is Question => !isInvalid(item));
      const load = init.node.shedding.entered(clientOf(request), questions.length);
      const shown = ({ status, body }: FormattedBody): object => {
        init.observe(status, startedMillis);
        return { status, ...body };
      };
      const refused = items.map((item) =>
        isInvalid(item) ? shown(formatBody(item, NO_PARTITION)) : undefined,
      );
      askBatch(init.node, questions, {
        reported(question, answer, partition) {
          init.node.answered(question, answer, startedMillis);
          init.node.shedding.left(load, 1);
          return shown(formatBody(answer, partition));
        },
        done(reported) {
          if (init.node.wantsNoClients()) void reply.header('connection', 'close');
          const reportedInOrder = reported.values();
          const answers = refused.map((each) => each ?? reportedInOrder.next().value);
          sendAnswer(reply, { status: 200, headers: { 'content-type': JSON_TYPE }, body: { answers } });
        },
      });
      return reply;
    },
  );
}

/** Turns one answer into its result. Called as soon as the answer arrives; the others may take longer. */
type Reported<Q, T> = (question: Q, answer: AskAnswer, partition: number) => T;

/**
 * Asks the node for every request of a batch, each on its own and in the order of the list, and collects the answers.
 *
 * @param requests each well-formed
 * @param done called once, after the last answer, with the results in the order of the requests
 */
export function askBatch<Q, T>(
  node: { readonly ask: (question: Q, done: AskDone) => void },
  requests: readonly Q[],
  { reported, done }: { readonly reported: Reported<Q, T>; readonly done: (answers: readonly T[]) => void },
): void {
  const answers: T[] = [];
  let openCount = requests.length;
  if (openCount === 0) return done(answers);
  for (const [i, question] of requests.entries()) {
    node.ask(question, (answer, partition) => {
      answers[i] = reported(question, answer, partition);
      openCount -= 1;
      if (openCount === 0) done(answers);
    });
  }
}
