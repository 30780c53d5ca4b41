/**
 * The frame of requests that another node is to decide, as it leads their partitions: one batch, in the very bytes of a log
 * entry, and beside it the columns that only the way there needs. Nothing at all asks for a sign of life.
 *
 *   [ids, budgetsMillis, partitions, relayTos or null where nobody may pass anything on, batch]
 *
 * Not one batch for each partition: with many partitions most would hold one request, and cost more than they save.
 */
import type { AllowRequest } from '../api/request.ts';
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import { type AllowBatch, requestsOf } from '../limiter/log/batch.ts';
import { AllowBatchBuilder } from '../limiter/log/batch-builder.ts';
import { CommandDecodeError, decodeCommand } from '../limiter/log/command.ts';
import { array, Fields, pack, unpack } from './fields.ts';
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
  readonly request: AllowRequest;
}

/** Up to `BATCH_REQUESTS_MAX`. None at all asks for a sign of life. */
export function encodeRequests(requests: readonly ForwardedRequest[]): Buffer {
  if (requests.length === 0) return pack([]);
  const batch = new AllowBatchBuilder();
  const ids: number[] = [];
  const budgetsMillis: number[] = [];
  const partitions: number[] = [];
  let relayTos: NodeId[] | null = null;
  for (const { id, budgetMillis, partition, relayTo, request } of requests) {
    if (relayTo !== NO_NODE) relayTos ??= ids.map(() => NO_NODE);
    relayTos?.push(relayTo);
    ids.push(id);
    budgetsMillis.push(budgetMillis);
    partitions.push(partition);
    batch.add(request);
  }
  return pack([ids, budgetsMillis, partitions, relayTos, batch.take()]);
}

/** @throws FrameError if it is malformed */
export function decodeRequests(payload: Uint8Array): ForwardedRequest[] {
  const columns = array(unpack(payload), 'requests');
  if (columns.length === 0) return [];
  const fields = new Fields(columns);
  const ids = fields.integers('ids');
  const budgetsMillis = fields.integers('budgetsMillis');
  const partitions = fields.integers('partitions');
  const relayTos = fields.optionalIntegers('relayTos');
  const batch = decodeBatch(fields.bytes('batch'));
  const { size } = batch;
  if ([ids, budgetsMillis, partitions, relayTos ?? ids].some(({ length }) => length !== size))
    throw new FrameError(`columns of other lengths beside a batch of ${size} requests`);
  return requestsOf(batch).map((request, i) => ({
    id: ids[i] ?? 0,
    budgetMillis: budgetsMillis[i] ?? 0,
    partition: partitions[i] ?? 0,
    relayTo: relayTos?.[i] ?? NO_NODE,
    request,
  }));
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
