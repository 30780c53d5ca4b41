/**
 * Service times of the model: the processor time of each kind of work in microseconds, and the delays of disk and
 * network. Numbers that calibrate.ts does not fit were taken from profiles.
 */
export interface ServiceTimes {
  /** One call of a client: one read and one write on its socket. */
  readonly call: number;
  /** Each request of a call: parse, route, answer. */
  readonly request: number;
  /** Each forwarded request, at each of the two nodes, both directions. */
  readonly forward: number;
  /** A turn (one pass of the event loop) with any work. */
  readonly turn: number;
  /** A frame between nodes, at each end. */
  readonly frame: number;
  /** A log entry, at each replica. */
  readonly entry: number;
  /** Each request of an entry, at each replica: decide or read, encode, apply. */
  readonly copy: number;
  /** A synced write, on the main thread. */
  readonly write: number;
  /** The same write, on the background threads. */
  readonly writeBehind: number;
  /** A call, and each request of it, in the load process. */
  readonly clientCall: number;
  readonly clientRequest: number;
  /** Delays, not processor time: a disk write, and a frame on the network. */
  readonly sync: number;
  readonly network: number;
}

export const PROFILED: ServiceTimes = {
  call: 14,
  request: 2.4,
  forward: 1,
  turn: 10,
  frame: 14,
  entry: 7,
  copy: 1.3,
  write: 45,
  writeBehind: 40,
  clientCall: 6,
  clientRequest: 0.7,
  sync: 150,
  network: 20,
};

/** Factors by which a machine is slower than `PROFILED`, for three kinds of work. */
export interface Slowness {
  /** Cost of each client call. */
  readonly calls: number;
  /** Cost of each request. */
  readonly requests: number;
  /** Cost that many requests share: turns, frames, entries, writes. */
  readonly rounds: number;
}

export function slowed({ calls, requests, rounds }: Slowness, times: ServiceTimes = PROFILED): ServiceTimes {
  return {
    ...times,
    call: times.call * calls,
    clientCall: times.clientCall * calls,
    request: times.request * requests,
    forward: times.forward * requests,
    copy: times.copy * requests,
    clientRequest: times.clientRequest * requests,
    turn: times.turn * rounds,
    frame: times.frame * rounds,
    entry: times.entry * rounds,
    write: times.write * rounds,
    writeBehind: times.writeBehind * rounds,
  };
}
