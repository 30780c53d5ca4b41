/** The frames by which nodes compare their clocks: a ping with a reading of the asker's, a pong with one of the peer's. */
import { Fields, pack, unpack } from './fields.ts';

export interface Ping {
  /** A number that no other process of the asker has. */
  readonly process: number;
  /** On the asker's monotonic clock, when this left. */
  readonly sentMillis: number;
}

export interface Pong {
  /** As the ping said them. */
  readonly asker: number;
  readonly sentMillis: number;
  /** A number that no other process of the peer has. */
  readonly process: number;
  /** On the peer's monotonic clock, between ping and pong. */
  readonly peerMillis: number;
  /** On the peer's wall clock then: milliseconds since 1970. */
  readonly wallMillis: number;
}

export function encodePing({ process, sentMillis }: Ping): Buffer {
  return pack([process, sentMillis]);
}

/** @throws FrameError if it is malformed */
export function decodePing(payload: Uint8Array): Ping {
  const fields = new Fields(unpack(payload));
  return { process: fields.integer('process'), sentMillis: fields.millis('sentMillis') };
}

export function encodePong({ asker, sentMillis, process, peerMillis, wallMillis }: Pong): Buffer {
  return pack([asker, sentMillis, process, peerMillis, wallMillis]);
}

/** @throws FrameError if it is malformed */
export function decodePong(payload: Uint8Array): Pong {
  const fields = new Fields(unpack(payload));
  return {
    asker: fields.integer('asker'),
    sentMillis: fields.millis('sentMillis'),
    process: fields.integer('process'),
    peerMillis: fields.millis('peerMillis'),
    wallMillis: fields.millis('wallMillis'),
  };
}
