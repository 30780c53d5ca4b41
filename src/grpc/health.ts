/** The standard health service: `SERVING` while this node can decide and wants clients. Anybody may ask. */
import type { handleServerStreamingCall, handleUnaryCall, ServerWritableStream } from '@grpc/grpc-js';
import { status } from '@grpc/grpc-js';
import { AddressCounts } from '../shedding/address-counts.ts';
import type { GrpcLimits, NodeBehindGrpc } from './door-init.ts';
import { messageType } from './message-types.ts';
import { RATE_LIMIT_SERVICE } from './should-rate-limit.ts';

export const HEALTH_SERVICE = 'grpc.health.v1.Health';
export const HEALTH_CHECK = `/${HEALTH_SERVICE}/Check`;
export const HEALTH_WATCH = `/${HEALTH_SERVICE}/Watch`;

const REQUEST = messageType('grpc.health.v1.HealthCheckRequest');
const RESPONSE = messageType('grpc.health.v1.HealthCheckResponse');

/** All are as well as the node is. Probes of envoyproxy/ratelimit ask for `ratelimit`. */
const KNOWN_SERVICES: ReadonlySet<string> = new Set(['', RATE_LIMIT_SERVICE, HEALTH_SERVICE, 'ratelimit']);

/** By their numbers in the protocol. */
export const SERVING = 1;
export const NOT_SERVING = 2;
const SERVICE_UNKNOWN = 3;
export type ServingStatus = typeof SERVING | typeof NOT_SERVING | typeof SERVICE_UNKNOWN;

export function encodeHealth(serving: ServingStatus): Buffer {
  return RESPONSE.encode({ status: serving });
}

type Watcher = ServerWritableStream<Buffer, ServingStatus>;

export interface HealthInit {
  readonly node: NodeBehindGrpc;
  readonly limits: Pick<GrpcLimits, 'watchersMax' | 'watchersPerClientMax'>;
  /** Who has the call open. */
  readonly clientOf: (call: Watcher) => string;
}

export class Health {
  readonly #node: NodeBehindGrpc;
  readonly #watchersMax: number;
  readonly #watchersOf: AddressCounts;
  readonly #clientOf: HealthInit['clientOf'];
  /** And what each of them was told last. */
  readonly #watchers = new Map<Watcher, ServingStatus>();

  constructor({ node, limits, clientOf }: HealthInit) {
    this.#node = node;
    this.#watchersMax = limits.watchersMax;
    this.#watchersOf = new AddressCounts(limits.watchersPerClientMax);
    this.#clientOf = clientOf;
  }

  readonly check: handleUnaryCall<Buffer, ServingStatus> = (call, done) => {
    const service = serviceIn(call.request);
    if (service === undefined) done({ code: status.INVALID_ARGUMENT, details: 'no HealthCheckRequest' });
    else if (!isKnown(service)) done({ code: status.NOT_FOUND, details: 'no such service is served here' });
    else done(null, this.#now());
  };

  readonly watch: handleServerStreamingCall<Buffer, ServingStatus> = (call) => {
    // Nobody would say that it is over.
    if (call.cancelled) return;
    const service = serviceIn(call.request);
    const client = this.#clientOf(call);
    if (service === undefined)
      call.emit('error', { code: status.INVALID_ARGUMENT, details: 'no HealthCheckRequest' });
    else if (this.#watchers.size >= this.#watchersMax || !this.#watchersOf.maybeEnter(client))
      call.emit('error', { code: status.RESOURCE_EXHAUSTED, details: 'no more may watch; ask with Check' });
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

  /** To be called every now and then: tells those who watch what has changed. */
  look(): void {
    const now = this.#now();
    for (const [watcher, told] of this.#watchers) {
      // Who does not read is told the latest once it does.
      if (told === now || told === SERVICE_UNKNOWN || watcher.writableNeedDrain) continue;
      this.#watchers.set(watcher, now);
      watcher.write(now);
    }
  }

  /** They would keep the door open. */
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

/** Undefined: the bytes are no request. */
function serviceIn(bytes: Buffer): string | undefined {
  try {
    return String(REQUEST.decode(bytes)['service']);
  } catch {
    return undefined;
  }
}

/** Empty: the whole server. */
function isKnown(service: string): boolean {
  return KNOWN_SERVICES.has(service);
}
