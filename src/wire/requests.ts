/**
 * The frame of requests that another node is to decide, as it leads their partitions: for each partition one batch, in
 * the very bytes of a log entry, and beside it the columns that only the way there needs.
 *
 *   [partition, ids, budgetsMillis, relayTos or null where nobody may pass anything on, batch]
 */
import type { AllowRequest } from '../api/request.ts';
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import { type AllowBatch, AllowBatchBuilder, requestAt } from '../limiter/log/batch.ts';
import { CommandDecodeError, decodeCommand, encodeCommand } from '../limiter/log/command.ts';
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

class Columns {
  readonly #partition: number;
  readonly #ids: number[] = [];
  readonly #budgetsMillis: number[] = [];
  readonly #relayTos: NodeId[] = [];
  readonly #batch = new AllowBatchBuilder();

  constructor(partition: number) {
    this.#partition = partition;
  }

  add({ id, budgetMillis, relayTo, request }: ForwardedRequest): void {
    this.#batch.add(request);
    this.#ids.push(id);
    this.#budgetsMillis.push(budgetMillis);
    this.#relayTos.push(relayTo);
  }

  take(): unknown[] {
    const relayTos = this.#relayTos.some((node) => node !== NO_NODE) ? this.#relayTos : null;
    const batch = encodeCommand({ type: 'allow', batch: this.#batch.take() });
    return [this.#partition, this.#ids, this.#budgetsMillis, relayTos, batch];
  }
}

/** Up to `BATCH_REQUESTS_MAX`; those of one partition keep their order. None at all asks for a sign of life. */
export function encodeRequests(requests: readonly ForwardedRequest[]): Buffer {
  const byPartition = new Map<number, Columns>();
  for (const request of requests) {
    const { partition } = request;
    const columns = byPartition.get(partition) ?? new Columns(partition);
    byPartition.set(partition, columns);
    columns.add(request);
  }
  return pack([...byPartition.values()].map((columns) => columns.take()));
}

/** @throws FrameError if it is malformed */
export function decodeRequests(payload: Uint8Array): ForwardedRequest[] {
  return array(unpack(payload), 'requests').flatMap((row) => decodePartition(new Fields(row)));
}

function decodePartition(fields: Fields): ForwardedRequest[] {
  const partition = fields.integer('partition');
  const ids = fields.integers('ids');
  const budgetsMillis = fields.integers('budgetsMillis');
  const relayTos = fields.optionalIntegers('relayTos');
  const batch = decodeBatch(fields.bytes('batch'));
  const size = batch.userIds.length;
  if ([ids, budgetsMillis, relayTos ?? ids].some(({ length }) => length !== size))
    throw new FrameError(`columns of other lengths beside a batch of ${size} requests`);
  return ids.map((id, i) => ({
    id,
    budgetMillis: budgetsMillis[i] ?? 0,
    partition,
    relayTo: relayTos?.[i] ?? NO_NODE,
    request: requestAt(batch, i),
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
