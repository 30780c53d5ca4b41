/** The frame in which a node reports how much memory it has left for state. */
import type { Room } from '../limiter/state/state-size.ts';
import { Fields, pack, unpack } from './fields.ts';

const ROOMS = ['free', 'full', 'exhausted'] as const satisfies readonly Room[];

/** Encodes the report. */
export function encodeRoom(room: Room): Buffer {
  return pack([ROOMS.indexOf(room)]);
}

/** Decodes the report. @throws FrameError if it is malformed */
export function decodeRoom(payload: Uint8Array): Room {
  return new Fields(unpack(payload)).oneOf(ROOMS, 'room');
}
