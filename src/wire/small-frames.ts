/**
 * Frames with few fields:
 *
 * - `ping`, `pong`: two nodes compare their clocks
 * - `settled`: the groups that have all their wanted members; `offers`: those that the sender would hold a replica of
 * - `load`: a node reports its load once a second; the leader of group 0 adds on which node leaders gather
 * - `capacity`: a node reports how much memory it has left for state
 *
 * All decoders throw `FrameError` if the payload is malformed.
 */
import { Fields, pack, unpack } from './fields.ts';
import type { GroupId, NodeId } from '../../raft/types.ts';
import type { Room } from '../limiter/state/state-size.ts';

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

/** Groups, and the version of the node list that they refer to. */
export interface GroupsOfVersion {
  readonly version: number;
  readonly groups: readonly GroupId[];
}

/** Encodes the list. */
export function encodeGroupsOfVersion({ version, groups }: GroupsOfVersion): Buffer {
  return pack([version, groups]);
}

/** Decodes the list. @throws FrameError if it is malformed */
export function decodeGroupsOfVersion(payload: Uint8Array): GroupsOfVersion {
  const fields = new Fields(unpack(payload));
  return { version: fields.integer('version'), groups: fields.integers('groups') };
}

/** The load of one node. */
export interface LoadReport {
  /** Part of the last second that the main thread was busy, in thousandths. */
  readonly busyPermille: number;
  /** Unused processors of the machine, in thousandths of one. */
  readonly sparePermille: number;
  /** Requests from clients in the last second. */
  readonly askedPerSecond: number;
  /** The node can take over leaders. */
  readonly mayLead: boolean;
  /** Where leaders gather, decided by the leader of group 0 in this term. Other nodes do not send it. */
  readonly decided?: { readonly term: number; readonly target: NodeId };
}

/** Encodes a load report. */
export function encodeLoadReport({
  busyPermille,
  sparePermille,
  askedPerSecond,
  mayLead,
  decided,
}: LoadReport): Buffer {
  return pack([busyPermille, sparePermille, askedPerSecond, mayLead, decided?.term, decided?.target]);
}

/** Decodes a load report. @throws FrameError if it is malformed */
export function decodeLoadReport(payload: Uint8Array): LoadReport {
  const fields = new Fields(unpack(payload));
  const report = {
    busyPermille: fields.integer('busyPermille'),
    sparePermille: fields.integer('sparePermille'),
    askedPerSecond: fields.integer('askedPerSecond'),
    mayLead: fields.boolean('mayLead'),
  };
  const term = fields.optionalInteger('term');
  const target = fields.optionalInteger('target');
  if (term === undefined || target === undefined) return report;
  return { ...report, decided: { term, target } };
}

const ROOMS = ['free', 'full', 'exhausted'] as const satisfies readonly Room[];

/** Encodes the report. */
export function encodeRoom(room: Room): Buffer {
  return pack([ROOMS.indexOf(room)]);
}

/** Decodes the report. @throws FrameError if it is malformed */
export function decodeRoom(payload: Uint8Array): Room {
  return new Fields(unpack(payload)).oneOf(ROOMS, 'room');
}
