/** Which listeners are attacked, and with how many connections. */
export type Listener = 'http' | 'resp' | 'grpc' | 'peer';

/** How much of a flood. */
export interface Scale {
  /** Connections that are slow, and connections that are many. */
  readonly slow: number;
  readonly many: number;
}

export const FULL_SCALE: Scale = { slow: 1_000, many: 5_000 };
