/**
 * The handshake of two nodes: the dialler's hello, and the welcome or refusal that it gets. Encoding only;
 * src/meta/admission.ts decides who is refused.
 */
import type { HostPort } from '../api/node-address.ts';
import type { NodeId } from '../../raft/types.ts';
import { VERSION_BOUND, type VersionRange } from '../api/versions.ts';
import { decodeAddress, Fields, pack, unpack } from './fields.ts';
import { FrameError } from './frame.ts';

/** A node on a connection. The incarnation tells two databases with the same node id apart. */
export interface Sender {
  readonly node: NodeId;
  readonly incarnation: string;
}

/** The first frame of the dialling node. */
export interface Hello extends Sender {
  /** The node that the dialler looks for. */
  readonly target: NodeId;
  /** The incarnation recorded for the target, if the dialler knows it. */
  readonly targetIncarnation?: string;
  /** Digest of the dialler's cluster facts. */
  readonly facts: string;
  /** Where the dialler can be reached, if it knows. */
  readonly peer?: HostPort;
  readonly http?: HostPort;
  /** Protocol versions that the dialler speaks with this cluster. */
  readonly speaks: VersionRange;
}

/** The answer to a hello that is accepted. */
export interface Welcome {
  /** Incarnation of the answering node. */
  readonly incarnation: string;
  readonly speaks: VersionRange;
}

/**
 * Why a connection is refused:
 *
 * - `otherFacts`: the two nodes are configured for different clusters
 * - `wrongTarget`: the answering node is not the one looked for; its address may have changed
 * - `otherIncarnation`: the dialler does not have the database recorded for its id. Final.
 * - `removed`: the dialler was removed from the cluster. Final.
 * - `otherVersion`: the two nodes have no protocol version in common
 */
export const REFUSAL_CODES = [
  'otherFacts',
  'wrongTarget',
  'otherIncarnation',
  'removed',
  'otherVersion',
] as const;
export type RefusalCode = (typeof REFUSAL_CODES)[number];

/** The answer to a hello that is refused. */
export interface Refusal {
  readonly code: RefusalCode;
  /** For people: what happened, and what to do. */
  readonly text: string;
}

/** Longest payload of handshake frames. */
export const HELLO_BYTES_MAX = 2_048;
const TEXT_CHARACTERS_MAX = 400;

/** Encodes a hello. */
export function encodeHello({
  node,
  incarnation,
  target,
  facts,
  peer,
  http,
  speaks,
  ...rest
}: Hello): Buffer {
  return pack([
    node,
    incarnation,
    target,
    rest.targetIncarnation,
    facts,
    peer?.host,
    peer?.port,
    http?.host,
    http?.port,
    speaks.min,
    speaks.max,
  ]);
}

/** Decodes a hello. @throws FrameError if it is malformed */
export function decodeHello(payload: Uint8Array): Hello {
  const fields = new Fields(unpack(payload));
  const node = fields.integer('node');
  const incarnation = fields.string('incarnation');
  const target = fields.integer('target');
  const targetIncarnation = fields.optionalString('target incarnation');
  const facts = fields.string('facts');
  const peer = decodeAddress(fields, 'peer');
  const http = decodeAddress(fields, 'http');
  const speaks = decodeVersions(fields);
  return {
    node,
    incarnation,
    target,
    facts,
    speaks,
    ...(targetIncarnation !== undefined && { targetIncarnation }),
    ...(peer !== undefined && { peer }),
    ...(http !== undefined && { http }),
  };
}

/** Encodes a welcome. */
export function encodeWelcome({ incarnation, speaks }: Welcome): Buffer {
  return pack([incarnation, speaks.min, speaks.max]);
}

/** Decodes a welcome. @throws FrameError if it is malformed */
export function decodeWelcome(payload: Uint8Array): Welcome {
  const fields = new Fields(unpack(payload));
  return { incarnation: fields.string('incarnation'), speaks: decodeVersions(fields) };
}

/** The last fields of hello and welcome. Later versions may add fields behind them. */
function decodeVersions(fields: Fields): VersionRange {
  const range = { min: fields.integer('lowest version'), max: fields.integer('highest version') };
  if (range.min < 1 || range.min > range.max || range.max > VERSION_BOUND)
    throw new FrameError(`versions ${range.min} to ${range.max} must be a range from 1 to ${VERSION_BOUND}`);
  return range;
}

/** Encodes a refusal. */
export function encodeRefusal({ code, text }: Refusal): Buffer {
  return pack([REFUSAL_CODES.indexOf(code), text]);
}

/** Decodes a refusal; its text is cut to 400 characters. @throws FrameError if it is malformed */
export function decodeRefusal(payload: Uint8Array): Refusal {
  const fields = new Fields(unpack(payload));
  const code = fields.oneOf(REFUSAL_CODES, 'code');
  return { code, text: fields.string('text').slice(0, TEXT_CHARACTERS_MAX) };
}
