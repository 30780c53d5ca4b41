/**
 * The frame of requests that another node is to decide, as it leads their partitions: for each what only the way there
 * needs (id, budget, partition, relay, the rules that matched it), then which of them are looks, by their places, then all of them as one batch, in the very
 * bytes of a log entry: a look as a request that names a user, and no more than a rule. Nothing at all asks for a sign of life.
 *
 * Not one batch for each partition: with many partitions most would hold one request, and cost more than they save.
 */
import type { LookRequest } from '../api/look.ts';
import type { LoggedRequest, UserRequest } from '../api/user-request.ts';
import type { NodeId } from '../../raft/types.ts';
import { type AllowBatch, requestsOf, rowsOf } from '../limiter/log/batch.ts';
import { AllowBatchBuilder } from '../limiter/log/batch-builder.ts';
import { CommandDecodeError, decodeCommand } from '../limiter/log/command.ts';
import { BytesIn, BytesOut } from './bytes.ts';
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
const out = new BytesOut();
const batch = new AllowBatchBuilder();

/** Up to `BATCH_REQUESTS_MAX` rows. None at all asks for a sign of life. */
export function encodeRequests(requests: readonly ForwardedRequest[]): Buffer {
  out.clear();
  batch.clear();
  out.integer(requests.length);
  const looks: number[] = [];
  for (let i = 0; i < requests.length; i += 1) {
    const { id, budgetMillis, partition, relayTo, request } = requests[i]!;
    out.integer(id);
    out.integer(budgetMillis);
    out.integer(partition);
    out.integer(relayTo);
    out.integer(request.ask === undefined ? (request.matchedBy ?? 0) : 0);
    if (request.ask === 'look') {
      looks.push(i);
      batch.add({ userId: request.userId, ruleId: request.ruleId });
    } else batch.add(request);
  }
  if (batch.size > 0) {
    out.integers(looks);
    out.byteString(batch.take());
  }
  return out.take();
}

/** How many rows of the batch a request takes. */
export function rowsOfForwarded(request: UserRequest): number {
  return request.ask === 'look' ? 1 : rowsOf(request);
}

/** @throws FrameError if it is malformed */
export function decodeRequests(payload: Uint8Array): ForwardedRequest[] {
  const input = new BytesIn(payload);
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
  const looks = count === 0 ? [] : input.integers('looks');
  const requests = count === 0 ? [] : requestsOf(decodeBatch(input.byteView('batch')));
  if (requests.length !== count) throw new FrameError(`${requests.length} requests for ${count} ways`);
  if (!input.isAtEnd) throw new FrameError('more than the requests');
  for (let i = 0; i < count; i += 1) {
    const request = requests[i]!;
    const version = matchedBy[i]!;
    forwarded[i]!.request =
      version === 0 || request.ask !== undefined ? request : { ...request, matchedBy: version };
  }
  for (const [i, place] of looks.entries()) {
    const request = requests[place];
    if (request === undefined || place <= (looks[i - 1] ?? -1)) throw new FrameError(`a look at ${place}`);
    forwarded[place]!.request = lookOf(request);
  }
  return forwarded;
}

function lookOf(row: LoggedRequest): LookRequest {
  if (row.ask === 'refund') throw new FrameError('a look that is a refund');
  const { userId, ruleId, cost, timestampMillis, requestId } = row;
  const isMore = cost !== undefined || timestampMillis !== undefined || requestId !== undefined;
  if (isMore) throw new FrameError('a look that asks for a grant');
  return { ask: 'look', userId, ruleId };
}

function decodeBatch(bytes: Uint8Array): AllowBatch {
  try {
    const command = decodeCommand(bytes);
    if (command.type === 'allow') return command.batch;
  } catch (error) {
    if (error instanceof CommandDecodeError) throw new FrameError(error.message);
    throw error;
  }
  throw new FrameError('a command that asks for nothing');
}
