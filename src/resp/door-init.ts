/** What the RESP door is made of: the node behind it, and what is kept for clients at most. */
import type { Logger } from 'pino';
import type { NodeBehindDoor } from '../api/front-door.ts';
import type { LiveCredentials } from '../tls/live-credentials.ts';
import type { ConnectionLimits } from './connection-limits.ts';

export interface RespLimits extends ConnectionLimits {
  /** One more is told so, and closed. */
  readonly connectionsMax: number;
  /** Of one address: it cannot shut out all others. */
  readonly connectionsPerAddressMax: number;
}

export const RESP_LIMITS: RespLimits = {
  connectionsMax: 10_000,
  connectionsPerAddressMax: 5_000,
  openMax: 1_024,
  unreadBytesMax: 262_144,
  allUnreadBytesMax: 67_108_864,
  allUnfinishedBytesMax: 67_108_864,
  commandMillisMax: 10_000,
};

export interface RespDoorInit {
  readonly node: NodeBehindDoor;
  /** Port 0 lets the system choose. */
  readonly address: { readonly host: string; readonly port: number };
  /** Of the package; clients are told it. */
  readonly version: string;
  /** Told of every connection. */
  readonly accepted: () => void;
  readonly monotonicMillis: () => number;
  /** Runs `flush` when what has come in this turn of the event loop is decided. */
  readonly atTurnEnd: (flush: () => void) => void;
  readonly logger: Logger;
  /** Absent: it speaks plainly. */
  readonly tls?: LiveCredentials;
  readonly limits?: RespLimits;
}
