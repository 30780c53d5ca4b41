/**
 * Targets for Envoy's rate limit protocol, in bytes and in JSON. A parsed request is valid, or refused by naming a
 * field.
 */
import fc from 'fast-check';
import { InvalidFieldError } from '../../../src/api/fields.ts';
import { invalidInListed } from '../../../src/api/listed.ts';
import { messageType } from '../../../src/grpc/protos.ts';
import { decodeRequest, MalformedRequestError } from '../../../src/grpc/rate-limit-messages.ts';
import { askedBy, type RateLimitRequest } from '../../../src/rls/request.ts';
import { requestOfJson } from '../../../src/rls/request-json.ts';
import { type Outcome, promise, readOr, type Target } from '../target.ts';
import { nearJson } from './json.ts';
import { shortText } from './made.ts';

const REQUEST = messageType('envoy.service.ratelimit.v3.RateLimitRequest');

const entry = fc.record({ key: shortText(9), value: shortText(9) });
const hits = fc.integer({ min: 0, max: 5 });
const sound = fc.record({
  domain: shortText(9),
  descriptors: fc.array(
    fc.record(
      {
        entries: fc.array(entry, { minLength: 1, maxLength: 3 }),
        limit: fc.record({ requests_per_unit: hits, unit: fc.integer({ min: 1, max: 5 }) }),
        hits_addend: hits,
      },
      { requiredKeys: ['entries'] },
    ),
    { minLength: 1, maxLength: 3 },
  ),
  hits_addend: hits,
});

function peek(request: RateLimitRequest): Outcome {
  const asked = askedBy(request);
  if ('kind' in asked) {
    promise(asked.message.startsWith(asked.field), 'the message names the wrong field');
    return `refused: ${asked.field.replaceAll(/\d+/g, 'n')}`;
  }
  promise(invalidInListed(asked) === undefined, 'the request is within its bounds');
  return 'read';
}

function runBytes(input: Buffer): Outcome {
  const read = readOr([MalformedRequestError], () => decodeRequest(input));
  return 'refused' in read ? read.refused : peek(read.value);
}

function runJson(input: Buffer): Outcome {
  const json = readOr([SyntaxError], () => JSON.parse(input.toString('utf8')) as unknown);
  if ('refused' in json) return 'refused: no JSON';
  try {
    return peek(requestOfJson(json.value));
  } catch (error) {
    if (!(error instanceof InvalidFieldError)) throw error;
    // The field may be one that the input made up.
    return `refused: ${error.bound}`;
  }
}

export const RLS: readonly Target[] = [
  {
    name: 'rls-bytes',
    parser: '`RateLimitRequest` over gRPC',
    sound: sound.map((request) => {
      const descriptors = request.descriptors.map(({ hits_addend: value, ...descriptor }) => ({
        ...descriptor,
        ...(value !== undefined && { hits_addend: { value } }),
      }));
      return REQUEST.encode({ ...request, descriptors });
    }),
    bytesMax: 2_048,
    bytesPerByteMax: 4_000,
    run: runBytes,
  },
  {
    name: 'rls-json',
    parser: '`RateLimitRequest` in JSON',
    sound: sound.map((request) => Buffer.from(JSON.stringify(request))),
    near: nearJson(sound),
    words: ['"domain"', '"hitsAddend"', '"requestsPerUnit"', '"isNegativeHits"', 'null'],
    bytesMax: 4_096,
    bytesPerByteMax: 4_000,
    run: runJson,
  },
];
