/**
 * What the work of a node costs, in microseconds of processor time, and how long the rest of the way takes. Where a number is not
 * fitted to a run (calibrate.ts) it was taken from profiles.
 */
export interface ServiceTimes {
  /** A call of a client: its bytes read in one go, and its answers written in one. */
  readonly call: number;
  /** Each request of it: parsed, asked, answered. */
  readonly request: number;
  /** Each request that goes to another node, at either end, there and back. */
  readonly forward: number;
  /** A turn of the event loop in which anything happened. */
  readonly turn: number;
  /** A frame, at either end. */
  readonly frame: number;
  /** An entry at each replica. */
  readonly entry: number;
  /** Each request in it, at each replica: judged or read, written down, applied. */
  readonly copy: number;
  /** A synced write, on the main thread. */
  readonly write: number;
  /** The same on the threads behind it. */
  readonly writeBehind: number;
  /** A client's call, and each request of it, in the process that makes the load. */
  readonly clientCall: number;
  readonly clientRequest: number;
  /** Not processor time: how long the disk takes for a write, and the network for a frame. */
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

/** How much slower than `PROFILED` a machine does three kinds of work. */
export interface Slowness {
  /** Whatever a client's call takes at its door, whatever it asks. */
  readonly calls: number;
  /** Whatever comes with each request. */
  readonly requests: number;
  /** Whatever many requests share: turns, frames, entries, writes. */
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
