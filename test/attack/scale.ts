/** Which listeners are attacked, and with how many connections. */
export type Listener = 'http' | 'resp' | 'grpc' | 'peer';

/** The size of the floods. */
export interface Scale {
  /** The number of slow connections, and the number of connections in a flood. */
  readonly slow: number;
  readonly many: number;
}

export const FULL_SCALE: Scale = { slow: 1_000, many: 5_000 };
