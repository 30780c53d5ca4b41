/**
 * The frames by which nodes compare their clocks: a ping with the asker's reading, and a pong that adds the peer's.
 */
import { Fields, pack, unpack } from './fields.ts';

/** Asks for a clock reading. */
export interface Ping {
  /** Random number of the asker's process. */
  readonly process: number;
  /** Asker's monotonic clock when the ping was sent. */
  readonly sentMillis: number;
}

/** Answers a ping. */
export interface Pong {
  /** As in the ping. */
  readonly asker: number;
  readonly sentMillis: number;
  /** Random number of the peer's process. */
  readonly process: number;
  /** Peer's monotonic clock between ping and pong. */
  readonly peerMillis: number;
  /** Peer's wall clock at that time, milliseconds since 1970. */
  readonly wallMillis: number;
}

/** Encodes a ping. */
export function encodePing({ process, sentMillis }: Ping): Buffer {
  return pack([process, sentMillis]);
}

/** Decodes a ping. @throws FrameError if it is malformed */
export function decodePing(payload: Uint8Array): Ping {
  const fields = new Fields(unpack(payload));
  return { process: fields.integer('process'), sentMillis: fields.millis('sentMillis') };
}

/** Encodes a pong. */
export function encodePong({ asker, sentMillis, process, peerMillis, wallMillis }: Pong): Buffer {
  return pack([asker, sentMillis, process, peerMillis, wallMillis]);
}

/** Decodes a pong. @throws FrameError if it is malformed */
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
