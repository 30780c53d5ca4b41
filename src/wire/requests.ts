/**
 * The frame of requests that another node has to decide, as it leads their partitions. The parts, in order:
 * 1. for each request: id, time budget, partition, relay, and the rule version that it was matched by
 * 2. the requests of operators about customers: their indexes, and each encoded like a log entry
 * 3. the indexes of the peeks among the other requests
 * 4. these other requests as one batch, in the bytes of a log entry; a peek is a row with a key and perhaps a rule,
 *   a cost and a time
 *
 * An empty list is a ping. There is one batch for all partitions: with many partitions most batches would hold a
 * single request and cost more than they save.
 */
import type { CustomerRequest } from '../api/customer.ts';
import type { PeekRequest } from '../api/peek.ts';
import type { UserRequest } from '../api/user-request.ts';
import type { NodeId } from '../../raft/types.ts';
import { type AllowBatch, requestsOf, rowsOf } from '../limiter/log/batch.ts';
import { AllowBatchBuilder } from '../limiter/log/batch-builder.ts';
import { type Command, CommandDecodeError, decodeCommand } from '../limiter/log/command.ts';
import { encodeCustomers } from '../limiter/log/customer-entry.ts';
import type { ByteReader } from '../bytes/byte-reader.ts';
import { ByteWriter } from '../bytes/byte-writer.ts';
import { payloadReader, takePayload } from './payload.ts';
import { FrameError } from './frame.ts';

/** One request in a frame. */
export interface ForwardedRequest {
  /** Correlation id of the asking node; the answer repeats it. */
  readonly id: number;
  /** How long the answer is waited for. It is a duration and not a deadline, as clocks differ. */
  readonly budgetMillis: number;
  readonly partition: number;
  /** The leader that the request may be relayed to; NO_NODE: it must not be relayed. */
  readonly relayTo: NodeId;
  /** Well-formed; it was checked before it was sent. */
  readonly request: UserRequest;
}

/** Placeholder until the batch is read. */
const NOT_READ: UserRequest = { userId: '' };
const NO_CUSTOMERS: ReadonlyMap<number, CustomerRequest> = new Map();
const out = new ByteWriter();
const batch = new AllowBatchBuilder();

/** Encodes up to `BATCH_REQUESTS_MAX` rows. An empty list is a ping. */
export function encodeRequests(requests: readonly ForwardedRequest[]): Buffer {
  out.clear();
  batch.clear();
  out.integer(requests.length);
  const peeks: number[] = [];
  const customers: number[] = [];
  let batched = 0;
  for (let i = 0; i < requests.length; i += 1) {
    const { id, budgetMillis, partition, relayTo, request } = requests[i]!;
    out.integer(id);
    out.integer(budgetMillis);
    out.integer(partition);
    out.integer(relayTo);
    out.integer(request.ask === undefined ? (request.matchedBy ?? 0) : 0);
    if (request.ask === 'customer') {
      customers.push(i);
      continue;
    }
    if (request.ask === 'peek') {
      peeks.push(batched);
      const { userId, ruleId, cost, timestampMillis } = request;
      batch.add({ userId, ruleId, cost, timestampMillis });
    } else batch.add(request);
    batched += 1;
  }
  if (requests.length > 0) encodeOperators(requests, customers);
  if (batch.size > 0) {
    out.integers(peeks);
    out.byteString(batch.take());
  }
  return takePayload(out);
}

/** @param places indexes of the operators' requests */
function encodeOperators(requests: readonly ForwardedRequest[], places: readonly number[]): void {
  out.integers(places);
  for (const place of places) {
    const { request } = requests[place]!;
    if (request.ask === 'customer') out.byteString(encodeCustomers([request]));
  }
}

/** Number of rows of the batch that a request takes. */
export function rowsOfForwarded(request: UserRequest): number {
  return request.ask === 'peek' || request.ask === 'customer' ? 1 : rowsOf(request);
}

/** Decodes requests. @throws FrameError if the frame is malformed */
export function decodeRequests(payload: Uint8Array): ForwardedRequest[] {
  const input = payloadReader(payload);
  const count = input.count('requests');
  const matchedBy: number[] = [];
  const forwarded = Array.from({ length: count }, (_, i) => {
    const id = input.integer('id');
    const budgetMillis = input.integer('budgetMillis');
    const partition = input.integer('partition');
    const relayTo = input.integer('relayTo');
    matchedBy[i] = input.integer('matchedBy');
    return { id, budgetMillis, partition, relayTo, request: NOT_READ };
  });
  const customers = count === 0 ? NO_CUSTOMERS : decodeOperators(input, count);
  const others = count - customers.size;
  const peeks = others === 0 ? [] : input.integers('peeks');
  const requests: UserRequest[] = others === 0 ? [] : requestsOf(decodeBatch(input.byteView('batch')));
  if (requests.length !== others)
    throw new FrameError(`the batch has ${requests.length} requests, not ${others}`);
  if (!input.isAtEnd) throw new FrameError('bytes follow the requests');
  for (const [i, place] of peeks.entries()) {
    const request = requests[place];
    if (request === undefined || place <= (peeks[i - 1] ?? -1))
      throw new FrameError(`no peek can be at ${place}`);
    requests[place] = peekOf(request);
  }
  let next = 0;
  for (let i = 0; i < count; i += 1) {
    const customer = customers.get(i);
    const request = customer ?? requests[next]!;
    if (customer === undefined) next += 1;
    const version = matchedBy[i]!;
    if (version > 0 && request.ask === undefined) setMatchedBy(request, version);
    forwarded[i]!.request = request;
  }
  return forwarded;
}

/**
 * Changes the request in place: it was just decoded and nobody else holds it, and copying every forwarded request
 * is costly.
 */
function setMatchedBy(request: { matchedBy?: number | undefined }, version: number): void {
  request.matchedBy = version;
}

/** The operators' requests by index. */
function decodeOperators(input: ByteReader, count: number): ReadonlyMap<number, CustomerRequest> {
  const requests = new Map<number, CustomerRequest>();
  let before = -1;
  for (const place of input.integers('indexes of operator requests')) {
    if (place <= before || place >= count) throw new FrameError(`no operator request can be at ${place}`);
    before = place;
    const command = decoded(input.byteView('operator request'));
    if (command.type !== 'customers' || command.requests.length !== 1)
      throw new FrameError('not a single operator request');
    requests.set(place, command.requests[0]!);
  }
  return requests;
}

function peekOf(row: UserRequest): PeekRequest {
  if (row.ask !== undefined) throw new FrameError('a peek that is a refund');
  const { userId, ruleId, cost, timestampMillis, requestId, guard, settle } = row;
  const isMore = (requestId ?? guard ?? settle) !== undefined;
  if (isMore) throw new FrameError('a peek that asks for a grant');
  return { ask: 'peek', userId, ruleId, cost, timestampMillis };
}

function decodeBatch(bytes: Uint8Array): AllowBatch {
  const command = decoded(bytes);
  if (command.type === 'allow') return command.batch;
  throw new FrameError('not a batch of requests');
}

function decoded(bytes: Uint8Array): Command {
  try {
    return decodeCommand(bytes);
  } catch (error) {
    if (error instanceof CommandDecodeError) throw new FrameError(error.message);
    throw error;
  }
}
