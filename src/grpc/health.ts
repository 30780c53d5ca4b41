/**
 * The standard health service: `SERVING` while this node can decide requests and wants clients. Anybody may call it.
 */
import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  type ServerWritableStream,
  status,
} from '@grpc/grpc-js';
import { AddressCounts } from '../shedding/address-counts.ts';
import type { GrpcLimits, NodeBehindGrpc } from './grpc-listener-init.ts';
import { messageType } from './protos.ts';
import { RATE_LIMIT_SERVICE } from './should-rate-limit.ts';

/** The full name of the service. */
export const HEALTH_SERVICE = 'grpc.health.v1.Health';
/** The path of the method that returns the status once. */
export const HEALTH_CHECK = `/${HEALTH_SERVICE}/Check`;
/** The path of the method that sends the status and its changes. */
export const HEALTH_WATCH = `/${HEALTH_SERVICE}/Watch`;

const REQUEST = messageType('grpc.health.v1.HealthCheckRequest');
const RESPONSE = messageType('grpc.health.v1.HealthCheckResponse');

/** All services have the status of the node. Probes for envoyproxy/ratelimit ask for `ratelimit`. */
const KNOWN_SERVICES: ReadonlySet<string> = new Set(['', RATE_LIMIT_SERVICE, HEALTH_SERVICE, 'ratelimit']);

/** The numbers of the status in the protocol. */
export const SERVING = 1;
export const NOT_SERVING = 2;
const SERVICE_UNKNOWN = 3;
/** A status of the protocol. */
export type ServingStatus = typeof SERVING | typeof NOT_SERVING | typeof SERVICE_UNKNOWN;

/** Encodes a response. */
export function encodeHealth(serving: ServingStatus): Buffer {
  return RESPONSE.encode({ status: serving });
}

type Watcher = ServerWritableStream<Buffer, ServingStatus>;

/** The parts that the service is built from. */
export interface HealthInit {
  readonly node: NodeBehindGrpc;
  readonly limits: Pick<GrpcLimits, 'watchersMax' | 'watchersPerClientMax'>;
  /** The client that a call is counted under. */
  readonly clientOf: (call: Watcher) => string;
}

/** The health service of a node. */
export class Health {
  readonly #node: NodeBehindGrpc;
  readonly #watchersMax: number;
  readonly #watchersOf: AddressCounts;
  readonly #clientOf: HealthInit['clientOf'];
  /** The open watches, with the status that each was sent last. */
  readonly #watchers = new Map<Watcher, ServingStatus>();

  constructor({ node, limits, clientOf }: HealthInit) {
    this.#node = node;
    this.#watchersMax = limits.watchersMax;
    this.#watchersOf = new AddressCounts(limits.watchersPerClientMax);
    this.#clientOf = clientOf;
  }

  /** The method `Check`. */
  readonly check: handleUnaryCall<Buffer, ServingStatus> = (call, done) => {
    const service = serviceIn(call.request);
    if (service === undefined) done({ code: status.INVALID_ARGUMENT, details: 'no HealthCheckRequest' });
    else if (!isKnown(service)) done({ code: status.NOT_FOUND, details: 'no such service is served here' });
    else done(null, this.#now());
  };

  /** The method `Watch`. */
  readonly watch: handleServerStreamingCall<Buffer, ServingStatus> = (call) => {
    // The call is over already, so no `cancelled` event would remove the watch.
    if (call.cancelled) return;
    const service = serviceIn(call.request);
    const client = this.#clientOf(call);
    if (service === undefined)
      call.emit('error', { code: status.INVALID_ARGUMENT, details: 'no HealthCheckRequest' });
    else if (this.#watchers.size >= this.#watchersMax || !this.#watchersOf.maybeEnter(client))
      call.emit('error', { code: status.RESOURCE_EXHAUSTED, details: 'too many watches; use Check' });
    else {
      const now = isKnown(service) ? this.#now() : SERVICE_UNKNOWN;
      this.#watchers.set(call, now);
      call.once('cancelled', () => {
        this.#watchers.delete(call);
        this.#watchersOf.left(client);
      });
      call.write(now);
    }
  };

  /** Called regularly: sends changes to all watches. */
  sendChanges(): void {
    const now = this.#now();
    for (const [watcher, sent] of this.#watchers) {
      // A client that does not read gets the latest status once it does.
      if (sent === now || sent === SERVICE_UNKNOWN || watcher.writableNeedDrain) continue;
      this.#watchers.set(watcher, now);
      watcher.write(now);
    }
  }

  /** Ends all watches, because they would keep the listener open. */
  close(): void {
    for (const watcher of this.#watchers.keys())
      watcher.emit('error', { code: status.UNAVAILABLE, details: 'this node stops' });
    this.#watchers.clear();
  }

  #now(): ServingStatus {
    const isServing = this.#node.readiness().status === 'ready' && !this.#node.wantsNoClients();
    return isServing ? SERVING : NOT_SERVING;
  }
}

/** The service in a request; undefined if the bytes are no valid request. */
function serviceIn(bytes: Buffer): string | undefined {
  try {
    return String(REQUEST.decode(bytes)['service']);
  } catch {
    return undefined;
  }
}

/** True if the service is known. The empty name means the whole server. */
function isKnown(service: string): boolean {
  return KNOWN_SERVICES.has(service);
}
