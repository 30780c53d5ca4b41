/** The parts that the gRPC listener is built from, and its limits. */
import type { Logger } from 'pino';
import type { MonotonicClock } from '../api/clocks.ts';
import type { NodeApi } from '../api/api-listener.ts';
import type { RlsSettings } from '../rls/rls-settings.ts';
import type { LiveCredentials } from '../tls/live-credentials.ts';

/** The limits of the gRPC listener. */
export interface GrpcLimits {
  /** The most connections; one more is closed. */
  readonly connectionsMax: number;
  /** The most connections from one address, so that one client cannot shut out all others. */
  readonly connectionsPerAddressMax: number;
  /** The most open calls of one connection. Clients hold back further calls. */
  readonly callsPerConnectionMax: number;
  /** The longest request in bytes. A longer one is refused. */
  readonly messageBytesMax: number;
  /** The most incomplete requests of all clients; one more is refused. */
  readonly unfinishedMax: number;
  /** The most incomplete requests of one token or address, so that one client cannot shut out all others. */
  readonly unfinishedPerClientMax: number;
  /**
   * The time from the start of a call until its request is complete, in milliseconds. A reflection call also ends
   * after this time.
   */
  readonly requestMillis: number;
  /** A connection without a call is closed after this many milliseconds. */
  readonly idleMillis: number;
  /**
   * After a client got a GOAWAY, its connection is closed after this many milliseconds, even with open calls.
   */
  readonly leaveMillis: number;
  /** The most clients that watch the health of this node; one more is refused. */
  readonly watchersMax: number;
  /** The most health watches of one token or address. */
  readonly watchersPerClientMax: number;
}

/** The defaults. */
export const GRPC_LIMITS: GrpcLimits = {
  connectionsMax: 10_000,
  connectionsPerAddressMax: 5_000,
  callsPerConnectionMax: 1_024,
  messageBytesMax: 32_768,
  unfinishedMax: 2_048,
  unfinishedPerClientMax: 512,
  requestMillis: 10_000,
  idleMillis: 300_000,
  // Longer than the deadline of any request.
  leaveMillis: 90_000,
  watchersMax: 1_024,
  watchersPerClientMax: 256,
};

/** The number of answers to requests for a grant, by outcome. */
export type GrpcAnswers = Record<'granted' | 'denied' | 'invalid' | 'unavailable', number>;

/** The functions of the node that the gRPC listener uses. */
export type NodeBehindGrpc = Pick<
  NodeApi,
  'access' | 'shedding' | 'allowListed' | 'answered' | 'refusedUnread' | 'readiness' | 'wantsNoClients'
>;

/** The parts that the gRPC listener is built from. */
export interface GrpcListenerInit extends MonotonicClock {
  readonly node: NodeBehindGrpc;
  /** Port 0 lets the system choose. */
  readonly address: { readonly host: string; readonly port: number };
  /** Called for every connection. */
  readonly accepted: () => void;
  readonly logger: Logger;
  /** Read at every use, because the settings may change while the node runs. */
  readonly settings: () => RlsSettings;
  /** Absent: no TLS. */
  readonly tls?: LiveCredentials;
  readonly limits?: GrpcLimits;
}
