/** What the gRPC door is made of: the node behind it, and what is kept for clients at most. */
import type { Logger } from 'pino';
import type { NodeBehindDoor } from '../api/front-door.ts';
import type { RlsSettings } from '../rls/rls-settings.ts';
import type { LiveCredentials } from '../tls/live-credentials.ts';

export interface GrpcLimits {
  /** One more is closed. */
  readonly connectionsMax: number;
  /** Of one address: it cannot shut out all others. */
  readonly connectionsPerAddressMax: number;
  /** Open calls of one connection; its client keeps others back. */
  readonly callsPerConnectionMax: number;
  /** Of one request: a longer one is refused. */
  readonly messageBytesMax: number;
  /** Requests of all clients that are not there whole yet: one more is refused. */
  readonly unfinishedMax: number;
  /** Of one token or address: it cannot shut out all others. */
  readonly unfinishedPerClientMax: number;
  /** From the beginning of a call until its request is there whole; a call of reflection ends by then. */
  readonly requestMillis: number;
  /** A connection without a call is closed after so long. */
  readonly idleMillis: number;
  /** What a client has open that was told to go elsewhere is cut off after so long. */
  readonly leaveMillis: number;
  /** Clients that watch the health of this node: one more is refused. */
  readonly watchersMax: number;
  /** Of one address. */
  readonly watchersPerClientMax: number;
}

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

/** What was answered to requests for a grant. */
export type GrpcAnswers = Record<'granted' | 'denied' | 'invalid' | 'unavailable', number>;

/** What the door asks of its node. */
export type NodeBehindGrpc = Pick<
  NodeBehindDoor,
  'access' | 'shedding' | 'allowListed' | 'answered' | 'refusedUnread' | 'readiness' | 'wantsNoClients'
>;

export interface GrpcDoorInit {
  readonly node: NodeBehindGrpc;
  /** Port 0 lets the system choose. */
  readonly address: { readonly host: string; readonly port: number };
  /** Told of every connection. */
  readonly accepted: () => void;
  readonly monotonicMillis: () => number;
  readonly logger: Logger;
  /** Asked for at every use: they change while the node runs. */
  readonly settings: () => RlsSettings;
  /** Absent: it speaks plainly. */
  readonly tls?: LiveCredentials;
  readonly limits?: GrpcLimits;
}
