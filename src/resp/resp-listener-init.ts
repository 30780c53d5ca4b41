/** The parts that the RESP listener is built from, and its limits. */
import type { MonotonicClock } from '../api/clocks.ts';
import type { Logger } from 'pino';
import type { NodeApi } from '../api/api-listener.ts';
import type { LiveCredentials } from '../tls/live-credentials.ts';

/** Above one of the first three limits, the client is not read. It is read again below half of all three. */
export interface ConnectionLimits {
  /** The most commands whose answers have not been sent. */
  readonly openMax: number;
  /** The most bytes of answers that the client has not read. */
  readonly unreadBytesMax: number;
  /**
   * The same for all clients together. A client that has read all its answers is still served, so that others cannot
   * shut it out.
   */
  readonly allUnreadBytesMax: number;
  /** The most bytes of unfinished commands of all clients. A client that exceeds it is disconnected. */
  readonly allUnfinishedBytesMax: number;
  /**
   * The time from the first byte of a command to its last, in milliseconds. A client that takes longer is
   * disconnected.
   */
  readonly commandMillisMax: number;
}

/** The limits of the RESP listener. */
export interface RespLimits extends ConnectionLimits {
  /** The most connections; one more gets an error and is closed. */
  readonly connectionsMax: number;
  /** The most connections from one address, so that one client cannot shut out all others. */
  readonly connectionsPerAddressMax: number;
}

/** The defaults. */
export const RESP_LIMITS: RespLimits = {
  connectionsMax: 10_000,
  connectionsPerAddressMax: 5_000,
  openMax: 1_024,
  unreadBytesMax: 262_144,
  allUnreadBytesMax: 67_108_864,
  allUnfinishedBytesMax: 67_108_864,
  commandMillisMax: 10_000,
};

/** The parts that the RESP listener is built from. */
export interface RespListenerInit extends MonotonicClock {
  readonly node: NodeApi;
  /** Port 0 lets the system choose. */
  readonly address: { readonly host: string; readonly port: number };
  /** The release of the package, shown to clients. */
  readonly version: string;
  /** Called for every connection. */
  readonly accepted: () => void;
  /** Runs `flush` when everything that came in this turn (one pass of the event loop) has been decided. */
  readonly atTurnEnd: (flush: () => void) => void;
  readonly logger: Logger;
  /** Absent: no TLS. */
  readonly tls?: LiveCredentials;
  readonly limits?: RespLimits;
}
