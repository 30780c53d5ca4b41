/** The frame of requests that another node is to decide, as it leads their partitions. */
import type { NodeId } from '../../raft/types.ts';
import type { AllowRequest } from '../limiter/request.ts';
import { array, Fields, pack, unpack } from './fields.ts';

export interface ForwardedRequest {
  /** Of the node that asks: its answer bears the same. */
  readonly id: number;
  /** So long the answer is waited for; clocks differ, so no deadline travels. */
  readonly budgetMillis: number;
  readonly partition: number;
  /** The request may be passed on to this node; NO_NODE: it must not. */
  readonly relayTo: NodeId;
  readonly request: AllowRequest;
}

/** None at all asks for a sign of life. */
export function encodeRequests(requests: readonly ForwardedRequest[]): Buffer {
  return pack(
    requests.map(({ id, budgetMillis, partition, relayTo, request }) => [
      id,
      budgetMillis,
      partition,
      relayTo,
      request.userId,
      request.ruleId ?? null,
      request.cost ?? null,
      request.timestampMillis ?? null,
      request.requestId ?? null,
    ]),
  );
}

/** @throws FrameError if it is malformed */
export function decodeRequests(payload: Uint8Array): ForwardedRequest[] {
  return array(unpack(payload), 'requests').map((row) => {
    const fields = new Fields(row);
    return {
      id: fields.integer('id'),
      budgetMillis: fields.integer('budgetMillis'),
      partition: fields.integer('partition'),
      relayTo: fields.integer('relayTo'),
      request: {
        userId: fields.string('userId'),
        ruleId: fields.optionalString('ruleId'),
        cost: fields.optionalInteger('cost'),
        timestampMillis: fields.optionalInteger('timestampMillis'),
        requestId: fields.optionalString('requestId'),
      },
    };
  });
}
