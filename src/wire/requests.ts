/**
 * The frame of requests that another node is to decide, as it leads their partitions: for each what only the way there
 * needs (id, budget, partition, relay, the rules that matched it), then what operators say of keys, each by its place and in the
 * bytes of an entry of its own; then which of the others are looks, by their places among them, and these others as one batch, in
 * the very bytes of a log entry: a look as a request with a user, and perhaps a rule, a cost and a time. Nothing at all asks for a sign of
 * life.
 *
 * Not one batch for each partition: with many partitions most would hold one request, and cost more than they save.
 */
import type { CustomerRequest } from '../api/customer.ts';
import type { LookRequest } from '../api/look.ts';
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

export interface ForwardedRequest {
  /** Of the node that asks: its answer bears the same. */
  readonly id: number;
  /** So long the answer is waited for; clocks differ, so no deadline travels. */
  readonly budgetMillis: number;
  readonly partition: number;
  /** The request may be passed on to this node; NO_NODE: it must not. */
  readonly relayTo: NodeId;
  /** Well-formed: what enters the log is checked before it travels. */
  readonly request: UserRequest;
}

/** Stands for a request until the batch is read. */
const NOT_READ: UserRequest = { userId: '' };
const NO_CUSTOMERS: ReadonlyMap<number, CustomerRequest> = new Map();
const out = new ByteWriter();
const batch = new AllowBatchBuilder();

/** Up to `BATCH_REQUESTS_MAX` rows. None at all asks for a sign of life. */
export function encodeRequests(requests: readonly ForwardedRequest[]): Buffer {
  out.clear();
  batch.clear();
  out.integer(requests.length);
  const looks: number[] = [];
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
    if (request.ask === 'look') {
      looks.push(batched);
      const { userId, ruleId, cost, timestampMillis } = request;
      batch.add({ userId, ruleId, cost, timestampMillis });
    } else batch.add(request);
    batched += 1;
  }
  if (requests.length > 0) encodeOperators(requests, customers);
  if (batch.size > 0) {
    out.integers(looks);
    out.byteString(batch.take());
  }
  return takePayload(out);
}

/** @param places of them among all */
function encodeOperators(requests: readonly ForwardedRequest[], places: readonly number[]): void {
  out.integers(places);
  for (const place of places) {
    const { request } = requests[place]!;
    if (request.ask === 'customer') out.byteString(encodeCustomers([request]));
  }
}

/** How many rows of the batch a request takes. */
export function rowsOfForwarded(request: UserRequest): number {
  return request.ask === 'look' || request.ask === 'customer' ? 1 : rowsOf(request);
}

/** @throws FrameError if it is malformed */
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
  const looks = others === 0 ? [] : input.integers('looks');
  const requests: UserRequest[] = others === 0 ? [] : requestsOf(decodeBatch(input.byteView('batch')));
  if (requests.length !== others) throw new FrameError(`${requests.length} requests for ${others} ways`);
  if (!input.isAtEnd) throw new FrameError('more than the requests');
  for (const [i, place] of looks.entries()) {
    const request = requests[place];
    if (request === undefined || place <= (looks[i - 1] ?? -1)) throw new FrameError(`a look at ${place}`);
    requests[place] = lookOf(request);
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

/** Changes the request in place: it was just decoded, nothing else holds it, and a copy of each forwarded request is costly. */
function setMatchedBy(request: { matchedBy?: number | undefined }, version: number): void {
  request.matchedBy = version;
}

/** By their places among `count` requests. */
function decodeOperators(input: ByteReader, count: number): ReadonlyMap<number, CustomerRequest> {
  const requests = new Map<number, CustomerRequest>();
  let before = -1;
  for (const place of input.integers('places of operators')) {
    if (place <= before || place >= count) throw new FrameError(`what an operator says at ${place}`);
    before = place;
    const command = decoded(input.byteView('what an operator says'));
    if (command.type !== 'customers' || command.requests.length !== 1)
      throw new FrameError('no single request of an operator');
    requests.set(place, command.requests[0]!);
  }
  return requests;
}

function lookOf(row: UserRequest): LookRequest {
  if (row.ask !== undefined) throw new FrameError('a look that is a refund');
  const { userId, ruleId, cost, timestampMillis, requestId, guard, settle } = row;
  const isMore = (requestId ?? guard ?? settle) !== undefined;
  if (isMore) throw new FrameError('a look that asks for a grant');
  return { ask: 'look', userId, ruleId, cost, timestampMillis };
}

function decodeBatch(bytes: Uint8Array): AllowBatch {
  const command = decoded(bytes);
  if (command.type === 'allow') return command.batch;
  throw new FrameError('a command that asks for nothing');
}

function decoded(bytes: Uint8Array): Command {
  try {
    return decodeCommand(bytes);
  } catch (error) {
    if (error instanceof CommandDecodeError) throw new FrameError(error.message);
    throw error;
  }
}
