/** The frame by which a node says how much more it can remember. */
import type { Room } from '../limiter/state/state-size.ts';
import { Fields, pack, unpack } from './fields.ts';

const ROOMS = ['free', 'full', 'exhausted'] as const satisfies readonly Room[];

export function encodeRoom(room: Room): Buffer {
  return pack([ROOMS.indexOf(room)]);
}

/** @throws FrameError if it is malformed */
export function decodeRoom(payload: Uint8Array): Room {
  return new Fields(unpack(payload)).oneOf(ROOMS, 'room');
}
