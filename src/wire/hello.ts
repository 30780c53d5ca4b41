/**
 * What two nodes say to each other before anything else: the dialler's hello, and the welcome or the refusal it gets.
 * Bytes and shapes only; who is refused is decided by src/meta/admission.ts.
 */
import type { HostPort } from '../api/node-address.ts';
import type { NodeId } from '../../raft/types.ts';
import { VERSION_BOUND, type VersionRange } from '../api/versions.ts';
import { decodeAddress, Fields, pack, unpack } from './fields.ts';
import { FrameError } from './frame.ts';

/** Who speaks on a connection: a node id alone may be borne by two machines. */
export interface Sender {
  readonly node: NodeId;
  readonly incarnation: string;
}

export interface Hello extends Sender {
  /** Whom the dialler looks for. */
  readonly target: NodeId;
  /** The incarnation that is recorded for the target, where the dialler knows it. */
  readonly targetIncarnation?: string;
  /** Digest of the facts that the dialler goes by. */
  readonly facts: string;
  /** Where the dialler can be reached, if it can say so. */
  readonly peer?: HostPort;
  readonly http?: HostPort;
  /** The versions that the dialler speaks with this cluster. */
  readonly speaks: VersionRange;
}

export interface Welcome {
  /** Of the one that was reached. */
  readonly incarnation: string;
  readonly speaks: VersionRange;
}

/**
 * Why a connection is refused:
 * - `otherFacts`: the two were configured as different clusters.
 * - `wrongTarget`: the one that answers is not the one that was looked for; its address may have changed.
 * - `otherIncarnation`: the dialler has not the database that is recorded under its id. Final.
 * - `removed`: the dialler was removed from the cluster. Final.
 * - `otherVersion`: the two speak no version in common.
 */
export const REFUSAL_CODES = [
  'otherFacts',
  'wrongTarget',
  'otherIncarnation',
  'removed',
  'otherVersion',
] as const;
export type RefusalCode = (typeof REFUSAL_CODES)[number];

export interface Refusal {
  readonly code: RefusalCode;
  /** For people: what happened, and what to do. */
  readonly text: string;
}

/** The longest payload of the frames here. */
export const HELLO_BYTES_MAX = 2_048;
const TEXT_CHARACTERS_MAX = 400;

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

/** @throws FrameError if it is malformed */
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

export function encodeWelcome({ incarnation, speaks }: Welcome): Buffer {
  return pack([incarnation, speaks.min, speaks.max]);
}

/** @throws FrameError if it is malformed */
export function decodeWelcome(payload: Uint8Array): Welcome {
  const fields = new Fields(unpack(payload));
  return { incarnation: fields.string('incarnation'), speaks: decodeVersions(fields) };
}

/** The last fields of both. What follows them is of later versions. */
function decodeVersions(fields: Fields): VersionRange {
  const range = { min: fields.integer('lowest version'), max: fields.integer('highest version') };
  if (range.min < 1 || range.min > range.max || range.max > VERSION_BOUND)
    throw new FrameError(`versions ${range.min} to ${range.max} are none: from 1 to ${VERSION_BOUND}`);
  return range;
}

export function encodeRefusal({ code, text }: Refusal): Buffer {
  return pack([REFUSAL_CODES.indexOf(code), text]);
}

/** @throws FrameError if it is malformed */
export function decodeRefusal(payload: Uint8Array): Refusal {
  const fields = new Fields(unpack(payload));
  const code = fields.oneOf(REFUSAL_CODES, 'code');
  return { code, text: fields.string('text').slice(0, TEXT_CHARACTERS_MAX) };
}
